// Repairs header, guarded words, chunk table, parity blocks and block checksums.
#include <format/block_checksums.h>
#include <format/heap_layout.h>
#include <format/parity_block.h>
#include <published/archapt/parity_matrix.h>
#include <tests/fuzz/repair.h>

namespace stele::fuzz {

using format::pool_header;

namespace {

// Control words, in order of offset.
constexpr std::uint64_t words[] = {format::session_offset,
                                   format::watermark_offset,
                                   format::saved_map_offset,
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
                                   format::block_checksum_state_offset,
                                   format::magic_state_offset};

// The offset of the chunk table, and its number of chunks.
struct table {
  std::uint64_t offset, count;
};
table table_of(image pool) {
  const pool_header h = pool.header();
  const auto g = format::read_growth(pool.bytes().data(), h.id);
  if (!g || g->chunk_count == 0 || h.chunk_shift > 20) return {h.table_offset, h.chunk_count};
  return {h.chunks_offset + (g->table_chunk << h.chunk_shift), g->chunk_count};
}

// Keeps the kind of an entry: unknown, never written (for a zero block), or else the block's
// checksum.
std::uint64_t sum_again(image pool, std::uint64_t block, std::uint64_t said, bool earlier) {
  const std::uint64_t id = pool.header().id;
  const std::byte* const bytes = pool.bytes().data() + block;
  if (earlier) return said == 0 ? 0 : format::compute_legacy_block_checksum(bytes, id, block);
  const std::uint64_t now = format::compute_block_checksum(bytes, id, block);
  if (said == format::block_checksum_unknown) return said;
  return said == format::block_checksum_never_written &&
                 now == format::zero_block_checksum(id, block)
             ? said
             : now;
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
  pool.put_header(format::header_copy_offset_of(h), h);
}

void repair_words(image pool) {
  const std::uint64_t id = pool.header().id;
  for (const std::uint64_t offset : words) guard_again(pool, offset, id);
  const auto [offset, count] = table_of(pool);
  for (std::uint64_t i = 0; i < std::min(count, pool.size() / 8); ++i)
    guard_again(pool, offset + 8 * i, id);
  const pool_header h = pool.header();
  if (h.home == format::home_kind::in_place)
    guard_again(pool, h.home_offset + offsetof(format::home_header, magic), id);
}

void repair_parity(image pool) {
  const pool_header h = pool.header();
  if (h.parity_block_size != format::plain_block_size &&
      h.parity_block_size != format::halves_block_size)
    return;
  format::parity_block block;
  for (std::uint64_t at = h.parity_offset; at < h.home_offset && pool.has(at, h.parity_block_size);
       at += h.parity_block_size) {
    std::memcpy(&block, pool.bytes().data() + at, h.parity_block_size);
    if (block.kind != format::parity_kind::none)
      pool.put(at, detail::checksum_of(block, h.parity_block_size, h.id ^ at));
  }
}

void repair_sums(image pool) {
  const pool_header h = pool.header();
  if (h.block_checksums_offset == 0 || h.home_offset >= pool.size()) return;
  const auto [offset, count] = table_of(pool);
  const bool moved = offset != h.table_offset;
  const bool earlier =
      (pool.word(format::block_checksum_state_offset) & (format::guarded_limit - 1)) == 0;
  const std::uint64_t blocks = format::block_checksum_count(pool.size() - h.home_offset);
  const std::uint64_t sums = moved ? (offset + 8 * count + format::checksum_block_size - 1) /
                                         format::checksum_block_size * format::checksum_block_size
                                   : h.block_checksums_offset;
  for (std::uint64_t i = 0; i < blocks; ++i) {
    const std::uint64_t block = h.home_offset + i * format::checksum_block_size,
                        slot = sums + 8 * i;
    const bool of_sums = block + format::checksum_block_size > sums && block < sums + 8 * blocks;
    const bool left_behind = moved && block != h.home_offset && block < h.chunks_offset;
    if (!of_sums && !left_behind && pool.has(block, format::checksum_block_size))
      pool.put(slot, sum_again(pool, block, pool.word(slot), earlier));
  }
}

void repair_pool(image pool) {
  if (pool.size() < format::front_size) return;
  repair_header(pool);
  repair_words(pool);
  if (pool.header().home == format::home_kind::log) return repair_chunks(pool);
  repair_logs(pool);
  repair_parity(pool);
  repair_sums(pool);
}

}  // namespace stele::fuzz
