// Versions, commits, and the pools that hold databases: docs/protocol/sqlite.md.
#include "database.h"

#include <base/mutant.h>
#include <tx/runtime.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <thread>

namespace stele::sqlite {

namespace {

// Another thread may store to `from` meanwhile; the caller asks afterwards.
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

// Of two blocks, a bit for each line that differs.
std::uint64_t differing_lines(const std::byte* a, const std::byte* b) noexcept {
  std::uint64_t lines = 0;
  for (std::size_t line = 0; line < block_size / 64; ++line) {
    std::uint64_t x[8], y[8], different = 0;
    std::memcpy(x, a + 64 * line, 64);
    std::memcpy(y, b + 64 * line, 64);
    for (unsigned i = 0; i < 8; ++i) different |= x[i] ^ y[i];
    lines |= std::uint64_t{different != 0} << line;
  }
  return lines;
}
static_assert(block_size / 64 == 64);

std::uint32_t counter_in(const std::byte* first_block) noexcept {
  std::uint32_t counter = 0;
  for (std::size_t i = 0; i < change_counter_bytes; ++i)
    counter = counter << 8 | static_cast<std::uint32_t>(first_block[change_counter_at + i]);
  return counter;
}

// Whether first blocks differ in more than SQLite changes of it in each commit: the counter, and
// its copy with the number of SQLite's version.
bool differ_beyond_counter(const std::byte* a, const std::byte* b) noexcept {
  constexpr std::size_t counter_end = change_counter_at + change_counter_bytes, copy_at = 92,
                        copy_end = 100;
  const auto differ = [&](std::size_t begin, std::size_t end) {
    return std::memcmp(a + begin, b + begin, end - begin) != 0;
  };
  return differ(0, change_counter_at) || differ(counter_end, copy_at) ||
         differ(copy_end, block_size);
}

// Stores the bytes from `begin` to `end` without the words at both ends that do not differ.
void store_run(std::byte* home, const std::byte* bytes, std::size_t begin, std::size_t end) {
  constexpr std::size_t word = sizeof(std::uint64_t);
  while (begin != end && std::memcmp(home + begin, bytes + begin, word) == 0) begin += word;
  while (begin != end && std::memcmp(home + end - word, bytes + end - word, word) == 0) end -= word;
  if (begin != end) detail::store_range(home + begin, bytes + begin, end - begin);
}

constexpr pending_writes::block zeroes{};

// Calls f(number, bytes) for each block that these writes give the database and that home does not
// have early: written ones, and zeroes where it was cut and is longer again. In the order of their
// numbers.
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

// How long a deferred commit waits for others that are made durable with it.
constexpr std::chrono::milliseconds flush_pause{1};

}  // namespace

database::database(open_pool& pool, stored_database& stored)
    : pool_(pool),
      stored_(stored),
      extents_(static_cast<std::atomic<extent*>*>(
                   std::calloc(most_extents, sizeof(std::atomic<extent*>))),
               [](std::atomic<extent*>* e) { std::free(static_cast<void*>(e)); }) {
  if (extents_ == nullptr) throw std::bad_alloc();
  note_extents();
  home_size_ = stored.size_bytes;
  newest_[1].size = home_size_;
}

// Called when a transaction has given the database extents.
void database::note_extents() {
  for (std::uint64_t n = known_extents_.size(); n < stored_.extent_count; ++n) {
    auto e = std::make_unique<extent>();
    e->bytes = stored_.extents.load()[n].load();  // verified when the pool was opened
    e->stamps = std::make_unique<std::atomic<std::uint64_t>[]>(extent_bytes(n) / block_size);
    known_extents_.push_back(std::move(e));
    extents_[n].store(known_extents_.back().get(), std::memory_order_release);
  }
}

// Under both of the pool's mutexes.
result<> database::reserve(std::uint64_t bytes) {
  if (has_extents_for(bytes)) return {};
  if (auto possible = pool_.may_have(bytes); !possible) return possible;
  auto done = pool_.pool_.update([&](stored_databases&) { set_extents(stored_, bytes); });
  if (done) note_extents();
  return done;
}

std::byte* database::home_of(std::uint64_t at) const noexcept {
  const auto [number, offset] = place_of(at);
  return const_cast<std::byte*>(extent_of(number).bytes) + offset;
}

std::atomic<std::uint64_t>& database::stamp_of(std::uint64_t block) const noexcept {
  const auto [number, offset] = place_of(block * block_size);
  return extent_of(number).stamps[offset / block_size];
}

void database::add(snapshot& s) {
  const std::scoped_lock one(pool_.versions_);
  readers_.push_back(&s);
}

void database::remove(snapshot& s) noexcept {
  const std::scoped_lock one(pool_.versions_);
  std::erase(readers_, &s);
  drop_unread();
}

// A commit looks at the snapshots after it has raised the version, and so drops nothing that this
// reader needs.
void database::begin_read(snapshot& s) noexcept {
  for (std::uint64_t now = version_.load(std::memory_order_acquire);;) {
    const published& newest = newest_[now % newest_.size()];
    s.size = newest.size.load(std::memory_order_relaxed);
    s.changes = base::planted(base::mutant::sqlite_cache_early)
                    ? changes_.end()
                    : newest.changes.load(std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_acquire);  // with that of publish()
    s.version.store(now, std::memory_order_seq_cst);
    const std::uint64_t again = version_.load(std::memory_order_seq_cst);
    if (again == now || base::planted(base::mutant::sqlite_snapshot_unchecked)) return;
    now = again;
  }
}

void database::read(const snapshot& s, std::uint64_t at, std::span<std::byte> to) const noexcept {
  const std::uint64_t version = s.version.load(std::memory_order_relaxed);
  while (!to.empty()) {
    const std::size_t part = std::min<std::size_t>(to.size(), block_size - at % block_size);
    const auto [number, offset] = place_of(at);
    const extent& e = extent_of(number);
    copy_beside_stores(to.data(), e.bytes + offset, part);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (e.stamps[offset / block_size].load(std::memory_order_relaxed) > version) [[unlikely]]
      kept_.read(version, at, to.first(part));
    at += part;
    to = to.subspan(part);
  }
}

std::uint64_t database::newest_size() const noexcept {
  return newest_[version_.load(std::memory_order_relaxed) % newest_.size()].size.load(
      std::memory_order_relaxed);
}

void database::stores::compare(std::uint64_t number, const std::byte* bytes, std::byte* home) {
  std::uint64_t lines = differing_lines(home, bytes);
  if (base::planted(base::mutant::sqlite_line_skipped)) lines &= ~std::bit_floor(lines);
  if (lines == 0) return;
  changes.push_back({number, bytes, lines, home});
  if (number != 0) return;
  // A connection that kept its cache counts on from what it has seen, which may be too little.
  counts = static_cast<std::int32_t>(counter_in(bytes) - counter_in(home)) > 0;
  only_counts = !differ_beyond_counter(home, bytes);
}

void database::read_early(std::uint64_t number, std::span<std::byte> to,
                          std::uint64_t from) const noexcept {
  std::copy_n(home_of(number * block_size) + from, to.size(), to.data());
}

// Step E2: what is to be stored. Returns the first block beyond the end, of the newest version and
// of what a crash would leave.
std::uint64_t database::find_appended(pending_writes& writes) {
  std::uint64_t end = newest_size();
  if (!base::planted(base::mutant::sqlite_early_inside)) end = std::max(end, home_size_);
  const std::uint64_t first = blocks_of(end);
  stores_.changes.clear();
  for (const auto& w : writes.in_order())
    if (w.number >= first)
      stores_.compare(w.number, w.bytes->data(), home_of(w.number * block_size));
  return first;
}

// Step 1 of docs/protocol/sqlite.md. No block of the database is deferred.
void database::find_changes(pending_writes& writes) {
  stores_.changes.clear();
  stores_.counts = stores_.only_counts = false;
  for_each_block(writes, [&](std::uint64_t number, const std::byte* bytes) {
    stores_.compare(number, bytes, home_of(number * block_size));
  });
}

// Steps 2 and 3.
void database::keep_changed() {
  const std::uint64_t next = version_.load(std::memory_order_relaxed) + 1;
  numbers_.clear();
  for (const change& c : stores_.changes) numbers_.push_back(c.block);
  kept_.make_room(numbers_, 1);
  for (const change& c : stores_.changes) {
    auto copy = kept_.copy_of(c.home);
    kept_.add(c.block, stamp_of(c.block).load(std::memory_order_relaxed), std::move(copy));
    kept_.end(c.block, next);
  }
  if (stores_.only_counts) std::erase(numbers_, 0);
  if (!base::planted(base::mutant::sqlite_stamp_late)) raise_stamps();
}

// Step 3.
void database::raise_stamps() noexcept {
  const std::uint64_t next = version_.load(std::memory_order_relaxed) + 1;
  for (const change& c : stores_.changes) stamp_of(c.block).store(next, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

// In the transaction, as what follows.
void database::store_lines(const stores& s) {
  for (const change& c : s.changes) {
    for (std::uint64_t rest = c.lines; rest != 0;) {
      const auto first = static_cast<unsigned>(std::countr_zero(rest));
      const auto count = static_cast<unsigned>(std::countr_one(rest >> first));
      store_run(c.home, c.bytes, 64 * first, 64 * (first + count));
      rest = first + count == 64 ? 0 : rest >> (first + count) << (first + count);
    }
  }
}

void database::store(const stores& s, std::uint64_t size) {
  store_lines(s);
  if (size != stored_.size_bytes) stored_.size_bytes = size;
  if (!s.counts) stored_.uncounted_commits = stored_.uncounted_commits + 1;
}

// Before publish(): who has a version knows of all changes until then.
void database::tell_changes(std::uint64_t size) noexcept {
  if (readers_.size() == 1) return;
  if (size != newest_size())
    changes_.add_all();
  else
    changes_.add(numbers_);
}

void database::publish(std::uint64_t size) noexcept {
  const std::uint64_t next = version_.load(std::memory_order_relaxed) + 1;
  published& newest = newest_[next % newest_.size()];
  // Who still reads this place for an earlier version finds the newer one, and reads again.
  std::atomic_thread_fence(std::memory_order_release);
  newest.size.store(size, std::memory_order_relaxed);
  newest.changes.store(changes_.end(), std::memory_order_relaxed);
  version_.store(next, std::memory_order_seq_cst);
}

std::uint64_t database::oldest_read() const noexcept {
  std::uint64_t oldest = version_.load(std::memory_order_relaxed);
  if (base::planted(base::mutant::sqlite_reader_forgotten)) return oldest;
  for (const snapshot* s : readers_)
    oldest = std::min(oldest, s->version.load(std::memory_order_seq_cst));
  return oldest;
}

void database::drop_unread() noexcept {
  kept_.drop_before(oldest_read());
}

// The database is shorter, and nobody reads what it was: the space is for others. If that fails,
// the next commit tries again.
void database::give_back_extents() noexcept try {
  const std::uint64_t wanted = extents_for(std::max(home_size_, newest_size()));
  if (wanted + 1 >= known_extents_.size() ||
      oldest_read() != version_.load(std::memory_order_relaxed))
    return;
  drop_unread();  // of readers that have ended since: no block of these extents may stay kept
  if (!pool_.pool_.update([&](stored_databases&) { set_extents(stored_, extent_begin(wanted)); }))
    return;
  for (; known_extents_.size() > wanted; known_extents_.pop_back())
    extents_[known_extents_.size() - 1].store(nullptr, std::memory_order_release);
} catch (...) {  // no memory: the update was rolled back
}

// A commit that many blocks wait for is durable: what waits is in memory.
bool database::may_defer(pending_writes& writes) {
  if (!has_extents_for(writes.size())) return false;
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
    const bool is_home = stamp_of(number).load(std::memory_order_relaxed) != not_home;
    if (number == 0)
      only_counts = !differ_beyond_counter(is_home ? home_of(0) : kept_.newest(0).data(), bytes);
    deferring_.push_back({number, kept_.copy_of(bytes),
                          is_home ? kept_.copy_of(home_of(number * block_size)) : nullptr});
    numbers_.push_back(number);
  });
  deferred_.reserve(deferred_.size() + numbers_.size());
  // Blocks beyond the new end are deferred no more, and their bytes end too.
  for (const std::uint64_t number : deferred_)
    if (number >= blocks_of(writes.size())) numbers_.push_back(number);
  kept_.make_room(numbers_, 2);
  if (only_counts) std::erase(numbers_, 0);
}

// Steps D2 to D4.
void database::defer(std::uint64_t size) noexcept {
  const std::uint64_t next = version_.load(std::memory_order_relaxed) + 1;
  for (deferral& d : deferring_) {
    auto& stamp = stamp_of(d.number);
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
    stamp_of(number).store(next, std::memory_order_relaxed);
    return true;
  });
  std::atomic_thread_fence(std::memory_order_seq_cst);
  tell_changes(size);
  publish(size);
  changed_at_.store(next, std::memory_order_release);
}

// Step F1. False: nothing is deferred. Throws std::bad_alloc.
bool database::prepare_flush() {
  if (deferred_.empty() && newest_size() == home_size_) return false;
  flushed_.clear();
  for (const std::uint64_t number : deferred_)
    flushed_.push_back({number, kept_.newest_from(number), kept_.newest(number).data()});
  std::ranges::sort(flushed_, {}, &flushed_block::number);
  kept_.make_room(deferred_, 1);
  flush_.changes.clear();
  flush_.changes.reserve(flushed_.size());
  readers_.reserve(readers_.size() + 1);
  return true;
}

// What the flush reads is kept for it as for any other reader.
void database::begin_flush() noexcept {
  kept_.keep_room_for_ends(flushed_.size());  // deferred commits may come before F4
  readers_.push_back(&flusher_);
  begin_read(flusher_);
}

// Step F2.
void database::find_flushed() noexcept {
  flush_.counts = false;
  for (const flushed_block& f : flushed_)
    flush_.compare(f.number, f.bytes, home_of(f.number * block_size));
}

// Step F4. A block that a later commit has deferred again stays so.
void database::end_flush(bool stored) noexcept {
  const std::uint64_t next = version_.load(std::memory_order_relaxed) + 1;
  const auto is_home_now = [&](std::uint64_t number) {
    const auto at = std::ranges::lower_bound(flushed_, number, {}, &flushed_block::number);
    return at != flushed_.end() && at->number == number &&
           (kept_.newest_from(number) == at->from ||
            base::planted(base::mutant::sqlite_flush_takes_newer));
  };
  if (stored) {
    std::erase_if(deferred_, [&](std::uint64_t number) {
      if (!is_home_now(number)) return false;
      kept_.end(number, next);
      stamp_of(number).store(
          base::planted(base::mutant::sqlite_flush_unversioned) ? next - 1 : next,
          std::memory_order_release);
      return true;
    });
    home_size_ = flusher_.size;
    publish(newest_size());
  }
  kept_.forgo_ends();
  end_read(flusher_);
  std::erase(readers_, &flusher_);
  drop_unread();
}

result<std::unique_ptr<open_pool>> open_pool::open(const std::string& path, pool_options options) {
  auto pool = stele::pool<stored_databases>::open(path, options);
  if (!pool && pool.error().code == errc::unsupported && options.max_size != 0) {
    options.max_size = 0;  // a pool whose mechanism does not grow
    pool = stele::pool<stored_databases>::open(path, options);
  }
  if (!pool) return std::unexpected(std::move(pool.error()));
  auto opened = over(std::move(*pool));
  if (!opened) return opened;
  (*opened)->has_thread_ = options.background;
  if (options.background)
    (*opened)->start_flusher();
  else
    (*opened)->defers_ = false;
  return opened;
}

void open_pool::start_flusher() {
  if (!defers_) return;
  flusher_.start(
      [this] {
        std::this_thread::sleep_for(flush_pause);
        flush_failed_ = !flush();
      },
      [this] { return !flush_failed_ && has_deferred(); });
}

result<std::unique_ptr<open_pool>> open_pool::over(stele::pool<stored_databases> pool) {
  const bool defers = pool.core().wants_to_defer();
  if (!pool.core().has_plain_reads())
    return std::unexpected(
        error{errc::unsupported, "SQLite reads pages in place, which pools of the mechanism " +
                                     pool.mechanism() + " do not have; choose another mechanism"});
  if (auto sound = verify_content(pool); !sound) return std::unexpected(std::move(sound.error()));
  return std::unique_ptr<open_pool>(new open_pool(std::move(pool), defers));
}

result<> open_pool::close() {
  result<> flushed;
  if (!is_poisoned()) flushed = flush();  // if it throws, the flusher goes on
  flusher_.stop();
  defers_ = false;  // the pool may stay open: then nobody would make commits durable
  auto closed = pool_.close();
  return flushed ? closed : flushed;
}

bool open_pool::is_poisoned() const noexcept {
  return pool_.core().state().poisoned.load(std::memory_order_relaxed);
}

error open_pool::poison_error(const std::string& path, const std::string& advice) const {
  const auto& state = pool_.core().state();
  const int number = state.file.space_error();
  return {number == ENOSPC || number == EDQUOT ? errc::full : errc::poisoned,
          path + " cannot be used any more: " + state.poison_reason() + "; " + advice};
}

result<> open_pool::check() {
  const std::scoped_lock alone(updates_);
  return pool_.check();
}

result<> open_pool::backup(const std::string& path) {
  if (auto flushed = flush(); !flushed) return flushed;
  return pool_.backup(path);
}

result<database*> open_pool::find(const std::string& name, bool make) {
  const auto known = [&]() -> database* {
    const auto at = databases_.find(name);
    return at == databases_.end() ? nullptr : at->second.get();
  };
  {
    const std::scoped_lock one(versions_);
    if (database* const d = known()) return d;
  }
  const std::scoped_lock both(updates_, versions_);
  if (database* const d = known()) return d;
  stored_database* stored = nullptr;
  auto found = pool_.read([&](const stored_databases& all) { stored = all.find(name); });
  if (found && stored == nullptr && make)
    found = pool_.update([&](stored_databases& all) { stored = all.make(name); });
  if (!found) return std::unexpected(std::move(found.error()));
  if (stored == nullptr)
    return std::unexpected(error{errc::not_found, "the pool has no database \"" + name + "\""});
  return databases_.emplace(name, std::make_unique<database>(*this, *stored)).first->second.get();
}

// A number of a page in a damaged database may be any number. The pool would grow step by step
// until the device is full.
result<> open_pool::may_have(std::uint64_t bytes) const {
  const auto& file = pool_.core().state().file;
  const std::uint64_t size = file.header().size, most = std::max(size, pool_.core().max_size());
  if (bytes <= size) return {};
  const auto full = [&](const std::string& why) {
    return std::unexpected(error{errc::full, file.path() + " has no room for a database of " +
                                                 std::to_string(bytes) + " bytes: " + why});
  };
  if (bytes > most)
    return full("it may not have more than " + std::to_string(most) + " (the option max_size)");
  std::error_code unknown;
  const auto device = std::filesystem::space(file.path(), unknown);
  if (!unknown && bytes - size > device.available)
    return full(std::make_error_code(std::errc::no_space_on_device).message());
  return {};
}

result<> open_pool::reserve(const part& p) {
  {
    const std::scoped_lock one(versions_);
    if (p.of->has_extents_for(p.writes->size())) return {};
  }
  const std::scoped_lock both(updates_, versions_);
  return p.of->reserve(p.writes->size());
}

void open_pool::store_early(const part& p) {
  const std::scoped_lock both(updates_, versions_);
  database& d = *p.of;
  if (d.oldest_read() < d.changed_at_.load(std::memory_order_relaxed)) return;
  if (!d.reserve(p.writes->size())) return;  // E1
  const std::uint64_t first = d.find_appended(*p.writes);
  const auto stored = pool_.update([&](stored_databases&) { d.store_lines(d.stores_); });  // E2
  if (stored) p.writes->leave_from(first);                                                 // E3
}

bool open_pool::defer(std::span<const part> parts) {
  if (!defers_ || is_poisoned()) return false;
  const std::scoped_lock one(versions_);
  if (holds_back_) return false;
  for (const part& p : parts)
    if (!p.of->may_defer(*p.writes)) return false;
  for (const part& p : parts) p.of->prepare_deferral(*p.writes);
  for (const part& p : parts) {
    p.of->defer(p.writes->size());
    p.of->begin_read(*p.reader);
    p.of->drop_unread();
    p.writes->clear();
  }
  flusher_.wake();
  return true;
}

bool open_pool::has_deferred() {
  const std::scoped_lock one(versions_);
  return has_waiting();
}

// Under the mutex of versions.
bool open_pool::has_waiting() const noexcept {
  return std::ranges::any_of(databases_, [](const auto& d) {
    return !d.second->deferred_.empty() || d.second->newest_size() != d.second->home_size_;
  });
}

result<> open_pool::flush() {
  const std::scoped_lock alone(updates_);
  return flush_deferred();
}

// Under the mutex of updates. Commits go on being deferred meanwhile.
result<> open_pool::flush_deferred() {
  std::vector<database*> those;
  {
    const std::scoped_lock one(versions_);
    for (auto& [name, d] : databases_)
      if (d->prepare_flush()) those.push_back(d.get());  // F1
    for (database* const d : those) d->begin_flush();
  }
  if (those.empty()) return {};
  const auto end = [&](bool stored) {
    const std::scoped_lock one(versions_);
    for (database* const d : those) {
      d->end_flush(stored);  // F4
      // What a writer has reserved, or stored early, stays its own.
      if (stored && !d->has_writer()) d->give_back_extents();
    }
  };
  result<> done;
  try {
    done = store_flushed(those);
  } catch (...) {  // no memory
    end(false);
    throw;
  }
  end(done.has_value());
  return done;
}

// Under the mutex of updates; on success also under that of versions, with nothing deferred.
// Commits to other databases may have been deferred during the flush: they become visible before
// the commit that begins now, and so have to be durable before it.
result<> open_pool::flush_before_commit(std::unique_lock<std::mutex>& versions) {
  auto flushed = flush_deferred();
  if (!flushed) return flushed;
  versions.lock();
  if (!has_waiting()) return flushed;
  holds_back_ = true;
  versions.unlock();
  try {
    flushed = flush_deferred();
  } catch (...) {  // no memory
    versions.lock();
    holds_back_ = false;
    throw;
  }
  versions.lock();
  holds_back_ = false;
  return flushed;
}

result<> open_pool::store_flushed(std::span<database* const> those) {
  for (database* const d : those) d->find_flushed();  // F2
  const auto store = [](database* d) { d->store(d->flush_, d->flusher_.size); };
  if (base::planted(base::mutant::sqlite_flush_apart))
    for (database* const d : those)
      if (auto early = pool_.update([&](stored_databases&) { store(d); }); !early) return early;
  return pool_.update([&](stored_databases&) {
    for (database* const d : those) store(d);
  });  // F3
}

result<> open_pool::commit(std::span<const part> parts, durability d) {
  if (d != durability::durable && defer(parts)) return {};
  const std::scoped_lock alone(updates_);
  std::unique_lock one(versions_, std::defer_lock);
  if (base::planted(base::mutant::sqlite_deferred_left))
    one.lock();
  else if (auto flushed = flush_before_commit(one); !flushed)
    return flushed;
  for (const part& p : parts)
    if (auto room = p.of->reserve(p.writes->size()); !room) return room;
  bool changed = false;
  for (const part& p : parts) {
    p.of->find_changes(*p.writes);  // 1
    changed |= !p.of->stores_.changes.empty() || p.writes->size() != p.of->home_size_;
    if (p.of->readers_.size() > 1) p.of->keep_changed();
  }
  // What the pool itself defers would be invisible to other connections.
  if (pool_.core().defers_ordered()) d = durability::durable;
  if (base::planted(base::mutant::sqlite_acknowledged_early)) d = durability::ordered;
  if (base::planted(base::mutant::sqlite_size_apart))
    for (const part& p : parts)
      if (auto early =
              pool_.update([&](stored_databases&) { p.of->stored_.size_bytes = p.writes->size(); });
          !early)
        return early;
  result<> done;
  if (changed)
    done = pool_.update(
        [&](stored_databases&) {  // 4
          for (const part& p : parts) p.of->store(p.of->stores_, p.writes->size());
        },
        d);
  for (const part& p : parts) {
    if (base::planted(base::mutant::sqlite_stamp_late)) p.of->raise_stamps();
    // A commit that failed has stored nothing: a version like the one before.
    if (done) p.of->tell_changes(p.writes->size());
    if (done) p.of->home_size_ = p.writes->size();
    p.of->publish(p.of->home_size_);  // 5
    p.of->changed_at_.store(p.of->version_.load(std::memory_order_relaxed),
                            std::memory_order_release);
    p.of->begin_read(*p.reader);
    p.of->drop_unread();  // 6
    p.writes->clear();
    if (done) p.of->give_back_extents();
  }
  return done;
}

}  // namespace stele::sqlite
