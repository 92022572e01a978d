// Growth and verification of a pool that is in use.
#include <base/check.h>
#include <fmt/format.h>
#include <pool/block_checksums.h>
#include <tx/open.h>

namespace stele::detail {

using base::fail;

result<> begin_maintenance(runtime& r, const char* what) {
  if (this_access.size != 0)
    return fail(errc::nested,
                fmt::format("{} cannot be {} inside a transaction; do it when that has ended",
                            r.state().file.path(), what));
  return r.check_usable();
}

namespace {

// The growth to a pool of at least `size` bytes. Behind the present chunks come those of the new
// chunk table and at least one more. The table grows with the chunk count, its own chunks included.
format::growth growth_to(const format::pool_header& h, std::uint64_t size) {
  const std::uint64_t chunk = std::uint64_t{1} << h.chunk_shift;
  std::uint64_t count = (size - h.chunks_offset + chunk - 1) >> h.chunk_shift;
  for (std::uint64_t least = 0;
       (least = h.chunk_count + storage::table_chunk_count(h, count) + 1) > count;)
    count = least;
  return {count, h.chunk_count};
}

}  // namespace

result<> grow(runtime& r, std::size_t size_bytes) {
  if (auto begun = begin_maintenance(r, "grown"); !begun) return begun;
  pool_state& state = r.state();
  const std::lock_guard one(r.maintenance());
  const auto& h = state.file.header();
  if (size_bytes <= h.size) return {};
  if (size_bytes > storage::max_pool_size)
    return fail(errc::invalid_argument,
                fmt::format("{} cannot have {} bytes; {} (64 TiB) are the most", state.file.path(),
                            size_bytes, storage::max_pool_size));
  if (h.home == format::home_kind::log || h.parity_block_size != 0)
    return fail(errc::unsupported, fmt::format("{} cannot grow: pools of log_structured and "
                                               "archapt have the size they were created with",
                                               state.file.path()));
  const format::growth to = growth_to(h, size_bytes);
  const auto after = storage::grown_header(h, to, state.file.path());
  if (!after) return std::unexpected(after.error());
  const runtime::pause paused(r);
  // Log records refer to words of the present chunk table: they must not count any more.
  if (auto empty = r.mechanism().checkpoint(); !empty) return empty;
  if (auto room = state.file.extend(after->size); !room) return room;
  state.heap.reserve_growth(to.chunk_count);  // allocates now: a grown pool cannot go back
  if (auto grown = r.mechanism().grow(to); !grown) return grown;
  if (auto checked = r.check_usable(); !checked) return checked;
  return state.heap.apply_growth();
}

result<> check_storage(runtime& r) {
  if (auto begun = begin_maintenance(r, "checked"); !begun) return begun;
  pool_state& state = r.state();
  const std::lock_guard one(r.maintenance());
  const runtime::pause paused(r);
  const storage::block_checksums sums(state.file);
  const auto kept = sums.valid();
  if (!kept) return std::unexpected(kept.error());
  if (*kept)  // until then the checksums are those of what is durable
    if (auto even = r.mechanism().refresh_block_checksums(); !even) return even;
  const auto heap = state.heap.audit();
  const auto judged = heap && *kept ? sums.verify(state.heap) : result<>{};
  // The verified bytes may be zeroes in place of a lost page.
  if (auto checked = r.check_usable(); !checked) return checked;
  if (!heap) return std::unexpected(heap.error());
  return judged;
}

}  // namespace stele::detail
