// Growth and judgement of a pool that is in use.
#include <base/check.h>
#include <fmt/format.h>
#include <pool/block_sums.h>
#include <tx/open.h>

namespace stele::detail {

using base::fail;

result<> outside_transactions(const runtime& r, const char* what) {
  if (this_access.size == 0) return {};
  return fail(errc::nested, fmt::format("{} cannot be {} inside a transaction; do it when that has ended", r.state().file.path(), what));
}

namespace {

// The chunks of a pool of at least so many bytes that has a new chunk table behind the present ones.
format::growth growth_to(const format::pool_header& h, std::uint64_t size) {
  const std::uint64_t chunk = std::uint64_t{1} << h.chunk_shift;
  std::uint64_t count = (size - h.chunks_offset + chunk - 1) >> h.chunk_shift;
  count = std::max(count, h.chunk_count + storage::table_run(h, count) + 1);
  return {count, h.chunk_count};
}

}  // namespace

result<> grow(runtime& r, std::size_t size_bytes) {
  if (auto outside = outside_transactions(r, "grown"); !outside) return outside;
  pool_state& state = r.state();
  const std::lock_guard one(r.upkeep());
  const auto& h = state.file.header();
  if (size_bytes <= h.size) return {};
  if (size_bytes > storage::largest_pool) return fail(errc::invalid_argument, fmt::format("{} cannot have {} bytes; {} (64 TiB) are the most", state.file.path(), size_bytes, storage::largest_pool));
  if (h.home == format::home_kind::log || h.parity_block_size != 0)
    return fail(errc::unsupported, fmt::format("{} cannot grow: pools of log_structured and archapt have the size they were created with", state.file.path()));
  const format::growth to = growth_to(h, size_bytes);
  const auto after = storage::grown(h, to, state.file.path());
  if (!after) return std::unexpected(after.error());
  const runtime::pause still(r);
  if (auto empty = r.mechanism().checkpoint(); !empty) return empty;  // no record speaks of the present table any more
  if (auto room = state.file.extend(after->size); !room) return room;
  state.heap.reserve_growth(to.chunk_count);  // when it has grown there is no way back
  if (auto grown = r.mechanism().grow(to); !grown) return grown;
  state.file.take_growth(to);
  return state.heap.take_growth();
}

result<> check_storage(runtime& r) {
  if (auto outside = outside_transactions(r, "checked"); !outside) return outside;
  pool_state& state = r.state();
  const std::lock_guard one(r.upkeep());
  const runtime::pause still(r);
  const storage::block_sums sums(state.file);
  const auto kept = sums.kept();
  if (!kept) return std::unexpected(kept.error());
  if (*kept)
    if (auto empty = r.mechanism().checkpoint(); !empty) return empty;  // sums go with what is durable
  if (auto heap = state.heap.audit(); !heap) return std::unexpected(heap.error());
  return *kept ? sums.verify(state.heap) : result<>{};
}

}  // namespace stele::detail
