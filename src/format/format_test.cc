// Format words: guarded words, size classes, torn-bit lines, log blocks, run heads, chunk
// descriptors, session words.
#include <base/checksum.h>
#include <base/rng.h>
#include <format/heap_layout.h>
#include <format/log_block.h>
#include <format/log_chunk.h>
#include <format/log_line.h>
#include <format/pool_layout.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <vector>

namespace stele::format {
namespace {

TEST(guarded, a_value_comes_back_and_every_single_flipped_bit_is_refused) {
  base::rng random(1);
  for (int i = 0; i < 2000; ++i) {
    const std::uint64_t value = random.below(guarded_limit), id = random() | 1,
                        offset = random.below(1u << 30) * 8;
    const std::uint64_t word = guard(value, id, offset);
    ASSERT_EQ(unguard(word, id, offset), value);
    for (unsigned bit = 0; bit < 64; ++bit)
      ASSERT_EQ(unguard(word ^ std::uint64_t{1} << bit, id, offset), std::nullopt)
          << "value " << value << " bit " << bit;
  }
}

// 15 bits of hash detect a wrong place or pool except in one case of 32,768.
TEST(guarded, a_word_of_another_place_or_pool_is_refused) {
  base::rng random(2);
  int accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    const std::uint64_t value = 1 + random.below(guarded_limit - 1), id = random();
    const std::uint64_t word = guard(value, id, 4096);
    accepted += unguard(word, id, 4104).has_value();
    accepted += unguard(word, id + 1, 4096).has_value();
  }
  EXPECT_LE(accepted, 8);
}

TEST(guarded, zeroed_memory_holds_the_value_zero) {
  EXPECT_EQ(guard(0, 77, 8), 0u);
  EXPECT_EQ(unguard(0, 77, 8), 0u);
  for (unsigned bit = 0; bit < 64; ++bit)
    EXPECT_EQ(unguard(std::uint64_t{1} << bit, 77, 8), std::nullopt);
}

TEST(size_classes, hold_every_size_with_little_waste) {
  for (std::size_t size = 1; size <= max_class_size; ++size) {
    const unsigned c = size_class_for(size);
    ASSERT_LT(c, first_odd_class) << size;
    ASSERT_GE(class_size(c), size) << size;
    ASSERT_TRUE(c == 0 || class_size(c - 1) < size) << size << " would fit a smaller class";
    ASSERT_TRUE(size < 128 || class_size(c) <= size + size / 7)
        << size << " wastes more than an eighth";
    ASSERT_EQ(class_size(c) % 16, 0u);
    const unsigned packed = packed_size_class_for(size);
    ASSERT_LT(packed, size_class_count) << size;
    ASSERT_EQ(class_size(packed), size <= 16    ? 16
                                  : size <= 128 ? (size + 7) / 8 * 8
                                                : class_size(c));
  }
}

// n/k has steps of at most an eighth; rounding down to whole lines adds to a step.
TEST(large_slabs, have_blocks_in_steps_of_an_eighth_beside_the_extents) {
  for (const std::size_t chunk : {16384u, 65536u}) {
    std::vector<std::size_t> sizes;
    for (const large_shape s : large_shapes) {
      const std::size_t size = large_block_size(chunk, s);
      ASSERT_EQ(size % 16, 0u);
      ASSERT_TRUE(size < 4096 || size % 64 == 0);
      ASSERT_LE(large_slab_first_block + s.blocks * size, s.chunks * chunk);
      ASSERT_GT(large_slab_first_block + s.blocks * (size + 64), s.chunks * chunk);
      sizes.push_back(size);
    }
    for (std::size_t n = 1; n <= 8; ++n) sizes.push_back(n * chunk);
    std::ranges::sort(sizes);
    for (std::size_t i = 1; i < sizes.size(); ++i)
      ASSERT_LE(sizes[i] * 1000, sizes[i - 1] * 1150) << sizes[i] << ", chunks of " << chunk;
  }
}

TEST(size_classes, slabs_have_a_state_for_each_block_and_end_in_their_chunk) {
  for (const std::size_t chunk : {4096u, 16384u, 65536u})
    for (unsigned c = 0; c < size_class_count; ++c) {
      if (class_size(c) > max_slab_block_size(chunk)) continue;
      const auto layout = slab_layout_of(chunk, class_size(c));
      ASSERT_GE(layout.capacity, 3u);
      ASSERT_GE(layout.first, layout.capacity);
      ASSERT_EQ(layout.first % 64, 0u);
      ASSERT_LE(layout.first + layout.capacity * class_size(c), chunk);
      ASSERT_GT(layout.first + (layout.capacity + 64) * class_size(c), chunk)
          << "a block more would fit";
    }
}

TEST(chunk_descriptor, comes_back_from_its_word) {
  for (const chunk_descriptor d : {chunk_descriptor{},
                                   {chunk_kind::small, 63, 0},
                                   {chunk_kind::extent, 0, ~std::uint32_t{0}},
                                   {chunk_kind::large_slab, 43, 13},
                                   {chunk_kind::tail, 0, 0}}) {
    const auto back = chunk_descriptor::unpack(d.pack());
    EXPECT_EQ(back.kind, d.kind);
    EXPECT_EQ(back.size_class, d.size_class);
    EXPECT_EQ(back.length, d.length);
    EXPECT_LT(d.pack(), guarded_limit);
  }
}

TEST(session, comes_back_from_its_word) {
  for (const bool open : {false, true})
    for (unsigned kind = 0; kind < 256; ++kind) {
      const auto back = session::unpack(
          session{.open = open, .log_kind = static_cast<std::uint8_t>(kind)}.pack());
      ASSERT_EQ(back.open, open);
      ASSERT_EQ(back.log_kind, kind);
    }
}

TEST(run_header, comes_back_from_its_word) {
  base::rng random(3);
  for (int i = 0; i < 10000; ++i) {
    const run_header h{random.below(std::uint64_t{1} << 44) * 8,
                       static_cast<std::uint8_t>(random()),
                       static_cast<std::uint32_t>(1 + random.below(max_run_words))};
    const auto back = run_header::unpack(h.pack());
    ASSERT_EQ(back.offset, h.offset);
    ASSERT_EQ(back.mask, h.mask);
    ASSERT_EQ(back.count, h.count);
  }
}

log_line random_line(base::rng& random) {
  log_line line;
  for (auto& w : line.words) w = random();
  return line;
}
line_header random_header(base::rng& random) {
  return {static_cast<std::uint8_t>(1 + random.below(7)),
          random.below(2) == 0,
          random.below(2) == 0,
          static_cast<std::uint32_t>(random()),
          static_cast<record_kind>(random.below(4)),
          static_cast<record_kind>(random.below(4)),
          random.below(2) == 0};
}

TEST(log_line, payload_and_header_come_back_in_both_senses) {
  base::rng random(4);
  for (int i = 0; i < 10000; ++i)
    for (const bool sense : {false, true}) {
      log_line line = random_line(random);
      const log_line before = line;
      const line_header header = random_header(random);
      seal(line, header, sense);
      ASSERT_TRUE(is_untorn(line, sense));
      ASSERT_FALSE(is_untorn(line, !sense));
      for (unsigned k = 1; k <= payload_words; ++k) ASSERT_EQ(payload(line, k), before.words[k]);
      const auto back = line_header::unpack(line.words[0]);
      ASSERT_EQ(back.pack(), header.pack());
      ASSERT_EQ(back.checksum, header.checksum);
    }
}

// Any mixture of a line of this lap with the previous lap (or zeroes, in the first lap) is torn.
TEST(log_line, every_torn_mixture_is_seen_in_both_senses) {
  base::rng random(5);
  for (const bool sense : {false, true}) {
    log_line fresh = random_line(random), old = random_line(random);
    seal(fresh, random_header(random), sense);
    seal(old, random_header(random), !sense);
    if (sense) old = log_line{};  // in the first lap the ring has zeroes
    for (unsigned written = 0; written < 255; ++written) {
      log_line torn = old;
      for (unsigned w = 0; w < 8; ++w)
        if ((written >> w & 1) != 0) torn.words[w] = fresh.words[w];
      ASSERT_FALSE(is_untorn(torn, sense)) << "words " << written;
    }
  }
}

// The worked example of docs/format/blocks.md: pool id 1, position 0.
TEST(log_block, the_example_of_its_page_is_what_is_stored) {
  const auto expect = [](const log_block& b, std::uint64_t data, std::uint64_t metadata) {
    EXPECT_EQ(b.data, data);
    EXPECT_EQ(b.metadata, metadata);
  };
  const log_block first = pack({block_kind::data, 0xFF, 42, 0x4000}, true);
  const log_block second = pack({block_kind::data, 0xFF, 0x8000000000000001u, 0x4008}, true);
  expect(first, 0x800000000000002Au, 0x00000000400003FDu);
  expect(second, 0x8000000000000001u, 0x00000000400803FFu);
  EXPECT_EQ(word_of(second), 0x8000000000000001u);
  base::checksum sum(1 ^ 0);
  for (const log_block& b : {first, second}) sum.add(b.data), sum.add(b.metadata);
  EXPECT_EQ(sum.value(), 0x3F67F2CE8BD0E147u);
  expect(pack({block_kind::commit, 0, 5, sum.value() >> 16}, true), 0x8000000000000005u,
         0x3F67F2CE8BD00C01u);
  expect(pack({}, true), 0x8000000000000000u, 0x0000000000000001u);
}

// A run of three words at every place of a line, with every displaced bit.
TEST(log_block, a_run_gives_back_its_words) {
  for (const bool sense : {false, true})
    for (std::uint64_t further = 1; further <= max_further_words; ++further)
      for (std::uint64_t bits = 0; bits < 128; ++bits) {
        alignas(64) std::array<log_block, blocks_per_line> line{};
        auto* const words = &line[0].data;
        const auto value = [&](std::uint64_t number) {
          return (bits >> number & 1) != 0 ? ~std::uint64_t{0} >> number
                                           : std::uint64_t{6} << number;
        };
        line[0] = pack({block_kind::data, 0xFF, value(0), 0x4000}, sense);
        for (std::uint64_t n = 1; n <= further; ++n) {
          const std::uint64_t place = n + 1;
          line[0].metadata = with_further_words(line[0].metadata, 1) |
                             (displaced_bit(value(n), place) ? displaced_mask(n) : 0);
          words[place] = seal_further(value(n), place, sense);
        }
        block_record r;
        ASSERT_TRUE(unpack(line[0], r));
        EXPECT_EQ(r.kind, block_kind::run);
        EXPECT_EQ(r.address, 0x4000u);
        EXPECT_EQ(r.further, further);
        EXPECT_EQ(word_at(place_of(line.data())), value(0));
        for (std::uint64_t n = 1; n <= further; ++n)
          ASSERT_EQ(word_at(place_of(words + n + 1, 0)), value(n)) << n << " of " << further;
        for (std::uint64_t b = 0; b <= further / 2; ++b)
          EXPECT_TRUE(is_untorn(line[b], sense)) << b << " of " << further;
      }
}

// The worked example of docs/format/log-structured.md: a chunk at 0x1c00, generation 1, lane 0; one
// entry.
TEST(log_chunk, the_example_of_its_page_is_what_is_stored) {
  constexpr std::uint64_t id = 1, chunk = 0x1C00;
  chunk_header h{.generation = 1,
                 .owner = chunk_header::pack_owner(log_type::update, 0),
                 .checksum = 0,
                 .previous = 0,
                 .next = 0,
                 .end = 0,
                 .first = 0,
                 .reserved = 0};
  h.checksum = chunk_checksum(h, id, chunk);
  EXPECT_EQ(h.owner, 1u);
  EXPECT_EQ(h.checksum, 0x7743691CC36E8D39u);
  std::uint64_t block[] = {5, block_preamble::pack_link(chunk + 64, 1), std::uint64_t{5} << 32,
                           entry_header{0x120B0, false, 1}.pack(), 7};
  block[2] |= block_crc(block_crc_seed(id, chunk + 64, h.generation), block);
  EXPECT_EQ(block[1], 0x0001000000001C40u);
  EXPECT_EQ(block[2], 0x000000057B2ABB4Du);
  EXPECT_EQ(block[3], 0x00010000000120B0u);
}

TEST(log_chunk, heads_come_back) {
  base::rng random(6);
  for (int i = 0; i < 10000; ++i) {
    const entry_header e{random.below(std::uint64_t{1} << 47), random.below(2) == 0,
                         static_cast<std::uint32_t>(random.below(max_entry_words + 1))};
    const auto back = entry_header::unpack(e.pack());
    ASSERT_EQ(back.offset, e.offset);
    ASSERT_EQ(back.tombstone, e.tombstone);
    ASSERT_EQ(back.words, e.words);
  }
}

// A CRC does not match under another generation, at another place, or with any bit changed.
TEST(log_chunk, a_block_is_one_only_where_and_when_it_was_written) {
  std::uint64_t block[] = {5, block_preamble::pack_link(0x1C40, 1), std::uint64_t{5} << 32,
                           entry_header{0x120B0, false, 1}.pack(), 7};
  const auto crc = block_crc(block_crc_seed(1, 0x1C40, 3), block);
  EXPECT_NE(block_crc(block_crc_seed(1, 0x1C40, 4), block), crc);
  EXPECT_NE(block_crc(block_crc_seed(1, 0x1C80, 3), block), crc);
  EXPECT_NE(block_crc(block_crc_seed(2, 0x1C40, 3), block), crc);
  for (unsigned bit = 0; bit < 5 * 64; ++bit) {
    if (bit / 64 == 2 && bit % 64 < 32) continue;  // the bits of the CRC itself
    block[bit / 64] ^= std::uint64_t{1} << bit % 64;
    EXPECT_NE(block_crc(block_crc_seed(1, 0x1C40, 3), block), crc) << bit;
    block[bit / 64] ^= std::uint64_t{1} << bit % 64;
  }
}

}  // namespace
}  // namespace stele::format
