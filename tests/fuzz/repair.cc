// Header, guarded words, chunk table, checksums over home and sums of blocks.
#include <format/block_sums.h>
#include <format/heap_layout.h>
#include <format/parity_block.h>
#include <tests/fuzz/repair.h>
#include <tx/parity/matrix.h>

namespace stele::fuzz {

using format::pool_header;

namespace {

// Control words, in order of offset.
constexpr std::uint64_t words[] = {format::session_offset,
                                   format::watermark_offset,
                                   format::mapping_offset,
                                   format::parity_epoch_offset,
                                   format::checkpoint_offset,
                                   format::fallback_to_offset,
                                   format::fallback_from_offset,
                                   format::fallback_state_offset,
                                   format::growth_offset,
                                   format::growth_slot_offset(1),
                                   format::growth_slot_offset(1) + 8,
                                   format::growth_slot_offset(2),
                                   format::growth_slot_offset(2) + 8,
                                   format::sums_state_offset};

// Where the chunk table lies now, and how many chunks it has.
struct table {
  std::uint64_t offset, count;
};
table table_of(image pool) {
  const pool_header h = pool.header();
  const auto g = format::growth_in(pool.bytes().data(), h.id);
  if (!g || g->chunk_count == 0 || h.chunk_shift > 20) return {h.table_offset, h.chunk_count};
  return {h.chunks_offset + (g->table_chunk << h.chunk_shift), g->chunk_count};
}

}  // namespace

void guard_again(image pool, std::uint64_t offset, std::uint64_t id) {
  pool.put(offset, format::guard(pool.word(offset) & (format::guarded_limit - 1), id, offset));
}

void repair_header(image pool) {
  pool_header h = pool.header();
  h.magic = format::pool_magic;
  h.checksum = format::header_checksum(h);
  pool.put_header(0, h);
  pool.put_header(format::header_copy_offset, h);
}

void repair_words(image pool) {
  const std::uint64_t id = pool.header().id;
  for (const std::uint64_t offset : words) guard_again(pool, offset, id);
  const auto [offset, count] = table_of(pool);
  for (std::uint64_t i = 0; i < std::min(count, pool.size() / 8); ++i) guard_again(pool, offset + 8 * i, id);
}

void repair_parity(image pool) {
  const pool_header h = pool.header();
  if (h.parity_block_size != format::plain_block_size && h.parity_block_size != format::halves_block_size) return;
  format::parity_block block;
  for (std::uint64_t at = h.parity_offset; at < h.home_offset && pool.has(at, h.parity_block_size);
       at += h.parity_block_size) {
    std::memcpy(&block, pool.bytes().data() + at, h.parity_block_size);
    if (block.kind != format::parity_kind::none) pool.put(at, detail::checksum_of(block, h.parity_block_size, h.id ^ at));
  }
}

// Sums of 0 say nothing and stay so.
void repair_sums(image pool) {
  const pool_header h = pool.header();
  if (h.sums_offset == 0 || h.home_offset >= pool.size()) return;
  const auto [offset, count] = table_of(pool);
  const bool moved = offset != h.table_offset;
  const std::uint64_t blocks = format::sums_for(pool.size() - h.home_offset);
  const std::uint64_t sums =
      moved ? (offset + 8 * count + format::sum_block_size - 1) / format::sum_block_size * format::sum_block_size
            : h.sums_offset;
  for (std::uint64_t i = 0; i < blocks; ++i) {
    const std::uint64_t block = h.home_offset + i * format::sum_block_size, slot = sums + 8 * i;
    if (pool.word(slot) != 0 && pool.has(block, format::sum_block_size))
      pool.put(slot, format::sum_of_block(pool.bytes().data() + block, h.id, block));
  }
}

void repair_pool(image pool) {
  if (pool.size() < format::header_area) return;
  repair_header(pool);
  repair_words(pool);
  if (pool.header().home == format::home_kind::log) return repair_chunks(pool);
  repair_logs(pool);
  repair_parity(pool);
  repair_sums(pool);
}

}  // namespace stele::fuzz
