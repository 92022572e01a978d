// The model of a file on hand-made events with few enough states to count on paper.
#include <explore/sector_model.h>
#include <explore/state_sampler.h>
#include <gtest/gtest.h>

#include <set>

namespace stele::explore {
namespace {

class SectorModel : public ::testing::Test {
 protected:
  SectorModel() { model.start(image); }

  void store(std::uint64_t offset, std::uint64_t value) {
    model.store(0, offset, std::as_bytes(std::span(&value, 1)));
  }
  void write_sectors(std::uint64_t offset, std::uint64_t value, std::size_t sectors = 1,
                     unsigned thread = 0) {
    const std::vector<std::uint64_t> words(64 * sectors, value);
    model.stream(thread, offset, std::as_bytes(std::span(words)));
  }
  void sync(unsigned thread = 0) {
    model.flush(thread, 0, image.size());
    model.fence(thread);
  }

  // All distinct files that a power failure may leave now.
  std::set<std::vector<std::uint64_t>> states() {
    const auto sectors = model.pending();
    std::vector<std::uint64_t> options, chosen(sectors.size());
    for (auto sector : sectors) options.push_back(model.options(sector));
    state_sampler all(options, 1 << 20, 1);
    EXPECT_TRUE(all.exhaustive());
    hashed_image work(image.size(), 0, 0);
    work.assign(image);
    std::set<std::vector<std::uint64_t>> found;
    for (std::uint64_t k = 0; k < all.count(); ++k) {
      all.select(k, chosen);
      for (std::size_t i = 0; i < sectors.size(); ++i) model.put(work, sectors[i], chosen[i]);
      std::vector<std::uint64_t> words(work.size() / 8);
      std::memcpy(words.data(), work.data(), work.size());
      found.insert(words);
    }
    return found;
  }
  std::uint64_t durable(std::uint64_t offset) const {
    std::uint64_t word;
    std::memcpy(&word, image.data() + offset, 8);
    return word;
  }

  hashed_image image{8192, 0, 0};
  sector_model model{8192};
};

TEST_F(SectorModel, a_store_is_there_or_not) {
  store(0, 1);
  EXPECT_EQ(states().size(), 2u);
}

TEST_F(SectorModel, a_sector_has_any_version_since_the_last_sync) {
  for (std::uint64_t v = 1; v <= 5; ++v) store(8, v);
  EXPECT_EQ(states().size(), 6u);
}

TEST_F(SectorModel, sectors_are_independent) {
  store(0, 1);
  store(512, 2);
  store(4096, 3);
  EXPECT_EQ(states().size(), 8u);
}

TEST_F(SectorModel, a_sector_is_written_whole_or_not) {
  write_sectors(512, 7);
  EXPECT_EQ(states().size(), 2u);
}

TEST_F(SectorModel, a_write_in_flight_is_torn_between_sectors) {
  write_sectors(0, 7, 3);
  EXPECT_EQ(states().size(), 8u);
}

TEST_F(SectorModel, a_write_that_returned_is_durable) {
  write_sectors(0, 7, 3);
  model.fence(0);
  EXPECT_EQ(states().size(), 1u);
  EXPECT_EQ(durable(1024), 7u);
}

TEST_F(SectorModel, a_write_of_another_thread_is_still_in_flight) {
  write_sectors(0, 7, 1, 1);
  write_sectors(512, 8, 1, 2);
  model.fence(2);
  EXPECT_EQ(states().size(), 2u);
}

TEST_F(SectorModel, a_sync_makes_durable_what_was_stored_before_it_began) {
  store(0, 1);
  model.flush(0, 0, image.size());
  store(0, 2);
  store(512, 3);
  model.fence(0);
  EXPECT_EQ(durable(0), 1u);
  EXPECT_EQ(states().size(), 4u);
}

TEST_F(SectorModel, a_fence_alone_is_no_sync) {
  store(0, 1);
  model.fence(0);
  EXPECT_EQ(states().size(), 2u);
}

TEST_F(SectorModel, a_write_takes_along_what_was_stored_to_its_sectors) {
  store(0, 1);
  store(600, 2);
  write_sectors(0, 7);
  EXPECT_EQ(states().size(), 6u) << "the first sector as it was, stored to, or written";
  model.fence(0);
  EXPECT_EQ(states().size(), 2u);
  EXPECT_EQ(durable(0), 7u);
}

TEST_F(SectorModel, wide_stores_are_words_in_order) {
  const std::array<std::uint64_t, 4> words{1, 2, 3, 4};
  model.store(0, 0, std::as_bytes(std::span(words)));
  EXPECT_EQ(states().size(), 5u);
}

TEST_F(SectorModel, storing_what_is_there_changes_nothing) {
  store(0, 0);
  EXPECT_TRUE(model.pending().empty());
}

// The kernel copies a page while it changes: the copy has the second line's store, but not the
// first line's.
TEST_F(SectorModel, a_page_may_be_written_while_it_changes) {
  store(0, 1);
  store(64, 2);
  bool mixed = false;
  for (const auto& words : states()) mixed = mixed || (words[0] == 0 && words[8] == 2);
  EXPECT_TRUE(mixed);
  sync();
  EXPECT_EQ(states().size(), 1u);
}

TEST_F(SectorModel, the_last_option_is_everything) {
  store(0, 1);
  store(64, 2);
  store(128, 3);
  hashed_image work(image.size(), 0, 0);
  work.assign(image);
  model.put(work, 0, model.options(0) - 1);
  std::vector<std::uint32_t> stale;
  model.add_stale(work, 0, stale);
  EXPECT_TRUE(stale.empty());
  model.put(work, 0, 0);
  model.add_stale(work, 0, stale);
  EXPECT_EQ(stale, (std::vector<std::uint32_t>{0, 1, 2}));
}

}  // namespace
}  // namespace stele::explore
