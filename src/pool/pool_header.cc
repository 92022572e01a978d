// The headers of pools: made for a geometry, checked, and that of a pool that has grown.
#include <base/assert.h>
#include <base/check.h>
#include <fmt/format.h>
#include <media/os.h>
#include <pool/header_version.h>
#include <pool/pool_file.h>

#include <format/block_checksums.h>
#include <format/parity_block.h>
#include <algorithm>
#include <bit>

namespace stele::storage {

using base::fail;
using base::fail_errno;
using format::pool_header;
namespace os = media::os;

namespace {

constexpr std::size_t min_pool_size = 32 * 1024;
static_assert(file_page == format::header_area_size && file_page % format::checksum_block_size == 0,
              "header and copy lie in pages of their own; no checksum is of parts of two pages");
static_assert(min_pool_size >= format::front_size + 2 * file_page + file_page + 2 * file_page,
              "the smallest pool has two logs, a page of tables and chunks");

std::size_t chunk_shift_for(std::size_t size) {
  return size >= (64u << 20) ? 16 : size >= (4u << 20) ? 14 : 12;
}

// Log chunks fill the file. Home is only addresses, four times as many as the file has bytes, so
// that fragmentation of the heap wastes nothing of the file.
result<pool_header> plan_log_structured(const pool_geometry& s, pool_header h) {
  h.home = format::home_kind::log;
  h.log_size = s.log_size != 0 ? s.log_size
                               : std::clamp<std::size_t>(std::bit_floor(s.size / 256), 1024, 32768);
  if (!std::has_single_bit(h.log_size) || h.log_size < 1024 || h.log_size > (256u << 10) ||
      (s.size - h.log_offset) / h.log_size < 8 ||
      (s.size - h.log_offset) / h.log_size > ~std::uint32_t{0})
    return fail(errc::invalid_argument,
                fmt::format("chunks of {} bytes do not suit a log-structured pool of {} bytes: a "
                            "power of two from 1024 to 262144, and from 8 to 4294967295 of them",
                            h.log_size, s.size));
  h.log_count = static_cast<std::uint32_t>(
      s.log_count != 0 ? s.log_count : std::clamp<std::size_t>(s.size >> 20, 2, 16));
  h.home_offset = h.size;
  h.home_size = round_up(4 * h.size, std::size_t{1} << 20);
  h.chunk_shift = static_cast<std::uint32_t>(chunk_shift_for(h.home_size / 4));
  STELE_ASSERT_ALWAYS(h.home_offset % file_page == 0 && h.home_size <= 64 * h.size);
  STELE_ASSERT_ALWAYS(h.log_chunks() == (h.size - h.log_offset) / h.log_size);
  return h;
}

// Where block checksums begin, and where they end, for a chunk table at `table`.
std::uint64_t block_checksums_offset_after(std::uint64_t table, std::uint64_t chunk_count) {
  return round_up(table + 8 * chunk_count, format::checksum_block_size);
}
std::uint64_t tables_end(bool sums, std::uint64_t table, std::uint64_t chunk_count,
                         std::uint64_t home_bytes) {
  return sums ? block_checksums_offset_after(table, chunk_count) +
                    8 * format::block_checksum_count(home_bytes)
              : table + 8 * chunk_count;
}

bool valid_block_checksums(const pool_header& h);

// Sets the offsets of the parts of home, from home_offset to `end`.
void lay_out_home(pool_header& h, std::uint64_t end, bool sums = false) {
  STELE_ASSERT_ALWAYS(h.home_offset % file_page == 0 && end % file_page == 0 &&
                      h.home_offset < end);
  STELE_ASSERT_ALWAYS(h.chunk_shift >= 12 && h.chunk_shift <= 20);
  const std::size_t chunk = std::size_t{1} << h.chunk_shift;
  h.table_offset = h.home_offset + sizeof(format::home_header);
  h.chunk_count = (end - h.table_offset) / (chunk + 8);
  if (sums) h.block_checksums_offset = block_checksums_offset_after(h.table_offset, h.chunk_count);
  h.chunks_offset =
      round_up(tables_end(sums, h.table_offset, h.chunk_count, end - h.home_offset), file_page);
  while (h.chunk_count != 0 && h.chunks_offset + h.chunk_count * chunk > end) --h.chunk_count;
  // pool.md: chunk table and block checksums end before the chunks; grow.md: a chunk is left at
  // most, and a whole one only where its table word would take another page.
  STELE_ASSERT_ALWAYS(valid_block_checksums(h));
  STELE_ASSERT_ALWAYS(
      h.chunk_count == 0 || end - h.chunks_end() < chunk ||
      (end - h.chunks_end() == chunk && h.table_offset + 8 * h.chunk_count == h.chunks_offset));
}

// Reserves space between logs and home: for the parity blocks of a home slightly larger than it
// will be, and for a checkpoint copy of home.
void lay_out_parity(pool_header& h, const pool_geometry& s) {
  const std::uint64_t covered =
      format::matrix_lines * format::line_size * (s.checkpoint_commits != 0 ? 2 : 1);
  STELE_ASSERT_ALWAYS(h.home_offset < h.size && h.parity_offset == 0);
  STELE_ASSERT_ALWAYS(s.parity_block_size == format::plain_block_size ||
                      s.parity_block_size == format::halves_block_size);
  const std::uint64_t each = std::uint64_t{format::parity_blocks} * s.parity_block_size,
                      rest = h.size - h.home_offset;
  h.parity_offset = h.home_offset;
  h.parity_block_size = s.parity_block_size;
  h.home_offset =
      round_up(h.parity_offset + (rest + covered + each - 1) / (covered + each) * each, file_page);
  if (s.checkpoint_commits == 0 || h.home_offset >= h.size) return;
  h.checkpoint_commits = s.checkpoint_commits;
  h.home_copy_offset = h.home_offset;
  h.home_offset += round_up((h.size - h.home_copy_offset) / 2, file_page);
}

bool valid_parity(const pool_header& h) {
  if (h.parity_block_size == 0)
    return h.parity_offset == 0 && h.home_copy_offset == 0 && h.checkpoint_commits == 0;
  const bool sane_copy = h.home_copy_offset == 0
                             ? h.checkpoint_commits == 0
                             : h.checkpoint_commits != 0 && h.home_copy_offset % file_page == 0 &&
                                   h.home_copy_offset > h.parity_offset &&
                                   h.home_copy_offset < h.home_offset &&
                                   h.size - h.home_offset <= h.home_offset - h.home_copy_offset;
  const std::uint64_t end = h.home_copy_offset != 0 ? h.home_copy_offset : h.home_offset;
  const std::uint64_t each = std::uint64_t{format::parity_blocks} * h.parity_block_size;
  return (h.parity_block_size == format::plain_block_size ||
          h.parity_block_size == format::halves_block_size) &&
         h.parity_offset < h.home_offset && h.home_offset < h.size &&
         h.home_offset % file_page == 0 && sane_copy &&
         format::matrix_count(h.size - h.home_offset) <= (end - h.parity_offset) / each;
}

// The chunk table may have room for more chunks than fit after it.
bool valid_block_checksums(const pool_header& h) {
  if (h.block_checksums_offset == 0) return h.chunks_offset >= h.table_offset + 8 * h.chunk_count;
  return h.home == format::home_kind::in_place &&
         h.block_checksums_offset % format::checksum_block_size == 0 &&
         h.block_checksums_offset >= h.table_offset + 8 * h.chunk_count &&
         h.block_checksums_offset < h.chunks_offset &&
         h.chunks_offset - h.block_checksums_offset >=
             8 * format::block_checksum_count(h.size - h.home_offset);
}

bool valid_logs(const pool_header& h) {
  if (h.home == format::home_kind::log)
    return std::has_single_bit(h.log_size) && h.log_size >= 1024 && h.log_size <= (256u << 10) &&
           h.home_offset == h.size && h.size % file_page == 0 && h.log_chunks() >= 8 &&
           h.home_size % file_page == 0 && h.home_size <= 64 * h.size && h.parity_offset == 0 &&
           h.parity_block_size == 0 && h.home_copy_offset == 0 && h.checkpoint_commits == 0;
  return h.home == format::home_kind::in_place && h.home_size == 0 && h.size % file_page == 0 &&
         h.log_size % file_page == 0 && h.log_size >= file_page && h.log_size <= h.size &&
         (h.parity_block_size != 0 ? h.parity_offset : h.home_offset) ==
             h.log_offset + h.log_count * h.log_size &&
         h.home_offset < h.size && valid_parity(h);
}

}  // namespace

result<std::uint64_t> generate_pool_id() {
  std::uint64_t id = 0;
  while (id == 0) {
    const ssize_t drawn = os::getrandom(&id, sizeof id);
    if (drawn == ssize_t{sizeof id} || (drawn < 0 && errno == EINTR)) continue;
    return fail_errno(errc::io,
                      "the system gives no random bytes (getrandom), so the pool can have no id; "
                      "see that this process may call it");
  }
  return id;
}

result<pool_header> pool_file::make_header(const pool_geometry& s) {
  if (s.size < min_pool_size || s.size > max_pool_size)
    return fail(
        errc::invalid_argument,
        fmt::format("a pool of {} bytes is not possible; choose from {} (32 KiB) to {} (64 TiB)",
                    s.size, min_pool_size, max_pool_size));
  if (s.layout.size() >= format::layout_name_size)
    return fail(errc::invalid_argument,
                fmt::format("the layout name is {} bytes long; {} are the most", s.layout.size(),
                            format::layout_name_size - 1));
  auto too_much_log = [&](std::size_t count, std::size_t bytes) {
    return fail(
        errc::invalid_argument,
        fmt::format(
            "{} logs of {} bytes do not fit a pool of {} bytes (half of it and 4096 logs at most)",
            count, bytes, s.size));
  };
  if (s.log_count > 4096 || s.log_size > s.size) return too_much_log(s.log_count, s.log_size);
  pool_header h{};
  h.magic = format::pool_magic;
  h.version = format::pool_version;
  h.header_size = sizeof h;
  const auto id = generate_pool_id();
  if (!id) return std::unexpected(id.error());
  h.id = *id;
  h.size = s.size / file_page * file_page;
  h.log_offset = format::front_size;
  std::copy(s.layout.begin(), s.layout.end(), h.layout.begin());
  if (s.home == format::home_kind::log) {
    auto planned = plan_log_structured(s, h);
    if (!planned) return planned;
    lay_out_home(*planned, planned->offset_end());
    planned->checksum = format::header_checksum(*planned);
    STELE_ASSERT_ALWAYS(check_header(*planned, false, planned->size, "a new pool").has_value());
    return planned;
  }
  h.log_count = static_cast<std::uint32_t>(
      s.log_count != 0 ? s.log_count : std::clamp<std::size_t>(s.size >> 20, 2, 16));
  h.log_size = s.log_size != 0
                   ? round_up(s.log_size, file_page)
                   : std::clamp<std::size_t>(s.size / (8 * h.log_count) / file_page * file_page,
                                             file_page, 1u << 20);
  if (h.log_count * h.log_size > s.size / 2) return too_much_log(h.log_count, h.log_size);
  h.home_offset = h.log_offset + h.log_count * h.log_size;
  if (s.parity_block_size != 0) lay_out_parity(h, s);
  h.chunk_shift =
      s.chunk_shift != 0 ? s.chunk_shift : static_cast<std::uint32_t>(chunk_shift_for(s.size));
  const auto no_room = [&] {
    return fail(errc::invalid_argument,
                fmt::format("a pool of {} bytes has no room for objects beside its logs, checksums "
                            "and checkpoint; make it larger",
                            s.size));
  };
  if (h.home_offset + file_page + (std::size_t{1} << h.chunk_shift) > h.size) return no_room();
  lay_out_home(h, h.size, s.sums);
  if (h.chunk_count == 0) return no_room();
  h.checksum = format::header_checksum(h);
  STELE_ASSERT_ALWAYS(check_header(h, false, h.size, "a new pool").has_value());
  return h;
}

void pool_file::write_header(std::byte* zeroes, const pool_header& h) noexcept {
  STELE_ASSERT_ALWAYS(is_whole(h));
  STELE_ASSERT_ALWAYS(format::header_copy_offset_of(h) + sizeof h <= h.log_offset);
  const std::uint64_t word = format::guard(format::session{}.pack(), h.id, format::session_offset);
  std::memcpy(zeroes + format::session_offset, &word, sizeof word);
  std::memcpy(zeroes, &h, sizeof h);
  std::memcpy(zeroes + format::header_copy_offset_of(h), &h, sizeof h);
}

result<> check_header(const pool_header& h, bool copy_is_usable, std::uint64_t file_size,
                      const std::string& path) {
  if (!(h.magic == format::pool_magic && h.checksum == format::header_checksum(h)) &&
      copy_is_usable)
    return fail(errc::corrupt,
                fmt::format("the header of {} is damaged, but the copy of it in the pool is whole: "
                            "`stele pool check --repair {}` restores it",
                            path, path));
  if (h.magic != format::pool_magic)
    return fail(
        errc::not_a_pool,
        fmt::format(
            "{} is not a stele pool (its first bytes are not a pool's); nothing was changed",
            path));
  if (!format::is_known_pool_version(h.version))
    return fail(errc::version, fmt::format("{} is a pool of format version {}; this program reads "
                                           "those up to version {}: use the matching release",
                                           path, h.version, format::pool_version));
  if (h.checksum != format::header_checksum(h))
    return fail(
        errc::corrupt,
        fmt::format("the header of {} is damaged (checksum); restore the pool from a copy", path));
  if (file_size < h.size)
    return fail(
        errc::corrupt,
        fmt::format("{} has {} of its {} bytes: it has been truncated; restore it from a copy",
                    path, file_size, h.size));
  const std::uint64_t chunk = h.chunk_shift < 32 ? std::uint64_t{1} << h.chunk_shift : 0;
  const bool sane =
      h.header_size == sizeof h && h.id != 0 && h.size <= max_pool_size &&
      (h.log_offset == format::front_size || h.log_offset == format::header_area_size) &&
      h.log_count >= 1 && h.log_count <= 4096 && h.log_size != 0 && h.size > h.log_offset &&
      valid_logs(h) && chunk >= file_page && chunk <= (1u << 20) &&
      h.table_offset == h.home_offset + sizeof(format::home_header) && h.chunk_count >= 1 &&
      h.chunk_count <= h.offset_end() / chunk && h.chunks_offset % file_page == 0 &&
      h.chunks_offset <= h.offset_end() && valid_block_checksums(h) &&
      h.chunks_offset + h.chunk_count * chunk <= h.offset_end();
  if (!sane)
    return fail(
        errc::corrupt,
        fmt::format("the header of {} contradicts itself; restore the pool from a copy", path));
  // What the checks establish for all that reads a pool: its parts follow each other.
  STELE_ASSERT_ALWAYS(h.log_offset < h.home_offset && h.home_offset < h.table_offset &&
                      h.table_offset < h.chunks_offset && h.chunks_end() <= h.offset_end());
  STELE_ASSERT_ALWAYS(h.home_offset % file_page == 0 && h.log_offset % file_page == 0);
  return {};
}

result<pool_header> parse_header(const std::byte* front, std::uint64_t file_size,
                                 const std::string& path) {
  const pool_header h = read_header(front);
  if (auto fine = check_header(h, find_header_copy(front).has_value(), file_size, path); !fine)
    return std::unexpected(fine.error());
  const auto g = format::read_growth(front, h.id);
  if (!g)
    return fail(errc::corrupt, fmt::format("{}: the words that say how it has grown are damaged "
                                           "(check bits); restore the pool from a copy",
                                           path));
  STELE_ASSERT_ALWAYS(g->chunk_count != 0 || g->table_chunk == 0);
  if (g->chunk_count == 0) return h;
  auto now = grown_header(h, *g, path);
  if (now && file_size < now->size)
    return fail(
        errc::corrupt,
        fmt::format("{} has {} of its {} bytes: it has been truncated; restore it from a copy",
                    path, file_size, now->size));
  return now;
}

std::uint64_t table_chunk_count(const pool_header& h, std::uint64_t chunk_count) noexcept {
  const std::uint64_t chunk = std::uint64_t{1} << h.chunk_shift,
                      home_bytes = h.chunks_offset + chunk_count * chunk - h.home_offset;
  return (tables_end(h.block_checksums_offset != 0, 0, chunk_count, home_bytes) + chunk - 1) /
         chunk;
}

result<pool_header> grown_header(pool_header h, const format::growth& g, const std::string& path) {
  const std::uint64_t run = table_chunk_count(h, g.chunk_count);
  const bool sane = h.home == format::home_kind::in_place && h.parity_block_size == 0 &&
                    g.chunk_count > h.chunk_count &&
                    g.chunk_count <= max_pool_size >> h.chunk_shift &&
                    h.chunks_offset + (g.chunk_count << h.chunk_shift) >= h.size &&
                    run < g.chunk_count && g.table_chunk <= g.chunk_count - run;
  if (!sane)
    return fail(errc::corrupt, fmt::format("{}: the words that say how it has grown contradict its "
                                           "header; restore the pool from a copy",
                                           path));
  h.chunk_count = g.chunk_count;
  h.size = h.chunks_offset + (g.chunk_count << h.chunk_shift);
  h.table_offset = h.chunks_offset + (g.table_chunk << h.chunk_shift);
  if (h.block_checksums_offset != 0)
    h.block_checksums_offset = block_checksums_offset_after(h.table_offset, h.chunk_count);
  // grow.md: the table's chunks hold table and block checksums, and the pool ends with its chunks.
  STELE_ASSERT_ALWAYS(tables_end(h.block_checksums_offset != 0, h.table_offset, h.chunk_count,
                                 h.size - h.home_offset) <=
                      h.table_offset + (run << h.chunk_shift));
  STELE_ASSERT_ALWAYS(h.chunks_end() == h.size &&
                      h.table_offset + (run << h.chunk_shift) <= h.size);
  return h;
}

}  // namespace stele::storage
