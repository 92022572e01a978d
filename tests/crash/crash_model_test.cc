// The crash model on hand-made tapes with few enough states to count on paper.
#include <explore/crash_model.h>
#include <explore/state_sampler.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace stele::explore {
namespace {

class CrashModel : public ::testing::Test {
 protected:
  CrashModel() { model.start(image); }

  void store(std::uint64_t offset, std::uint64_t value, unsigned thread = 0) {
    model.store(thread, offset, std::as_bytes(std::span(&value, 1)));
  }
  void stream_line(std::uint64_t offset, std::uint64_t value, unsigned thread = 0) {
    const std::vector<std::uint64_t> words(8, value);
    model.stream(thread, offset, std::as_bytes(std::span(words)));
  }
  void store_line(std::uint64_t offset, std::uint64_t value) {
    const std::vector<std::uint64_t> words(8, value);
    model.store(0, offset, std::as_bytes(std::span(words)));
  }

  // All distinct memories that a crash may leave now.
  std::set<std::vector<std::uint64_t>> states() {
    const auto lines = model.pending();
    std::vector<std::uint64_t> options, chosen(lines.size());
    for (auto line : lines) options.push_back(model.options(line));
    state_sampler all(options, 1 << 20, 1);
    EXPECT_TRUE(all.exhaustive());
    std::set<std::vector<std::uint64_t>> found;
    for (std::uint64_t k = 0; k < all.count(); ++k) {
      all.select(k, chosen);
      std::vector<std::uint64_t> memory(image.size() / 8);
      std::memcpy(memory.data(), image.data(), image.size());
      for (std::size_t i = 0; i < lines.size(); ++i) {
        const auto content = model.after(lines[i], chosen[i]);
        std::copy(content.begin(), content.end(), memory.begin() + lines[i] * 8);
      }
      found.insert(memory);
    }
    return found;
  }
  bool possible(std::uint64_t offset, std::uint64_t value) {
    const auto all = states();
    return std::ranges::any_of(all,
                               [&](const auto& memory) { return memory[offset / 8] == value; });
  }
  bool certain(std::uint64_t offset, std::uint64_t value) {
    const auto all = states();
    return std::ranges::all_of(all,
                               [&](const auto& memory) { return memory[offset / 8] == value; });
  }

  hashed_image image{4096, 0, 0};
  crash_model model{4096};
};

TEST_F(CrashModel, one_store_is_there_or_not) {
  store(0, 1);
  EXPECT_EQ(states().size(), 2u);
}

TEST_F(CrashModel, two_stores_to_one_line_keep_their_order) {
  store(0, 1);
  store(8, 2);
  EXPECT_EQ(states().size(), 3u);
  const auto all = states();
  EXPECT_TRUE(std::ranges::none_of(
      all, [](const auto& memory) { return memory[0] == 0 && memory[1] == 2; }));
}

TEST_F(CrashModel, two_lines_are_independent) {
  store(0, 1);
  store(64, 2);
  EXPECT_EQ(states().size(), 4u);
}

TEST_F(CrashModel, streamed_words_have_no_order) {
  stream_line(0, 7);
  EXPECT_EQ(states().size(), 256u);
}

TEST_F(CrashModel, words_of_a_wide_store_have_no_order_but_its_neighbours_have) {
  store(0, 1);
  store_line(0, 7);
  store(8, 9);
  EXPECT_EQ(states().size(), 1u + 1 + 255 + 1);
  const auto all = states();
  EXPECT_TRUE(std::ranges::none_of(
      all, [](const auto& memory) { return memory[1] == 9 && memory[7] != 7; }));
}

TEST_F(CrashModel, flush_and_fence_make_durable) {
  store(0, 1);
  model.flush(0, 0, 8);
  EXPECT_EQ(states().size(), 2u);
  EXPECT_EQ(model.fence(0).size(), 1u);
  EXPECT_EQ(states().size(), 1u);
  EXPECT_TRUE(certain(0, 1));
}

TEST_F(CrashModel, a_flush_without_a_fence_makes_nothing_durable) {
  store(0, 1);
  model.flush(0, 0, 8);
  EXPECT_TRUE(possible(0, 0));
}

TEST_F(CrashModel, a_fence_without_a_flush_makes_nothing_durable) {
  store(0, 1);
  model.fence(0);
  EXPECT_TRUE(possible(0, 0));
}

TEST_F(CrashModel, a_fence_makes_the_line_durable_as_of_the_flush) {
  store(0, 1);
  model.flush(0, 0, 8);
  store(0, 2);
  store(8, 3);
  model.fence(0);
  EXPECT_EQ(states().size(), 3u);
  EXPECT_FALSE(possible(0, 0));
  EXPECT_TRUE(possible(0, 1));
}

TEST_F(CrashModel, a_fence_is_for_the_flushes_of_its_own_thread) {
  store(0, 1);
  model.flush(0, 0, 8);
  model.fence(1);
  EXPECT_TRUE(possible(0, 0));
  model.fence(0);
  EXPECT_TRUE(certain(0, 1));
}

TEST_F(CrashModel, a_flush_covers_what_other_threads_stored) {
  store(0, 1, 0);
  model.flush(1, 0, 8);
  model.fence(1);
  EXPECT_TRUE(certain(0, 1));
}

TEST_F(CrashModel, a_fence_makes_streams_of_its_own_thread_durable) {
  stream_line(0, 7, 0);
  stream_line(64, 8, 1);
  model.fence(0);
  EXPECT_EQ(states().size(), 256u);
  EXPECT_TRUE(certain(0, 7));
  EXPECT_TRUE(possible(64, 0));
}

TEST_F(CrashModel, flushing_a_stream_does_not_order_it_before_another_threads_fence) {
  stream_line(0, 7, 0);
  model.flush(1, 0, 64);
  model.fence(1);
  EXPECT_EQ(states().size(), 256u);
}

TEST_F(CrashModel, a_bulk_persist_makes_its_range_durable_and_no_more) {
  store(0, 1);
  store(64, 2);
  model.bulk(0, 0, 64);
  EXPECT_EQ(states().size(), 2u);
  EXPECT_TRUE(certain(0, 1));
}

TEST_F(CrashModel, a_durable_store_supersedes_an_older_pending_one) {
  stream_line(0, 7, 1);
  store(0, 9, 0);
  model.flush(0, 0, 8);
  model.fence(0);
  EXPECT_TRUE(certain(0, 9));
  EXPECT_EQ(states().size(), 128u);
}

TEST_F(CrashModel, a_store_of_what_is_there_is_no_store) {
  store(0, 0);
  EXPECT_EQ(states().size(), 1u);
}

TEST_F(CrashModel, a_store_of_what_is_pending_still_needs_its_own_flush) {
  store(0, 1);
  store(0, 0);
  EXPECT_TRUE(possible(0, 1));
  model.flush(0, 0, 8);
  model.fence(0);
  EXPECT_TRUE(certain(0, 0));
}

TEST_F(CrashModel, part_of_a_word_leaves_the_rest) {
  store(0, 0x1111111111111111);
  model.flush(0, 0, 8);
  model.fence(0);
  const std::uint16_t part = 0x2222;
  model.store(0, 2, std::as_bytes(std::span(&part, 1)));
  EXPECT_EQ(states().size(), 2u);
  EXPECT_TRUE(possible(0, 0x1111111122221111));
}

TEST_F(CrashModel, the_hash_knows_every_state) {
  stream_line(0, 7);
  store(64, 2);
  std::set<std::uint64_t> seen;
  for (std::uint64_t o = 0; o < model.options(0); ++o)
    for (std::uint64_t p = 0; p < model.options(1); ++p) {
      hashed_image copy(4096, 0, 0);
      copy.rehash();
      copy.put(0, model.after(0, o).data());
      copy.put(1, model.after(1, p).data());
      const std::uint64_t incremental = copy.hash().all;
      copy.rehash();
      EXPECT_EQ(copy.hash().all, incremental);
      EXPECT_TRUE(seen.insert(incremental).second);
    }
  EXPECT_EQ(seen.size(), 512u);
}

TEST(Choices, beyond_the_bound_the_extremes_come_first) {
  const std::vector<std::uint64_t> options(6, 256);
  state_sampler some(options, 600, 1);
  EXPECT_FALSE(some.exhaustive());
  EXPECT_EQ(some.count(), 600u);
  std::set<std::vector<std::uint64_t>> seen;
  std::vector<std::uint64_t> chosen(options.size());
  for (std::uint64_t k = 0; k < some.count(); ++k) {
    some.select(k, chosen);
    for (auto o : chosen) EXPECT_LT(o, 256u);
    seen.insert(chosen);
  }
  const std::vector<std::uint64_t> none(6, 0), all(6, 255);
  EXPECT_TRUE(seen.contains(none));
  EXPECT_TRUE(seen.contains(all));
  for (std::size_t i = 0; i < options.size(); ++i) {
    auto alone = none, without = all;
    alone[i] = 255, without[i] = 0;
    EXPECT_TRUE(seen.contains(alone) && seen.contains(without));
  }
  EXPECT_GT(seen.size(), 400u);
}

TEST(Choices, within_the_bound_every_choice_comes_once) {
  const std::vector<std::uint64_t> options = {2, 3, 256};
  state_sampler all(options, 1536, 1);
  EXPECT_TRUE(all.exhaustive());
  std::set<std::vector<std::uint64_t>> seen;
  std::vector<std::uint64_t> chosen(options.size());
  for (std::uint64_t k = 0; k < all.count(); ++k) {
    all.select(k, chosen);
    seen.insert(chosen);
  }
  EXPECT_EQ(seen.size(), 1536u);
}

}  // namespace
}  // namespace stele::explore
