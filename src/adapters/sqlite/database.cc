// Reads of a database, and the steps of its commits and flushes: docs/protocol/sqlite.md.
#include "database.h"

#include <base/assert.h>
#include <base/mutant.h>

#include <algorithm>
#include <cstring>

namespace stele::sqlite {

namespace {

// Another thread may store to `from` meanwhile; the caller checks the stamp afterwards.
void copy_beside_stores(std::byte* to, const std::byte* from, std::size_t size) noexcept {
#if defined(STELE_SCHEDULED)
  // Another thread may go on in the middle.
  std::memcpy(to, from, size / 2);
  (void)__atomic_load_n(reinterpret_cast<const char*>(from), __ATOMIC_RELAXED);
  std::memcpy(to + size / 2, from + size / 2, size - size / 2);
#elif defined(__SANITIZE_THREAD__)
  for (std::size_t i = 0; i < size; ++i)
    to[i] = static_cast<std::byte>(
        __atomic_load_n(reinterpret_cast<const char*>(from + i), __ATOMIC_RELAXED));
#else
  std::memcpy(to, from, size);
#endif
}

constexpr pending_writes::block zeroes{};

// Calls f(number, bytes) for each block that these writes change, in the order of numbers, but not
// for those that were stored before the commit: written blocks, and zeroes where the database was
// cut and is longer again.
template <class Call>
void for_each_block(pending_writes& writes, Call&& f) {
  const std::uint64_t end = blocks_of(writes.size());
  std::uint64_t unwritten = blocks_of(writes.stored_limit());
  const auto fill_until = [&](std::uint64_t number) {
    for (; unwritten < std::min(number, end); ++unwritten)
      if (!writes.is_early(unwritten)) f(unwritten, zeroes.data());
  };
  for (const auto& w : writes.in_order()) {
    fill_until(w.number);
    if (w.number >= end) break;
    f(w.number, w.bytes->data());
    unwritten = std::max(unwritten, w.number + 1);
  }
  fill_until(end);
}

// Checks short lists only.
[[maybe_unused]] bool has_each_once(std::span<const std::uint64_t> numbers) noexcept {
  if (numbers.size() > 64) return true;
  for (; !numbers.empty(); numbers = numbers.subspan(1))
    if (std::ranges::count(numbers, numbers.front()) > 1) return false;
  return true;
}

[[maybe_unused]] bool are_below(std::span<const std::uint64_t> numbers,
                                std::uint64_t end) noexcept {
  return std::ranges::all_of(numbers, [&](std::uint64_t number) { return number < end; });
}

}  // namespace

database::database(open_pool& pool, stored_database& stored)
    : pool_(pool), stored_(stored), versions_(stored.size_bytes), home_size_(stored.size_bytes) {
  extents_.note(stored_);
  STELE_ASSERT_ALWAYS(extents_.suffice_for(home_size_));  // verified when it was found
}

void database::add(snapshot& s) {
  const std::scoped_lock one(pool_.versions_);
  versions_.add(s);
}

void database::remove(snapshot& s) noexcept {
  const std::scoped_lock one(pool_.versions_);
  versions_.remove(s);
  drop_unread();
}

void database::drop_unread() noexcept {
  kept_.drop_before(versions_.oldest_read());
}

// Under both of the pool's mutexes.
result<> database::reserve(std::uint64_t bytes) {
  if (extents_.suffice_for(bytes)) return {};
  STELE_ASSERT(bytes > home_size_ && bytes > versions_.newest_size());
  if (auto possible = pool_.may_have(bytes); !possible) return possible;
  auto done = pool_.pool_.update([&](stored_databases&) { set_extents(stored_, bytes); });
  if (done) extents_.note(stored_);
  STELE_ASSERT(!done || extents_.suffice_for(bytes));  // sqlite.md P2
  return done;
}

void database::read(const snapshot& s, std::uint64_t at, std::span<std::byte> to) const noexcept {
  const std::uint64_t version = s.version.load(std::memory_order_relaxed);
  STELE_ASSERT(version != snapshot::none);
  // R1: the snapshot has the blocks of its size, and no others.
  STELE_ASSERT(to.empty() || at + to.size() <= blocks_of(s.size) * block_size);
  while (!to.empty()) {
    const std::size_t part = std::min<std::size_t>(to.size(), block_size - at % block_size);
    const auto [number, offset] = place_of(at);
    const auto& e = extents_.of(number);
    copy_beside_stores(to.data(), e.bytes + offset, part);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (e.stamps[offset / block_size].load(std::memory_order_relaxed) > version) [[unlikely]]
      kept_.read(version, at, to.first(part));
    at += part;
    to = to.subspan(part);
  }
}

void database::read_early(std::uint64_t number, std::span<std::byte> to,
                          std::uint64_t from) const noexcept {
  STELE_ASSERT(from + to.size() <= block_size);
  std::copy_n(extents_.home_of(number * block_size) + from, to.size(), to.data());
}

// Step E2: finds the blocks to store. Returns the first block beyond the end both of the newest
// version and of the version that a crash would leave.
std::uint64_t database::find_appended(pending_writes& writes) {
  std::uint64_t end = versions_.newest_size();
  if (!planted(base::mutant::sqlite_early_inside)) end = std::max(end, home_size_);
  const std::uint64_t first = blocks_of(end);
  STELE_ASSERT(extents_.suffice_for(writes.size()));  // E1
  stores_.clear();
  for (const auto& w : writes.in_order())
    if (w.number >= first)
      stores_.compare(w.number, w.bytes->data(), extents_.home_of(w.number * block_size));
  return first;
}

// Step 1 of docs/protocol/sqlite.md. No block of the database is deferred.
void database::find_changes(pending_writes& writes) {
  STELE_ASSERT(extents_.suffice_for(writes.size()));  // P2
  STELE_ASSERT(base::holds(deferred_.empty()));       // the flush before it
  stores_.clear();
  for_each_block(writes, [&](std::uint64_t number, const std::byte* bytes) {
    stores_.compare(number, bytes, extents_.home_of(number * block_size));
  });
}

// Steps 2 and 3.
void database::keep_changed() {
  const std::uint64_t next = versions_.next();
  numbers_.clear();
  for (const stores::change& c : stores_.changes) numbers_.push_back(c.block);
  kept_.make_room(numbers_, 1);
  for (const stores::change& c : stores_.changes) {
    auto copy = kept_.copy_of(c.home);
    const std::uint64_t stamp = extents_.stamp_of(c.block).load(std::memory_order_relaxed);
    // May be the next version: an earlier commit raised it and then found no memory.
    STELE_ASSERT(base::holds(stamp <= next));
    kept_.add(c.block, stamp, std::move(copy));
    kept_.end(c.block, next);
  }
  STELE_ASSERT(!stores_.only_counts || numbers_.front() == 0);  // V1
  if (stores_.only_counts) std::erase(numbers_, 0);
  if (!planted(base::mutant::sqlite_stamp_late)) raise_stamps();
}

// Step 3.
void database::raise_stamps() noexcept {
  const std::uint64_t next = versions_.next();
  for (const stores::change& c : stores_.changes)
    extents_.stamp_of(c.block).store(next, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

void database::store(const stores& s, std::uint64_t size) {
  STELE_ASSERT(extents_.suffice_for(size));  // format/sqlite.md: never fewer
  s.store_lines();
  if (size != stored_.size_bytes) stored_.size_bytes = size;
  if (!s.counts) stored_.uncounted_commits = stored_.uncounted_commits + 1;
}

// Step 5.
void database::end_commit(std::uint64_t size, bool stored) noexcept {
  if (planted(base::mutant::sqlite_stamp_late)) raise_stamps();
  // A failed commit has stored nothing: the next version equals the one before.
  if (stored) {
    versions_.tell_changes(size, numbers_);
    home_size_ = size;
  }
  STELE_ASSERT(extents_.suffice_for(home_size_));
  versions_.publish(home_size_);
  versions_.note_commit();
}

// Frees extents beyond the size when no snapshot is older. If that fails, the next commit tries
// again.
void database::give_back_extents() noexcept try {
  const std::uint64_t wanted = extents_for(std::max(home_size_, versions_.newest_size()));
  if (wanted + 1 >= extents_.count() || versions_.oldest_read() != versions_.newest()) return;
  drop_unread();  // so that the version store has no block of these extents
  if (!pool_.pool_.update([&](stored_databases&) { set_extents(stored_, extent_begin(wanted)); }))
    return;
  extents_.keep_first(wanted);
  STELE_ASSERT(extents_.suffice_for(std::max(home_size_, versions_.newest_size())));
} catch (...) {  // no memory: the update was rolled back
}

// Bounds the memory of deferred blocks: with too many, the commit is durable instead.
bool database::may_defer(pending_writes& writes) {
  STELE_ASSERT(deferred_.size() <= most_deferred);
  if (!extents_.suffice_for(writes.size())) return false;
  std::size_t blocks = deferred_.size();
  for_each_block(writes, [&](std::uint64_t, const std::byte*) { ++blocks; });
  return blocks <= most_deferred;
}

// Step D1. Throws std::bad_alloc; then nothing is deferred.
void database::prepare_deferral(pending_writes& writes) {
  deferring_.clear();
  numbers_.clear();
  bool only_counts = false;
  for_each_block(writes, [&](std::uint64_t number, const std::byte* bytes) {
    const bool is_home = extents_.stamp_of(number).load(std::memory_order_relaxed) != not_home;
    if (number == 0)
      only_counts =
          !differ_beyond_counter(is_home ? extents_.home_of(0) : kept_.newest(0).data(), bytes);
    deferring_.push_back(
        {number, kept_.copy_of(bytes),
         is_home ? kept_.copy_of(extents_.home_of(number * block_size)) : nullptr});
    numbers_.push_back(number);
  });
  deferred_.reserve(deferred_.size() + numbers_.size());
  // Blocks beyond the new end are no longer deferred, and their versions end.
  for (const std::uint64_t number : deferred_)
    if (number >= blocks_of(writes.size())) numbers_.push_back(number);
  kept_.make_room(numbers_, 2);
  STELE_ASSERT_WHOLE(base::holds(has_each_once(numbers_)));
  STELE_ASSERT(!only_counts || deferring_.front().number == 0);  // V1
  if (only_counts) std::erase(numbers_, 0);
}

// Steps D2 to D4.
void database::defer(std::uint64_t size) noexcept {
  const std::uint64_t next = versions_.next();
  STELE_ASSERT(deferred_.capacity() - deferred_.size() >= deferring_.size());  // D1 took all
  STELE_ASSERT(extents_.suffice_for(size));  // else the commit is durable
  for (deferral& d : deferring_) {
    STELE_ASSERT(d.bytes != nullptr && d.number < blocks_of(size));
    auto& stamp = extents_.stamp_of(d.number);
    if (d.home != nullptr) {
      kept_.add(d.number, stamp.load(std::memory_order_relaxed), std::move(d.home));
      deferred_.push_back(d.number);
    }
    kept_.end(d.number, next);
    kept_.add(d.number, next, std::move(d.bytes));
    stamp.store(not_home, std::memory_order_relaxed);
  }
  std::erase_if(deferred_, [&](std::uint64_t number) {
    if (number < blocks_of(size)) return false;
    kept_.end(number, next);
    extents_.stamp_of(number).store(next, std::memory_order_relaxed);
    return true;
  });
  STELE_ASSERT_WHOLE(base::holds(has_each_once(deferred_)));
  STELE_ASSERT_WHOLE(are_below(deferred_, blocks_of(size)));
  std::atomic_thread_fence(std::memory_order_seq_cst);
  versions_.tell_changes(size, numbers_);
  versions_.publish(size);
  versions_.note_commit();
}

// Step F1. False: nothing is deferred. Throws std::bad_alloc.
bool database::prepare_flush() {
  if (deferred_.empty() && versions_.newest_size() == home_size_) return false;
  STELE_ASSERT_WHOLE(base::holds(are_below(deferred_, blocks_of(versions_.newest_size()))));
  flushed_.clear();
  for (const std::uint64_t number : deferred_)
    flushed_.push_back({number, kept_.newest_from(number), kept_.newest(number).data()});
  std::ranges::sort(flushed_, {}, &flushed_block::number);
  kept_.make_room(deferred_, 1);
  flush_.clear();
  flush_.changes.reserve(flushed_.size());
  versions_.make_room();
  return true;
}

// The flush has a snapshot, so the version store keeps the blocks that it reads.
void database::begin_flush() noexcept {
  kept_.keep_room_for_ends(flushed_.size());  // deferred commits may come before F4
  STELE_ASSERT(versions_.has_room());         // prepare_flush() made it
  versions_.add(flusher_);
  begin_read(flusher_);
}

// Step F2.
void database::find_flushed() noexcept {
  STELE_ASSERT(flush_.changes.empty() && flush_.changes.capacity() >= flushed_.size());
  for (const flushed_block& f : flushed_)
    flush_.compare(f.number, f.bytes, extents_.home_of(f.number * block_size));
}

// Step F4. A block that a later commit has deferred again stays deferred.
void database::end_flush(bool stored) noexcept {
  const std::uint64_t next = versions_.next();
  STELE_ASSERT(flusher_.version.load(std::memory_order_relaxed) < next);  // F1 began it
  const auto is_home_now = [&](std::uint64_t number) {
    const auto at = std::ranges::lower_bound(flushed_, number, {}, &flushed_block::number);
    return at != flushed_.end() && at->number == number &&
           (kept_.newest_from(number) == at->from ||
            planted(base::mutant::sqlite_flush_takes_newer));
  };
  STELE_ASSERT_WHOLE(std::ranges::is_sorted(flushed_, {}, &flushed_block::number));
  if (stored) {
    std::erase_if(deferred_, [&](std::uint64_t number) {
      if (!is_home_now(number)) return false;
      kept_.end(number, next);
      extents_.stamp_of(number).store(
          planted(base::mutant::sqlite_flush_unversioned) ? next - 1 : next,
          std::memory_order_release);
      return true;
    });
    STELE_ASSERT(extents_.suffice_for(flusher_.size));
    home_size_ = flusher_.size;
    versions_.publish(versions_.newest_size());
  }
  kept_.forgo_ends();
  end_read(flusher_);
  versions_.remove(flusher_);
  drop_unread();
}

}  // namespace stele::sqlite
