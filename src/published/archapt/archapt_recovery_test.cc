// Tests that lost lines are reported by the objects that they lie in.
#include <containers/test_bed.h>
#include <format/heap_layout.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <published/archapt/archapt_recovery.h>
#include <tx/log/recovery.h>
#include <tx/open.h>
#include <tx/runtime.h>

namespace stele::detail {
namespace {

using ::testing::HasSubstr;

struct lost_lines : ::testing::Test {
  stele::testing::scratch_directory dir;
  std::unique_ptr<runtime> pool = std::move(*open_path(
      dir.file("pool"),
      {.create_size = 4 << 20,
       .engine = {.mechanism = "archapt-redo", .media = "process", .background = false}}));
  const storage::pool_file& file = pool->state().file;
  std::uint64_t chunk = std::uint64_t{1} << file.header().chunk_shift;

  std::string sentence(std::vector<std::uint64_t> offsets) {
    covered_home found;
    found.lost = std::move(offsets);
    return report_loss(file, pool->state().heap, found).error().message;
  }
  std::uint64_t allocated(std::size_t bytes) {
    std::uint64_t offset = 0;
    EXPECT_TRUE(run_transaction(*pool, true, durability::durable, [&] {
      auto* const at = static_cast<std::byte*>(allocate(bytes, 8));
      fill_zero(at, 8);
      offset = static_cast<std::uint64_t>(at - file.base());
    }));
    return offset;
  }
};

TEST_F(lost_lines, are_named_by_what_lies_there) {
  const std::uint64_t small = allocated(100), large = allocated(3 * chunk - 64),
                      shared = allocated(2 * chunk + 64);
  EXPECT_THAT(sentence({file.header().table_offset}), HasSubstr("the heap's table at offset"));
  EXPECT_THAT(sentence({small}),
              HasSubstr("the objects of 104 bytes at offset " + std::to_string(small)));
  const std::uint64_t first = file.header().chunks_offset;
  EXPECT_THAT(sentence({small - (small - first) % chunk}),
              HasSubstr("the states of the objects from offset"));
  for (const std::uint64_t at : {large, large + chunk, large + 2 * chunk})
    EXPECT_THAT(sentence({at}), HasSubstr("the object of " + std::to_string(3 * chunk) +
                                          " bytes at offset " + std::to_string(large)));
  for (const std::uint64_t at : {shared, shared + chunk, shared + 2 * chunk})  // of a large slab
    EXPECT_THAT(sentence({at}),
                HasSubstr("the objects of 40896 bytes at offset " + std::to_string(shared)));
  const std::uint64_t last = file.header().chunks_offset + file.header().chunk_count * chunk;
  EXPECT_THAT(sentence({last - 64}),
              HasSubstr("unused space at offset " + std::to_string(last - 64)));
  EXPECT_THAT(sentence({last}), HasSubstr("unused space at offset " + std::to_string(last)));
}

// A lost line may be in the chunk table itself.
TEST_F(lost_lines, are_named_beside_a_table_that_says_nothing) {
  const std::uint64_t small = allocated(100), first = file.header().chunks_offset,
                      word = file.header().table_offset + (small - first) / chunk * 8;
  std::uint64_t was;
  std::memcpy(&was, file.at(word), 8);
  const std::uint64_t tail = format::guard(
      format::chunk_descriptor{format::chunk_kind::tail, 0, 0}.pack(), file.header().id, word);
  for (const std::uint64_t damage : {was ^ 1, tail}) {
    std::memcpy(file.at(word), &damage, 8);
    EXPECT_THAT(sentence({small}), HasSubstr("unused space at offset " + std::to_string(small)));
  }
  std::memcpy(file.at(word), &was, 8);
}

TEST_F(lost_lines, are_named_once_and_not_all_of_them) {
  const std::uint64_t small = allocated(100);
  EXPECT_EQ(sentence({small, small + 64}).find("objects", sentence({small}).find("objects") + 1),
            std::string::npos);
  std::vector<std::uint64_t> many;
  for (std::uint64_t i = 0; i < 11; ++i) many.push_back(allocated(100));
  EXPECT_THAT(sentence(many), HasSubstr(" and 3 more; nothing was changed"));
}

// Commits of one word each, at one place of home or at another.
struct commits_in_doubt : lost_lines {
  const std::uint64_t here = allocated(100), there = allocated(100);
  std::vector<logged_record> records;
  std::vector<std::uint64_t> words;

  void add(std::uint64_t txid, std::uint64_t offset, std::uint64_t old, std::uint64_t value,
           bool newest_of_log) {
    format::values_sum sum(file.header().id, txid);
    sum.add(offset, value);
    records.push_back(
        {txid, sum.value(), words.size(), 2, format::record_kind::undo_with_sum, newest_of_log});
    words.push_back(format::run_header{offset, 0xFF, 1}.pack());
    words.push_back(old);
  }
  void store(std::uint64_t offset, std::uint64_t value) {
    std::memcpy(file.at(offset), &value, sizeof value);
  }
  std::unordered_set<std::uint64_t> incomplete() {
    auto found = find_incomplete(file, records, words);
    return found ? *std::move(found) : std::unordered_set<std::uint64_t>{~std::uint64_t{0}};
  }
};

TEST_F(commits_in_doubt, are_complete_if_home_has_them) {
  add(5, here, 1, 2, true);
  store(here, 2);
  EXPECT_THAT(incomplete(), ::testing::IsEmpty());
  store(here, 1);
  EXPECT_THAT(incomplete(), ::testing::ElementsAre(5));
}

TEST_F(commits_in_doubt, are_only_the_newest_of_a_log) {
  add(5, here, 1, 2, false);
  add(6, there, 1, 2, true);
  store(here, 7), store(there, 2);
  EXPECT_THAT(incomplete(), ::testing::IsEmpty());
}

TEST_F(commits_in_doubt, are_judged_by_home_before_later_ones) {
  add(5, here, 1, 2, true);
  add(6, here, 2, 3, false);
  add(7, here, 3, 4, true);
  store(here, 4);
  EXPECT_THAT(incomplete(), ::testing::IsEmpty());
  store(here, 3);
  EXPECT_THAT(incomplete(), ::testing::ElementsAre(7));
}

}  // namespace
}  // namespace stele::detail
