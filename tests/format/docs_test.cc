// docs/format/pool.md describes what the program writes: its table of the header matches the
// struct, and its example has the bytes of a pool that the command makes.
#include <format/pool_layout.h>
#include <gtest/gtest.h>
#include <tests/conformance/command.h>
#include <tests/conformance/pools.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace stele::testing {
namespace {

std::string page() {
  std::ifstream in(STELE_SOURCE_DIR "/docs/format/pool.md");
  return {std::istreambuf_iterator<char>(in), {}};
}

struct place {
  std::size_t offset, size;
  bool operator==(const place&) const = default;
};

// The rows "| offset | size | field | ..." under a heading, except those without a name.
std::map<std::string, place> table_under(const std::string& text, const std::string& heading) {
  std::map<std::string, place> rows;
  std::istringstream lines(text.substr(text.find(heading)));
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line) && !line.starts_with("## ")) {
    std::istringstream cells(line);
    std::string bar, field;
    place at;
    if (cells >> bar >> at.offset >> bar >> at.size >> bar >> field && field != "|")
      rows[field] = at;
  }
  return rows;
}

TEST(format_docs, the_table_of_the_pool_header_is_the_struct) {
  using h = format::pool_header;
#define PLACE(field)                       \
  {                                        \
    #field, {                              \
      offsetof(h, field), sizeof(h::field) \
    }                                      \
  }
  const std::map<std::string, place> fields = {PLACE(magic),
                                               PLACE(version),
                                               PLACE(header_size),
                                               PLACE(id),
                                               PLACE(size),
                                               PLACE(log_offset),
                                               PLACE(log_size),
                                               PLACE(log_count),
                                               PLACE(chunk_shift),
                                               PLACE(home_offset),
                                               PLACE(table_offset),
                                               PLACE(chunks_offset),
                                               PLACE(chunk_count),
                                               PLACE(layout),
                                               PLACE(home),
                                               PLACE(home_size),
                                               PLACE(parity_offset),
                                               PLACE(parity_block_size),
                                               PLACE(home_copy_offset),
                                               PLACE(checkpoint_commits),
                                               PLACE(block_checksums_offset),
                                               PLACE(reserved),
                                               PLACE(checksum)};
#undef PLACE
  const auto told = table_under(page(), "## Header\n");
  for (const auto& [name, at] : fields) {
    ASSERT_TRUE(told.contains(name)) << name << " is not on the page";
    EXPECT_EQ(told.at(name).offset, at.offset) << name;
    EXPECT_EQ(told.at(name).size, at.size) << name;
  }
  EXPECT_EQ(told.size(), fields.size());
}

TEST(format_docs, the_example_of_a_pool_is_what_the_command_writes) {
  scratch_directory dir;
  const auto made = run_command("pool create " + dir.file("p") + " --size 64K");
  ASSERT_EQ(made.status, 0) << made.said;
  std::ifstream in(dir.file("p"), std::ios::binary);
  std::vector<unsigned char> bytes(96);
  ASSERT_TRUE(in.read(reinterpret_cast<char*>(bytes.data()), 96));

  const std::string text = page();
  std::istringstream lines(text.substr(text.find("## Example")));
  std::string line;
  std::size_t rows = 0;
  while (std::getline(lines, line)) {
    if (!line.starts_with("    00")) continue;
    std::istringstream words(line);
    std::size_t offset = 0;
    words >> std::hex >> offset;
    for (std::size_t i = 0; i < 16; ++i) {
      unsigned told = 0;
      ASSERT_TRUE(words >> std::hex >> told) << line;
      const bool is_id = offset + i >= 16 && offset + i < 24;  // random
      EXPECT_EQ(is_id ? told : bytes.at(offset + i), told) << "byte " << offset + i;
    }
    ++rows;
  }
  EXPECT_EQ(rows, 6u);
}

}  // namespace
}  // namespace stele::testing
