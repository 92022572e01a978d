// Growth and verification of a pool that is in use.
#include <base/assert.h>
#include <base/check.h>
#include <fmt/format.h>
#include <pool/block_checksums.h>
#include <tx/attempt.h>
#include <tx/mechanism/catalog.h>
#include <tx/open.h>

#include <algorithm>
#include <utility>

namespace stele::detail {

using base::fail;

constinit thread_local const report_scope* report_scope::innermost_ = nullptr;

result<std::unique_lock<std::mutex>> begin_maintenance(runtime& r, const char* what) {
  if (this_access.size != 0)
    return fail(errc::nested,
                fmt::format("{} cannot be {} inside a transaction; do it when that has ended",
                            r.state().file.path(), what));
  if (r.reading() != nullptr)
    return fail(errc::read_only,
                fmt::format("{} is open for reading only, and cannot be {} here; do it in the "
                            "process that has it open, or with the command `stele pool`",
                            r.state().file.path(), what));
  if (r.is_of_parent()) return r.unusable();
  if (report_scope::exists(r))
    return fail(errc::nested, fmt::format("{} cannot be {} by the report of its backup; do it when "
                                          "the backup has ended",
                                          r.state().file.path(), what));
  std::unique_lock one(r.maintenance());
  // Under the lock: a growth changes the size that the file is expected to have.
  if (auto usable = r.check_usable(); !usable) return std::unexpected(usable.error());
  return one;
}

namespace {

// The growth to a pool of at least `size` bytes. Behind the present chunks come those of the new
// chunk table and at least one more. The table grows with the chunk count, its own chunks included.
format::growth growth_to(const format::pool_header& h, std::uint64_t size) {
  STELE_ASSERT_ALWAYS(size > h.chunks_offset);
  const std::uint64_t chunk = std::uint64_t{1} << h.chunk_shift;
  std::uint64_t count = (size - h.chunks_offset + chunk - 1) >> h.chunk_shift;
  for (std::uint64_t least = 0;
       (least = h.chunk_count + storage::table_chunk_count(h, count) + 1) > count;)
    count = least;
  STELE_ASSERT_ALWAYS(h.chunks_offset + (count << h.chunk_shift) >= size);
  STELE_ASSERT_ALWAYS(count > h.chunk_count + storage::table_chunk_count(h, count));
  return {count, h.chunk_count};
}

// The caller holds the maintenance mutex.
result<> grow_now(runtime& r, std::size_t size_bytes) {
  pool_state& state = r.state();
  const auto& h = state.file.header();
  if (size_bytes <= h.size) return {};
  if (size_bytes > storage::max_pool_size)
    return fail(errc::invalid_argument,
                fmt::format("{} cannot have {} bytes; {} (64 TiB) are the most", state.file.path(),
                            size_bytes, storage::max_pool_size));
  const auto used = find_mechanism(r.mechanism_name());
  if (!used) return std::unexpected(used.error());
  if (!can_grow(h, **used)) return std::unexpected(fixed_size_error(state.file.path()));
  const format::growth to = growth_to(h, size_bytes);
  const auto after = storage::grown_header(h, to, state.file.path());
  if (!after) return std::unexpected(after.error());
  STELE_ASSERT_ALWAYS(after->size >= size_bytes && after->size > h.size);
  const pool_pause paused = r.pause();
  // Log records refer to words of the present chunk table: they must not count any more.
  if (auto empty = r.mechanism().checkpoint(); !empty) return empty;
  if (auto room = state.file.extend(after->size); !room) return room;
  STELE_ASSERT_ALWAYS(h.chunk_count == to.table_chunk);  // no other growth since `to`
  state.heap.reserve_growth(to.chunk_count);  // allocates now: a grown pool cannot go back
  if (auto grown = r.mechanism().grow(to); !grown) return grown;
  STELE_ASSERT_ALWAYS(h.size == after->size && h.chunk_count == to.chunk_count);
  if (auto checked = r.check_usable(); !checked) return checked;
  auto applied = state.heap.apply_growth();
  // The file has grown and the heap in memory has not: nothing more may be allocated by it.
  if (!applied) state.poison(pool_state::poison_cause::overwritten);
  return applied;
}

// By half, seldom, since each growth writes a new chunk table; where the device has no room for
// that, by what was wanted. The caller holds the maintenance mutex.
result<> grow_by(runtime& r, std::uint64_t wanted) {
  const auto& h = r.state().file.header();
  const std::uint64_t chunk = std::uint64_t{1} << h.chunk_shift;
  const std::uint64_t least = h.size + wanted + chunk;
  // Whole chunks: a pool that was made may be shorter than its last one.
  const std::uint64_t most = h.chunks_offset + (r.max_size() - h.chunks_offset) / chunk * chunk;
  if (wanted > r.max_size() || r.max_size() < h.size + 2 * chunk || least > most ||
      h.chunks_offset + (growth_to(h, most).chunk_count << h.chunk_shift) > r.max_size())
    return fail(errc::full, fmt::format("it has {} bytes and may not have more than {} "
                                        "(the option max_size)",
                                        h.size, r.max_size()));
  auto grown = grow_now(r, std::clamp(h.size + h.size / 2, least, most));
  if (!grown && grown.error().code == errc::full) grown = grow_now(r, least);
  STELE_ASSERT_ALWAYS(!grown || (h.size >= least && h.size <= r.max_size()));
  return grown;
}

}  // namespace

bool can_grow(const format::pool_header& h) noexcept {
  return h.home == format::home_kind::in_place && h.parity_block_size == 0;
}
// One that keeps parity has a place for each part of home that there was when it began.
bool can_grow(const format::pool_header& h, const mechanism_entry& used) noexcept {
  return can_grow(h) && !used.has_parity;
}
error fixed_size_error(const std::string& path) {
  return {errc::unsupported,
          path +
              " cannot grow: pools of log_structured and archapt have the size they were created "
              "with, and archapt lets no pool grow. Open it without max_size, or with 'default' if "
              "that made it, or copy it into a larger one"};
}

result<> grow(runtime& r, std::size_t size_bytes) {
  const auto begun = begin_maintenance(r, "grown");
  if (!begun) return std::unexpected(begun.error());
  if (auto there = r.check_in_place(); !there) return there;
  return grow_now(r, size_bytes);
}

bool grow_for(runtime& r, error& why) {
  STELE_ASSERT_ALWAYS(this_access.size == 0);  // growth is never a part of a transaction
  const wanted_room wanted = std::exchange(this_attempt.wanted, {});
  if (wanted.bytes == 0 || r.max_size() == 0) return false;
  const auto begun = begin_maintenance(r, "grown");
  if (!begun) return false;
  // Another thread may have grown it.
  if (r.state().file.header().size > wanted.pool_size) return true;
  const auto grown = grow_by(r, wanted.bytes);
  if (!grown) why.message += "; it cannot grow: " + grown.error().message;
  return grown.has_value();
}

void make_room(runtime& r) noexcept {
  this_attempt.wanted = {1, r.state().file.header().size};
  error unused{errc::full, ""};
  try {
    (void)grow_for(r, unused);
  } catch (const std::bad_alloc&) {
    // The next transaction reports that it finds no room.
  }
}

result<> check_storage(runtime& r) {
  const auto begun = begin_maintenance(r, "checked");
  if (!begun) return std::unexpected(begun.error());
  pool_state& state = r.state();
  const pool_pause paused = r.pause();
  const storage::block_checksums sums(state.file);
  const auto kept = sums.valid();
  if (!kept) return std::unexpected(kept.error());
  if (*kept)  // until then the checksums are those of what is durable
    if (auto even = r.mechanism().refresh_block_checksums(); !even) return even;
  const auto still_kept = sums.valid();  // without memory it has given the checksums up
  if (!still_kept) return std::unexpected(still_kept.error());
  const auto heap = check_heap(state);
  const auto judged = heap && *still_kept ? sums.verify(state.heap) : result<>{};
  // The verified bytes may be zeroes in place of a lost page.
  if (auto checked = r.check_usable(); !checked) return checked;
  if (!heap) return std::unexpected(heap.error());
  return judged ? r.check_in_place() : judged;
}

}  // namespace stele::detail
