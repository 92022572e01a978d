// Growth of an open pool: docs/protocol/grow.md, steps 1 to 3.
#pragma once

#include <base/assert.h>
#include <base/mutant.h>
#include <tx/home_checksums.h>
#include <tx/pool_medium.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace stele::detail {

// The checksum array of a grown pool. A checksum is copied only of a block that lay in the former
// chunks or before them, and had one: any other block is `unknown`. These are the blocks behind the
// former chunks, where an attempt to grow that crashed may have stored, and those of the former
// array, which have no checksum while it is in force, up to the end of the chunks it lies in. The
// blocks of the new table, which the caller has stored, get theirs.
template <class Media>
std::vector<std::uint64_t> grown_checksums(const storage::block_checksums& sums,
                                           const std::byte* base, const format::pool_header& old,
                                           const format::pool_header& h) {
  const auto number_of = [&](std::uint64_t offset) {
    return (offset - h.home_offset) / format::checksum_block_size;
  };
  STELE_ASSERT_ALWAYS(old.block_checksums_offset != 0 && h.block_checksums_offset != 0);
  STELE_ASSERT_ALWAYS((old.block_checksums_offset - h.home_offset) % format::checksum_block_size ==
                      0);
  const bool keeps_all = planted<Media>(base::mutant::grow_sums_kept);
  std::vector<std::uint64_t> all(format::block_checksum_count(h.size - h.home_offset),
                                 format::block_checksum_unknown);
  STELE_ASSERT_ALWAYS(number_of(old.size) <= all.size() && old.chunks_end() <= old.size);
  std::memcpy(all.data(), base + old.block_checksums_offset,
              8 * number_of(keeps_all ? old.size : old.chunks_end()));
  if (old.table_offset >= old.chunks_offset && !keeps_all) {
    const std::uint64_t end =
        old.table_offset + (storage::table_chunk_count(old, old.chunk_count) << old.chunk_shift);
    STELE_ASSERT_ALWAYS(old.block_checksums_offset < end && end <= old.chunks_end());
    std::fill_n(all.begin() + static_cast<std::ptrdiff_t>(number_of(old.block_checksums_offset)),
                number_of(end) - number_of(old.block_checksums_offset),
                format::block_checksum_unknown);
  }
  for (std::uint64_t block = h.table_offset; block < h.block_checksums_offset;
       block += format::checksum_block_size)
    all[number_of(block)] = sums.compute(block);
  return all;
}

// Writes the whole chunk table and checksum array of a grown pool: an earlier attempt that crashed
// may have left other bytes there.
template <class Media>
[[nodiscard]] result<> write_grown_tables(pool_medium<Media>& medium,
                                          const storage::block_checksums& sums,
                                          const format::pool_header& old,
                                          const format::pool_header& h, std::uint64_t table_chunk) {
  const auto words = medium.state.heap.build_grown_table(
      h.chunk_count, table_chunk, storage::table_chunk_count(old, h.chunk_count));
  if (!words) return std::unexpected(words.error());
  std::byte* const base = medium.state.file.base();
  STELE_ASSERT_ALWAYS(words->size() == h.chunk_count);
  const std::uint64_t end =
      h.table_offset + (storage::table_chunk_count(old, h.chunk_count) << h.chunk_shift);
  STELE_ASSERT_ALWAYS(h.table_offset + 8 * words->size() <= end && end <= h.chunks_end());
  medium.put(base + h.table_offset, words->data(), 8 * words->size());
  if (h.block_checksums_offset == 0) return {};
  const auto all = grown_checksums<Media>(sums, base, old, h);
  STELE_ASSERT_ALWAYS(h.block_checksums_offset + 8 * all.size() <= end);
  medium.put(base + h.block_checksums_offset, all.data(), 8 * all.size());
  return {};
}

// Errors and preconditions: engine::grow.
template <class Media>
[[nodiscard]] result<> grow_pool(pool_medium<Media>& medium, const storage::block_checksums& sums,
                                 const format::growth& to) {
  using base::mutant;
  const auto old = medium.state.file.header();
  const auto h = storage::grown_header(old, to, medium.state.file.path());
  if (!h) return std::unexpected(h.error());
  // Table and checksums lie in the new chunks, for which there is room; what was stays in place.
  STELE_ASSERT_ALWAYS(h->table_offset >= old.chunks_end());
  STELE_ASSERT_ALWAYS(h->size <= medium.state.file.reserved_bytes());
  STELE_ASSERT_ALWAYS(h->home_offset == old.home_offset && h->chunks_offset == old.chunks_offset);
  STELE_ASSERT_ALWAYS(medium.state.deferred_logs.load() == 0 || medium.state.poisoned.load());
  if (auto written = write_grown_tables(medium, sums, old, *h, to.table_chunk); !written)
    return written;  // 1
  const auto in_force = medium.read_word(format::growth_offset);
  if (!in_force) return std::unexpected(in_force.error());
  const std::uint64_t slot = planted<Media>(mutant::grow_same_slot) || *in_force != 1 ? 1 : 2;
  // grow.md 1: the slot that is not in force.
  STELE_ASSERT_ALWAYS(base::holds(slot != *in_force));
  medium.write_word(format::growth_slot_offset(slot), to.chunk_count);
  medium.write_word(format::growth_slot_offset(slot) + 8, to.table_chunk);
  medium.control.fence();  // 2: table and slot are durable before the slot is in force
  medium.write_word(format::growth_offset, slot);
  medium.control.fence();  // 3: grown
  if (auto checked = medium.check(); !checked) return checked;
  medium.state.file.apply_growth(to);
  // The header in memory and the slot on media say the same.
  STELE_ASSERT_ALWAYS(medium.state.file.header().size == h->size &&
                      medium.state.file.header().table_offset == h->table_offset);
  return {};
}

}  // namespace stele::detail
