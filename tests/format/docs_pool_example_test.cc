// The example of docs/format/pool.md has the bytes of a pool that the command makes.
#include <gtest/gtest.h>
#include <tests/conformance/command.h>
#include <tests/conformance/pools.h>
#include <tests/format/page.h>

#include <fstream>

namespace stele::testing {
namespace {

TEST(format_docs, the_example_of_a_pool_is_what_the_command_writes) {
  scratch_directory dir;
  const auto made = run_command("pool create " + dir.file("p") + " --size 64K");
  ASSERT_EQ(made.status, 0) << made.said;
  std::ifstream in(dir.file("p"), std::ios::binary);
  std::vector<unsigned char> bytes(96);
  ASSERT_TRUE(in.read(reinterpret_cast<char*>(bytes.data()), 96));

  const auto lines = page("pool.md").section("## Example").example();
  ASSERT_EQ(lines.size(), 6u);
  for (std::size_t row = 0; row < lines.size(); ++row) {
    EXPECT_EQ(std::stoul(lines[row], nullptr, 16), 16 * row);
    const auto told = bytes_in(lines[row], "0000");
    ASSERT_EQ(told.size(), 16u) << lines[row];
    for (std::size_t i = 0; i < 16; ++i) {
      const std::size_t offset = 16 * row + i;
      const bool is_id = offset >= 16 && offset < 24;  // random
      EXPECT_EQ(is_id ? told[i] : bytes[offset], told[i]) << "byte " << offset;
    }
  }
}

}  // namespace
}  // namespace stele::testing
