// docs/format/heap.md describes what the program writes: bits of chunk descriptors, size classes,
// states of blocks in a pool.
#include <fmt/format.h>
#include <format/heap_layout.h>
#include <gtest/gtest.h>
#include <pool/memory_pool.h>
#include <stele/pool.h>
#include <tests/conformance/pools.h>
#include <tests/format/page.h>

namespace stele::testing {
namespace {

using format::chunk_descriptor;
using format::chunk_kind;

TEST(format_docs_heap, the_bits_of_a_chunk_descriptor) {
  const auto rows = page("heap.md").table("| bits | field |");
  expect_bits(rows,
              {{"kind", chunk_descriptor{.kind = chunk_kind{0xFF}}.pack()},
               {"size_class", chunk_descriptor{.size_class = 0xFF}.pack()},
               {"length", chunk_descriptor{.length = ~std::uint32_t{0}}.pack()}},
              format::guarded_limit - 1);
  const auto kinds = names_in(rows.at(0).at(2));
  const std::map<chunk_kind, std::string> names = {
      {chunk_kind::free, "free"},
      {chunk_kind::small, "slab"},
      {chunk_kind::extent, "extent"},
      {chunk_kind::tail, "further chunk of a run"},
      {chunk_kind::table, "the chunk table of a pool that has grown"},
      {chunk_kind::large_slab, "large slab"}};
  EXPECT_EQ(kinds.size(), names.size());
  for (const auto& [kind, name] : names) EXPECT_EQ(kinds.at(std::uint64_t(kind)), name);
  EXPECT_NE(
      rows.at(1).at(2).find(fmt::format("0x{:X},", chunk_descriptor::nonzero_free().size_class)),
      std::string::npos);
}

TEST(format_docs_heap, the_size_classes) {
  const page p("heap.md");
  ASSERT_EQ(p.between("Size class c holds blocks of ", " bytes for"), "`16 (c + 1)`");
  ASSERT_EQ(p.between("class `8 + 8d + s` holds blocks of ", " bytes:"),
            "`(128 << d) / 8 * (9 + s)`");
  for (std::size_t c = 0; c < 8; ++c) EXPECT_EQ(format::class_size(unsigned(c)), 16 * (c + 1));
  for (std::size_t d = 0; d < 7; ++d)
    for (std::size_t s = 0; s < 8; ++s)
      EXPECT_EQ(format::class_size(unsigned(8 + 8 * d + s)), (128u << d) / 8 * (9 + s));
  ASSERT_EQ(p.between("Class `64 + i` holds blocks of ", " bytes, i from"), "`24 + 16 i`");
  for (std::size_t i = 0; i <= 6; ++i) EXPECT_EQ(format::class_size(unsigned(64 + i)), 24 + 16 * i);
  EXPECT_EQ(format::size_class_count, 71u);
  ASSERT_EQ(p.between("the largest n with ", ". "), "`round64(n) + n * size <= chunk`");
  for (const std::size_t size : {16u, 144u, 1024u}) {
    const auto fits = [&](std::size_t n) { return (n + 63) / 64 * 64 + n * size <= 4096; };
    const auto layout = format::slab_layout_of(4096, size);
    EXPECT_TRUE(fits(layout.capacity) && !fits(layout.capacity + 1)) << size;
    EXPECT_EQ(layout.first, (layout.capacity + 63) / 64 * 64);
  }
}

TEST(format_docs_heap, the_shapes_of_large_slabs) {
  const page p("heap.md");
  std::string listed;
  for (const auto& row : p.table("| shapes | n/k |")) {
    const std::string begin = row.at(0).substr(0, row.at(0).find('-'));
    EXPECT_EQ(std::stoul(begin), std::size_t(std::ranges::count(listed, '/')));
    listed += (listed.empty() ? "" : ", ") + row.at(1);
  }
  std::string known;
  for (const auto& s : format::large_shapes)
    known += fmt::format("{}{}/{}", known.empty() ? "" : ", ", s.chunks, s.blocks);
  EXPECT_EQ(listed, known);
  ASSERT_EQ(p.between("Their size is ", ", rounded down"), "`(n * chunk - 64) / k`");
  for (const auto& s : format::large_shapes) {
    const std::size_t size = (s.chunks * std::size_t{65536} - 64) / s.blocks;
    EXPECT_EQ(format::large_block_size(65536, s), size >= 4096 ? size / 64 * 64 : size / 16 * 16);
  }
}

// A value of 5,000 bytes in a pool of chunks of 4 KiB: shape 31, four blocks in five chunks.
TEST(format_docs_heap, a_large_slab_is_as_the_page_has_it) {
  scratch_directory dir;
  pool_options options{.create_size = 1 << 20};
  options.engine.mechanism = "default", options.engine.media = "process";
  auto p = open_pool<field<std::uint64_t>>(dir.file("p"), options);
  std::uint64_t at = 0;
  const auto& file = p.core().state().file;
  ASSERT_TRUE(p.update([&](field<std::uint64_t>&) {
    auto* const value = make_array<field<std::uint64_t>>(625);
    at = std::uint64_t(reinterpret_cast<std::byte*>(value) - file.base());
  }));
  ASSERT_TRUE(p.sync());
  const format::pool_header& h = file.header();
  const std::size_t size = (5 * 4096 - 64) / 4 / 64 * 64;
  std::uint64_t chunk = (at - h.chunks_offset) >> h.chunk_shift;
  const auto packed = [&] {
    return format::read_control_word(file.base(), h.id, h.table_offset + 8 * chunk).value_or(0);
  };
  while (packed() == 3) --chunk;
  EXPECT_EQ(packed(), 5u | 31u << 8 | 5u << 16);
  const std::uint64_t begin = h.chunks_offset + (chunk << h.chunk_shift);
  EXPECT_EQ((at - begin - 64) % size, 0u);
  for (std::uint64_t i = 0; i < 64; ++i)
    EXPECT_EQ(std::to_integer<int>(*file.at(begin + i)), i == (at - begin - 64) / size ? 0xA5 : 0)
        << "block " << i;
  for (std::uint64_t further = 4; further-- > 0;) EXPECT_EQ((++chunk, packed()), 3u) << further;
}

// The slab of a root of 128 bytes: class 7, one block in use.
TEST(format_docs_heap, a_slab_is_as_the_page_has_it) {
  struct root {
    field<std::uint64_t> words[15];  // and the mark
  };
  scratch_directory dir;
  pool_options options{.create_size = 64 << 10};
  options.engine.mechanism = "default", options.engine.media = "process";
  const auto p = open_pool<root>(dir.file("p"), options);
  const auto& file = p.core().state().file;
  const format::pool_header& h = file.header();
  std::uint64_t at = 0;
  std::memcpy(&at, file.at(h.home_offset), 8);

  const std::uint64_t chunk = (at - h.chunks_offset) >> h.chunk_shift,
                      word = h.table_offset + 8 * chunk;
  const auto packed = format::read_control_word(file.base(), h.id, word);
  ASSERT_TRUE(packed);
  EXPECT_EQ(*packed, 1u | 7u << 8);
  const std::byte* const slab = file.at(h.chunks_offset + (chunk << h.chunk_shift));
  const auto states = page("heap.md").between("one state byte for each block (", ";");
  EXPECT_EQ(states, "0x00 free, 0xA5 used");
  const std::uint64_t block = (std::uint64_t(file.at(at) - slab) - 64) / 128;
  for (std::size_t i = 0; i < 64; ++i) {
    const bool states_differ = slab[i] != (i == block ? std::byte{0xA5} : std::byte{0x00});
    EXPECT_FALSE(states_differ) << "block " << i;
  }
  EXPECT_EQ(std::uint64_t(file.at(at) - slab), 64 + block * 128);
}

}  // namespace
}  // namespace stele::testing
