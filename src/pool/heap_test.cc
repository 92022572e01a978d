// The heap with a minimal transaction: stores wait in a map and reach the image at commit.
#include <base/rng.h>
#include <gtest/gtest.h>
#include <pool/heap.h>
#include <pool/memory_pool.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <set>

namespace stele::storage {
namespace {

class plain_writer final : public heap::writer {
 public:
  explicit plain_writer(const pool_file& file) : file_(file) {}
  void write_private(std::uint64_t offset, std::uint64_t value, unsigned size) override {
    for (unsigned i = 0; i < size; ++i) bytes_[offset + i] = std::byte(value >> 8 * i);
  }
  std::uint64_t read_private(std::uint64_t offset, unsigned size) override {
    std::uint64_t value = 0;
    for (unsigned i = 0; i < size; ++i) {
      const auto own = bytes_.find(offset + i);
      value |= std::uint64_t(own != bytes_.end() ? own->second : *file_.at(offset + i)) << 8 * i;
    }
    return value;
  }
  void claim(std::uint64_t, std::size_t) override {}
  void apply() {
    for (const auto& [offset, b] : bytes_) *file_.at(offset) = b;
    bytes_.clear();
  }
  void discard() { bytes_.clear(); }

 private:
  const pool_file& file_;
  std::map<std::uint64_t, std::byte> bytes_;
};

class heap_test : public ::testing::Test {
 protected:
  explicit heap_test(std::size_t size = 512 << 10)
      : pool_({.size = size, .log_size = 4096, .log_count = 1, .layout = ""}) {
    reload();
  }
  // As at the start of a new session.
  void reload() {
    heap_ = std::make_unique<heap>(*file_);
    cache_ = {};
    ASSERT_TRUE(heap_->load());
  }
  result<std::uint64_t> take(std::size_t size, std::size_t alignment = 8) {
    return heap_->allocate(cache_, changes_, *writer_, size, alignment);
  }
  result<> give(std::uint64_t offset) {
    return heap_->deallocate(cache_, changes_, *writer_, offset);
  }
  void commit() {
    writer_->apply();
    heap_->commit(cache_, changes_);
  }
  void roll_back() {
    writer_->discard();
    heap_->rollback(cache_, changes_);
  }
  heap::usage usage() {
    const auto sum = heap_->audit();
    EXPECT_TRUE(sum) << sum.error().message;
    return sum.value_or(heap::usage{});
  }
  std::size_t chunk_size() const { return std::size_t{1} << file_->header().chunk_shift; }

  testing::memory_pool pool_;
  pool_file* const file_ = &pool_.file();
  const std::unique_ptr<plain_writer> writer_ = std::make_unique<plain_writer>(*file_);
  std::unique_ptr<heap> heap_;
  heap::thread_cache cache_;
  heap::changes changes_;
};

TEST_F(heap_test, a_block_exists_from_commit_to_commit) {
  const auto block = take(100);
  ASSERT_TRUE(block);
  EXPECT_EQ(usage().used_blocks, 0u);
  commit();
  EXPECT_EQ(usage().used_blocks, 1u);
  EXPECT_EQ(usage().used_bytes, 104u);
  ASSERT_TRUE(give(*block));
  EXPECT_EQ(usage().used_blocks, 1u);
  roll_back();
  EXPECT_EQ(usage().used_blocks, 1u);
  ASSERT_TRUE(give(*block));
  commit();
  EXPECT_EQ(usage().used_blocks, 0u);
}

TEST_F(heap_test, alignment_is_kept_up_to_a_page_and_refused_beyond) {
  for (const std::size_t alignment : {1u, 8u, 16u, 32u, 64u, 128u, 1024u, 4096u})
    for (const std::size_t size : {1u, 17u, 100u, 1000u, 5000u}) {
      const auto block = take(size, alignment);
      ASSERT_TRUE(block);
      EXPECT_EQ(*block % alignment, 0u) << size << " at " << alignment;
      roll_back();
    }
  EXPECT_EQ(take(8, 8192).error().code, errc::invalid_argument);
}

TEST_F(heap_test, what_is_no_block_or_free_already_is_refused) {
  const auto small = take(64), large = take(20000);
  ASSERT_TRUE(small && large);
  commit();
  for (const std::uint64_t offset :
       {std::uint64_t{0}, *small + 8, *small - 1, *small + 64, *large + 8, *large + chunk_size(),
        file_->header().size, ~std::uint64_t{0}})
    EXPECT_EQ(give(offset).error().code, errc::invalid_argument) << offset;
  ASSERT_TRUE(give(*small) && give(*large));
  EXPECT_EQ(give(*small).error().code, errc::invalid_argument) << "twice in one transaction";
  EXPECT_EQ(give(*large).error().code, errc::invalid_argument) << "twice in one transaction";
  commit();
  EXPECT_EQ(give(*small).error().code, errc::invalid_argument);
  EXPECT_EQ(give(*large).error().code, errc::invalid_argument);
}

TEST_F(heap_test, too_large_a_request_is_full_and_changes_nothing) {
  EXPECT_EQ(take(std::size_t{1} << 40).error().code, errc::full);
  EXPECT_EQ(take(~std::size_t{0}).error().code, errc::full);
  EXPECT_EQ(take(file_->header().size).error().code, errc::full);
  EXPECT_TRUE(changes_.empty());
  EXPECT_TRUE(take(0)) << "nothing is something";
}

TEST_F(heap_test, an_extent_is_whole_chunks_and_comes_back) {
  const auto before = usage();
  const auto extent = take(3 * chunk_size() - 5);
  ASSERT_TRUE(extent);
  commit();
  auto sum = usage();
  EXPECT_EQ(sum.used_chunks, 3u);
  EXPECT_EQ(sum.free_chunks, before.free_chunks - 3);
  reload();
  ASSERT_TRUE(give(*extent));
  commit();
  EXPECT_EQ(usage().free_chunks, before.free_chunks);
  EXPECT_EQ(take((before.free_chunks + 1) * chunk_size()).error().code, errc::full);
  EXPECT_TRUE(take(before.free_chunks * chunk_size())) << "all chunks are one run again";
}

TEST_F(heap_test, reclaim_turns_empty_slabs_into_chunks) {
  std::vector<std::uint64_t> blocks;
  while (auto block = take(48)) blocks.push_back(*block);
  commit();
  EXPECT_EQ(usage().free_chunks, 0u);
  for (const auto b : blocks) ASSERT_TRUE(give(b));
  commit();
  EXPECT_EQ(take(100000).error().code, errc::full);
  roll_back();
  std::size_t reclaimed = 0;
  for (std::size_t n; (n = heap_->reclaim(cache_, changes_, *writer_, 7)) != 0; reclaimed += n) {
    EXPECT_LE(n, 7u);
    if (reclaimed == 0) {
      roll_back();
      n = heap_->reclaim(cache_, changes_, *writer_, 7);
    }
    commit();
  }
  const auto sum = usage();
  EXPECT_EQ(sum.free_chunks, file_->header().chunk_count);
  EXPECT_EQ(sum.free_chunks, reclaimed);
  EXPECT_TRUE(take(100000));
}

// A transaction must not get blocks of a slab that another one has made and may still roll back.
TEST_F(heap_test, blocks_of_an_uncommitted_slab_are_given_to_nobody) {
  heap::thread_cache other;
  heap::changes others;
  plain_writer other_writer(*file_);
  const auto mine = take(48);
  ASSERT_TRUE(mine);
  (void)heap_->reclaim(other, others, other_writer, 100);  // recalls the free blocks of all threads
  ASSERT_TRUE(take(256));  // the transaction answers the recall here, unless it has made a slab
  const auto theirs = heap_->allocate(other, others, other_writer, 48, 8);
  ASSERT_TRUE(theirs);
  EXPECT_NE(*mine / chunk_size(), *theirs / chunk_size());
  other_writer.apply();
  heap_->commit(other, others);
  roll_back();
  EXPECT_EQ(usage().used_blocks, 1u);
}

TEST_F(heap_test, reserved_chunks_are_free_on_media_and_out_of_reach) {
  const auto before = usage();
  const auto reserved = heap_->reserve_chunks(before.free_chunks * chunk_size());
  ASSERT_TRUE(reserved);
  EXPECT_EQ(usage().free_chunks, before.free_chunks);
  EXPECT_EQ(take(8).error().code, errc::full);
  EXPECT_EQ(heap_->reserve_chunks(1).error().code, errc::full);
  heap_->release_chunks(*reserved, before.free_chunks * chunk_size());
  EXPECT_TRUE(take(8));
}

TEST_F(heap_test, audit_and_load_find_every_flipped_bit_of_a_descriptor_and_of_a_block_state) {
  const auto small = take(48), large = take(3 * chunk_size());
  ASSERT_TRUE(small && large);
  commit();
  const auto& h = file_->header();
  const std::uint64_t chunk = (*small - h.chunks_offset) >> h.chunk_shift,
                      states = h.chunks_offset + (chunk << h.chunk_shift);
  auto found = [&](std::uint64_t offset, unsigned bit, bool by_load) {
    *file_->at(offset) ^= std::byte(1 << bit);
    const bool by_audit = !heap_->audit();
    heap fresh(*file_);
    const bool refused = !fresh.load();
    *file_->at(offset) ^= std::byte(1 << bit);
    return by_audit && (refused || !by_load);
  };
  for (std::uint64_t c = 0; c < 6; ++c)
    for (unsigned bit = 0; bit < 64; ++bit) {
      const std::uint64_t offset = h.table_offset + 8 * c;
      const bool tail =
          format::chunk_descriptor::unpack(
              *format::unguard(*reinterpret_cast<std::uint64_t*>(file_->at(offset)), h.id, offset))
              .kind == format::chunk_kind::tail;
      EXPECT_TRUE(found(offset + bit / 8, bit % 8, !tail)) << "chunk " << c << " bit " << bit;
    }
  for (std::uint64_t state = 0; state < 128; ++state)
    for (unsigned bit = 0; bit < 8; ++bit)
      EXPECT_TRUE(found(states + state, bit, false)) << "state " << state;
}

// Sizes of large slabs here: 1.25 and 2.5 chunks.
TEST_F(heap_test, blocks_of_a_large_slab_straddle_chunks_and_come_back_one_by_one) {
  const auto before = usage();
  std::vector<std::uint64_t> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(take(5000).value());
  commit();
  EXPECT_EQ(usage().free_chunks, before.free_chunks - 5) << "four blocks in one run of five chunks";
  EXPECT_EQ(usage().used_blocks, 4u);
  EXPECT_GE(usage().used_bytes, 20000u);
  reload();
  for (const std::uint64_t offset : {blocks[0] + 16, blocks[1] - 64, blocks[3] + 5056})
    EXPECT_EQ(give(offset).error().code, errc::invalid_argument) << offset;
  ASSERT_TRUE(give(blocks[1]) && give(blocks[3]));
  EXPECT_EQ(give(blocks[3]).error().code, errc::invalid_argument) << "twice in one transaction";
  commit();
  EXPECT_EQ(usage().used_blocks, 2u);
  EXPECT_EQ(give(blocks[1]).error().code, errc::invalid_argument);
  roll_back();
  reload();
  const std::set<std::uint64_t> free = {blocks[1], blocks[3]};
  const std::set<std::uint64_t> taken = {take(5000).value(), take(5000).value()};
  EXPECT_EQ(taken, free) << "the free ones, in a later session";
  commit();
  EXPECT_EQ(usage().free_chunks, before.free_chunks - 5);
}

TEST_F(heap_test, a_large_slab_that_is_rolled_back_leaves_nothing) {
  const auto before = usage();
  ASSERT_TRUE(take(5000));
  roll_back();
  EXPECT_EQ(usage().free_chunks, before.free_chunks);
  const auto extent = take(before.free_chunks * chunk_size());
  ASSERT_TRUE(extent) << "its chunks can be taken again";
  EXPECT_EQ(take(5000).error().code, errc::full) << "its blocks cannot";
}

TEST_F(heap_test, an_empty_large_slab_is_reclaimed_whole_or_not) {
  const auto before = usage();
  const auto kept = take(10000), block = take(5000);
  ASSERT_TRUE(kept && block);
  commit();
  ASSERT_TRUE(give(*block));
  commit();
  EXPECT_EQ(heap_->reclaim(cache_, changes_, *writer_, 4), 0u) << "its run has five chunks";
  roll_back();
  EXPECT_EQ(heap_->reclaim(cache_, changes_, *writer_, 5), 5u);
  roll_back();
  EXPECT_EQ(heap_->reclaim(cache_, changes_, *writer_, 100), 5u) << "the roll-back restored it";
  commit();
  EXPECT_EQ(usage().free_chunks, before.free_chunks - 5) << "the run of the other block is used";
  EXPECT_EQ(usage().used_blocks, 1u);
}

TEST_F(heap_test, where_no_run_is_long_enough_a_value_gets_an_extent) {
  std::vector<std::uint64_t> all;
  while (auto block = take(4096)) all.push_back(*block);
  ASSERT_TRUE(give(all[3]) && give(all[4]) && give(all[10]));
  commit();
  const auto value = take(5000);
  ASSERT_TRUE(value) << "two chunks are free side by side";
  EXPECT_EQ(take(5000).error().code, errc::full);
  EXPECT_TRUE(take(900)) << "a slab of one chunk";
  commit();
  EXPECT_EQ(usage().free_chunks, 0u);
}

TEST_F(heap_test, a_pool_of_version_1_has_no_large_slab) {
  ASSERT_TRUE(take(5000));
  commit();
  ASSERT_TRUE(heap_->audit());
  auto h = file_->header();
  h.version = 1;
  h.checksum = format::header_checksum(h);
  std::memcpy(file_->base(), &h, sizeof h);
  const auto earlier = pool_file::adopt(file_->base(), h.size);
  ASSERT_TRUE(earlier);
  EXPECT_FALSE(heap(*earlier).load());
}

TEST_F(heap_test, every_block_left_is_found_before_the_heap_is_loaded) {
  std::map<std::uint64_t, std::size_t> wanted;
  for (const std::size_t size : {24u, 100u, 900u, 5000u, 5000u, 10000u, 20000u})
    wanted[take(size).value()] = size;
  commit();
  std::map<std::uint64_t, std::size_t> found;
  heap(*file_).for_each_block_left(
      [&](std::uint64_t offset, std::size_t size, std::uint64_t) { found[offset] = size; });
  ASSERT_EQ(found.size(), wanted.size());
  for (const auto& [offset, size] : wanted) EXPECT_GE(found.at(offset), size);
}

// Random transactions, committed or rolled back, over several sessions, compared with a model.
TEST_F(heap_test, agrees_with_a_model_over_random_transactions) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    base::rng random(seed);
    std::map<std::uint64_t, std::size_t> model;
    for (int round = 0; round < 300; ++round) {
      auto after = model;
      for (std::uint64_t n = 1 + random.below(20); n != 0; --n) {
        if (!after.empty() && random.below(100) < 48) {
          auto victim = after.lower_bound(random.below(file_->header().size));
          if (victim == after.end()) victim = after.begin();
          ASSERT_TRUE(give(victim->first));
          after.erase(victim);
          continue;
        }
        const std::size_t size = 1 + random.below(random.below(20) == 0  ? 20000
                                                  : random.below(3) == 0 ? 1024
                                                                         : 100);
        const auto block = take(size);
        if (!block) {
          ASSERT_EQ(block.error().code, errc::full);
          continue;
        }
        const auto next = after.lower_bound(*block);
        ASSERT_TRUE(next == after.end() || *block + size <= next->first) << "blocks overlap";
        ASSERT_TRUE(next == after.begin() ||
                    std::prev(next)->first + std::prev(next)->second <= *block)
            << "blocks overlap";
        after[*block] = size;
      }
      if (random.below(4) == 0) {
        roll_back();
      } else {
        commit();
        model = std::move(after);
      }
      if (random.below(10) == 0) {
        (void)heap_->reclaim(cache_, changes_, *writer_, 1 + random.below(20));
        random.below(2) == 0 ? commit() : roll_back();
      }
      if (random.below(40) == 0) reload();
      std::map<std::uint64_t, std::size_t> found;
      ASSERT_TRUE(
          heap_->audit([&](std::uint64_t offset, std::size_t size) { found[offset] = size; }));
      ASSERT_EQ(found.size(), model.size());
      for (const auto& [offset, size] : model) ASSERT_GE(found.at(offset), size);
    }
    for (const auto& [offset, size] : model) ASSERT_TRUE(give(offset));
    commit();
    EXPECT_EQ(usage().used_blocks, 0u);
  }
}

// The chunks of a table that a second growth has replaced were found by no request for one chunk.
TEST(heap_growth, gives_the_chunks_of_the_table_before_away) {
  constexpr std::size_t room = std::size_t{16} << 20;
  const std::unique_ptr<std::byte, decltype(&std::free)> memory(
      static_cast<std::byte*>(std::aligned_alloc(4096, room)), std::free);
  std::memset(memory.get(), 0, room);
  const auto created =
      pool_file::make_header({.size = 512 << 10, .log_size = 4096, .log_count = 1, .layout = ""});
  ASSERT_TRUE(created);
  pool_file::write_header(memory.get(), *created);
  auto file = pool_file::adopt(memory.get(), room);
  ASSERT_TRUE(file);
  heap h(*file);
  ASSERT_TRUE(h.load());
  plain_writer writer(*file);
  heap::thread_cache cache;
  heap::changes changes;
  const auto take_all_chunks = [&] {
    while (h.allocate(cache, changes, writer, 4096, 8)) {
      writer.apply();
      h.commit(cache, changes);
    }
    writer.discard();
    h.rollback(cache, changes);
  };
  take_all_chunks();
  for (const std::uint64_t more : {700, 20}) {
    const auto before = file->header();
    const format::growth to{before.chunk_count + more, before.chunk_count};
    const auto after = grown_header(before, to, "");
    ASSERT_TRUE(after && file->extend(after->size));
    h.reserve_growth(to.chunk_count);
    const auto words = h.build_grown_table(to.chunk_count, to.table_chunk,
                                           table_chunk_count(before, to.chunk_count));
    ASSERT_TRUE(words);
    std::memcpy(file->at(after->table_offset), words->data(), 8 * words->size());
    file->apply_growth(to);
    ASSERT_TRUE(h.apply_growth());
    take_all_chunks();
    const auto left = h.audit();
    ASSERT_TRUE(left);
    EXPECT_EQ(left->free_chunks, 0u) << more;
  }
}

// 2^32 chunks were counted as none: the pool was made and could not be opened.
TEST(pool_of_many_chunks, is_refused_where_32_bits_do_not_count_them) {
  const auto header_of = [](std::size_t size) {
    return pool_file::make_header({.size = size,
                                   .log_size = 1024,
                                   .log_count = 2,
                                   .layout = "",
                                   .home = format::home_kind::log});
  };
  constexpr std::size_t four_tib = std::size_t{4} << 40;
  const auto most = header_of(four_tib - (1 << 20));
  ASSERT_TRUE(most) << most.error().message;
  EXPECT_GT(most->log_chunks(), ~std::uint32_t{0} - 2048);
  for (const std::size_t more : {std::size_t{0}, std::size_t{64} << 10, std::size_t{1} << 40}) {
    const auto refused = header_of(four_tib + (64 << 10) + more);
    ASSERT_FALSE(refused) << more;
    EXPECT_EQ(refused.error().code, errc::invalid_argument);
  }
}

// Blocks between the ends of the two were looked at, behind what is mapped.
TEST(heap_growth, is_of_no_pool_that_would_be_shorter_than_it_was_made) {
  auto made =
      pool_file::make_header({.size = 512 << 10, .log_size = 4096, .log_count = 1, .layout = ""});
  ASSERT_TRUE(made);
  EXPECT_TRUE(grown_header(*made, {made->chunk_count + 1, made->chunk_count - 8}, ""));
  made->chunk_count = 1;  // as a hostile header says; its size is as it was
  const auto grown = grown_header(*made, {3, 1}, "p");
  ASSERT_FALSE(grown);
  EXPECT_EQ(grown.error().code, errc::corrupt);
}

}  // namespace
}  // namespace stele::storage
