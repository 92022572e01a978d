// Block states that follow from the log: home says what the log holds, the running session says
// what it has taken and freed.
#include <gtest/gtest.h>
#include <pool/memory_pool.h>
#include <published/log_structured/logged_block_states.h>

#include <cstring>
#include <memory>
#include <vector>

namespace stele::storage {
namespace {

class claims final : public heap_writer {
 public:
  void write_private(std::uint64_t, std::uint64_t, unsigned) override { ADD_FAILURE(); }
  std::uint64_t read_private(std::uint64_t, unsigned) override {
    ADD_FAILURE();
    return 0;
  }
  void claim(std::uint64_t offset, std::size_t size) override { ranges.push_back({offset, size}); }
  std::vector<std::pair<std::uint64_t, std::size_t>> ranges;
};

class logged_block_states_test : public ::testing::Test {
 protected:
  logged_block_states_test() {
    space_ = std::make_unique<log_space>(*file_, log_structured_options{}, 1);
    states_ = std::make_unique<logged_block_states>(*space_);
    const std::size_t chunk = std::size_t{1} << file_->header().chunk_shift;
    slab_ = {0, file_->header().chunks_offset, format::slab_layout_of(chunk, 64), 64};
    states_->prepare(slab_);
  }
  // A commit stores `value` to the word at `offset`.
  void log_word(std::uint64_t offset, std::uint64_t value) {
    const log_address at = space_->log_address_of(0, next_++);
    std::memcpy(file_->base() + at * 8, &value, 8);
    ASSERT_TRUE(space_->map.reserve(map_writer_, 1));
    space_->usage.add_live(at, live_words_of(at, 1));
    space_->map.map(map_writer_, {space_->home_of(offset), 1, at});
  }

  testing::memory_pool pool_{{.size = 256 << 10,
                              .log_size = 1024,
                              .log_count = 1,
                              .layout = "",
                              .home = format::home_kind::log}};
  pool_file* const file_ = &pool_.file();
  std::unique_ptr<log_space> space_;
  std::unique_ptr<logged_block_states> states_;
  home_map::writer map_writer_;
  std::uint32_t next_ = format::chunk_header_words;
  slab slab_{};
  claims writer_;
};

// L9
TEST_F(logged_block_states_test, a_block_is_used_when_the_log_holds_any_word_of_it) {
  EXPECT_FALSE(states_->is_used(slab_, 2));
  log_word(slab_.block_offset(2) + 56, 0);
  EXPECT_TRUE(states_->is_used(slab_, 2)) << "even a zero, in its last word";
  EXPECT_FALSE(states_->is_used(slab_, 1));
  EXPECT_FALSE(states_->is_used(slab_, 3));
  EXPECT_TRUE(states_->needs_a_stored_word());
}

TEST_F(logged_block_states_test, words_of_home_are_those_in_the_log_and_else_zero) {
  log_word(slab_.offset + 8, 0x1234);
  EXPECT_EQ(states_->word_at(slab_.offset + 8), 0x1234u);
  EXPECT_EQ(states_->word_at(slab_.offset), 0u);
}

TEST_F(logged_block_states_test, a_second_change_to_the_same_state_is_noticed) {
  EXPECT_TRUE(states_->set_used(writer_, slab_, 40, true));
  EXPECT_FALSE(states_->set_used(writer_, slab_, 40, true));
  EXPECT_TRUE(states_->set_used(writer_, slab_, 40, false));
  EXPECT_FALSE(states_->set_used(writer_, slab_, 40, false)) << "freed twice";
}

TEST_F(logged_block_states_test, a_roll_back_restores_and_a_new_slab_forgets) {
  states_->restore(slab_, 5, true);
  EXPECT_TRUE(states_->set_used(writer_, slab_, 5, false)) << "it was used again";
  states_->restore(slab_, 5, true);
  states_->prepare(slab_);
  EXPECT_FALSE(states_->set_used(writer_, slab_, 5, false));
}

TEST_F(logged_block_states_test, freed_ranges_are_claimed_from_readers) {
  states_->free_range(writer_, slab_.block_offset(1), 64);
  ASSERT_EQ(writer_.ranges.size(), 1u);
  EXPECT_EQ(writer_.ranges[0].first, slab_.block_offset(1));
  EXPECT_EQ(writer_.ranges[0].second, 64u);
}

}  // namespace
}  // namespace stele::storage
