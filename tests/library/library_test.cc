// A program that links libstele alone: it has the mechanisms `default` and `none`, opens what they
// can open, and says of other pools who can. The pools are those of tests/format/golden.
#include <base/scratch_directory.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tx/mechanism/catalog.h>
#include <tx/open.h>

#include <fstream>
#include <sstream>

namespace stele::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// As tests/format/golden.h says that a golden file is written.
std::string pool_of(const std::string& name) {
  std::ifstream text(STELE_SOURCE_DIR "/tests/format/golden/" + name + "-v2.golden");
  std::string line, bytes, word;
  while (std::getline(text, line)) {
    std::istringstream words(line);
    words >> word;
    if (word == "size") {
      std::size_t size = 0;
      words >> size;
      bytes.resize(size);
      continue;
    }
    std::size_t at = std::stoull(word, nullptr, 16);
    std::uint64_t value = 0;
    const auto put = [&] {
      std::memcpy(bytes.data() + at, &value, sizeof value);
      at += sizeof value;
    };
    while (words >> word) {
      if (word[0] != '*') value = std::stoull(word, nullptr, 16), put();
      for (auto n = word[0] == '*' ? std::stoull(word.substr(1)) : 0; n != 0; --n) put();
    }
  }
  return bytes;
}

class library : public ::testing::Test {
 protected:
  result<> open(const std::string& name) {
    before_ = pool_of(name);
    EXPECT_FALSE(before_.empty()) << name;
    std::ofstream(path_, std::ios::binary) << before_;
    auto opened = detail::open_path(path_, {.engine = {.media = "process", .background = false}});
    return opened ? (*opened)->close() : std::unexpected(opened.error());
  }
  // Of the file changes the number of its openings, which readers look at.
  void expect_refused(const std::string& name, const std::string& mechanism) {
    const auto opened = open(name);
    ASSERT_FALSE(opened) << name;
    EXPECT_EQ(opened.error().code, errc::unsupported);
    for (const std::string& said : {path_, mechanism, std::string("libstele_published")})
      EXPECT_THAT(opened.error().message, HasSubstr(said)) << name;
    std::ostringstream after;
    after << std::ifstream(path_, std::ios::binary).rdbuf();
    std::string bytes = after.str();
    bytes[format::generation_offset] = before_[format::generation_offset];
    EXPECT_TRUE(bytes == before_) << name << " was changed";
  }
  base::scratch_directory scratch_;
  const std::string path_ = scratch_.file("pool");
  std::string before_;
};

TEST_F(library, has_two_mechanisms) {
  std::vector<std::string> names;
  for (const auto& m : detail::mechanisms()) names.push_back(m.name);
  EXPECT_THAT(names, ElementsAre("default", "none"));
}

TEST_F(library, says_of_others_where_they_are_and_makes_no_file) {
  for (const char* name : {"base", "base-published", "redo", "redo-async", "xil", "vcbp", "blurred",
                           "adaptive", "undo", "redo-published", "undo-published", "archapt-undo",
                           "archapt-redo", "log_structured"}) {
    const auto opened =
        detail::open_path(path_, {.create_size = 1 << 20, .engine = {.mechanism = name}});
    ASSERT_FALSE(opened) << name;
    EXPECT_EQ(opened.error().code, errc::unsupported);
    EXPECT_THAT(opened.error().message, HasSubstr("'" + std::string(name) + "'"));
    EXPECT_THAT(opened.error().message, HasSubstr("libstele_published"));
    EXPECT_FALSE(std::filesystem::exists(path_));
  }
  for (const char* name : {"redo-", "published", "edo", "redo-publish", "Redo"})
    EXPECT_EQ(detail::open_path(path_, {.create_size = 1 << 20, .engine = {.mechanism = name}})
                  .error()
                  .code,
              errc::not_found)
        << name;
}

TEST_F(library, opens_closed_pools_whose_home_is_in_place) {
  for (const char* name : {"default", "base", "redo", "redo-async", "xil", "vcbp", "blurred",
                           "undo", "archapt-undo", "archapt-redo"}) {
    const auto opened = open(std::string(name) + "-closed");
    EXPECT_TRUE(opened) << name << ": " << opened.error().message;
  }
}

TEST_F(library, recovers_logs_of_torn_bits_undo_records_included) {
  for (const char* name :
       {"default", "redo", "redo-async", "vcbp", "undo", "ordered", "spilled", "grown", "sums"}) {
    const auto opened = open(std::string(name) + "-open");
    EXPECT_TRUE(opened) << name << ": " << opened.error().message;
  }
}

TEST_F(library, says_of_other_pools_who_can_open_them) {
  expect_refused("base-open", "base or base-published");
  expect_refused("xil-open", "xil, blurred or adaptive");
  expect_refused("blurred-open", "xil, blurred or adaptive");
  expect_refused("spilled-blocks-open", "xil, blurred or adaptive");
  expect_refused("archapt-undo-open", "archapt-undo");
  expect_refused("archapt-redo-open", "archapt-redo");
  expect_refused("log_structured-open", "log_structured");
  expect_refused("log_structured-closed", "log_structured");
}

}  // namespace
}  // namespace stele::testing
