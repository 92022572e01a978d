// Pools that hold databases, and their commits: docs/protocol/sqlite.md.
#include "open_pool.h"

#include <base/assert.h>
#include <base/mutant.h>
#include <tx/runtime.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <thread>

#include "database.h"

namespace stele::sqlite {

namespace {

// How long a deferred commit waits for others to be flushed with it.
constexpr std::chrono::milliseconds flush_pause{1};

}  // namespace

open_pool::open_pool(stele::pool<stored_databases> pool, bool defers)
    : pool_(std::move(pool)), defers_(defers) {}

open_pool::~open_pool() = default;

result<std::unique_ptr<open_pool>> open_pool::open(const std::string& path, pool_options options) {
  auto pool = stele::pool<stored_databases>::open(path, options);
  if (!pool && pool.error().code == errc::unsupported && options.max_size != 0) {
    options.max_size = 0;  // a pool whose mechanism does not grow
    pool = stele::pool<stored_databases>::open(path, options);
  }
  if (!pool) return std::unexpected(std::move(pool.error()));
  auto opened = over(std::move(*pool));
  if (!opened) return opened;
  (*opened)->has_thread_ = options.engine.background;
  if (options.engine.background)
    (*opened)->start_flusher();
  else
    (*opened)->defers_ = false;
  return opened;
}

void open_pool::start_flusher() {
  STELE_ASSERT_ALWAYS(!flusher_.runs());
  if (!defers_) return;
  flusher_.start(
      [this] {
        std::this_thread::sleep_for(flush_pause);
        flush_failed_ = !flush();
      },
      [this] { return !flush_failed_ && has_deferred(); });
  if (!flusher_.runs()) defers_ = false;  // the system has no thread
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
  STELE_ASSERT_ALWAYS(!flushed || is_poisoned() || !has_waiting());  // nobody has committed since
  defers_ = false;  // if the pool stays open, nobody flushes
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
  STELE_ASSERT_ALWAYS(!name.empty());
  const std::scoped_lock both(updates_, versions_);
  if (database* const d = known()) return d;
  stored_database* stored = nullptr;
  auto found = pool_.read([&](const stored_databases& all) { stored = all.find(name); });
  if (found && stored == nullptr && make)
    found = pool_.update([&](stored_databases& all) { stored = all.make(name); });
  if (!found) return std::unexpected(std::move(found.error()));
  if (stored == nullptr)
    return std::unexpected(error{errc::not_found, "the pool has no database \"" + name + "\""});
  const auto added = databases_.emplace(name, std::make_unique<database>(*this, *stored));
  STELE_ASSERT_ALWAYS(added.second);  // one object of each stored database
  return added.first->second.get();
}

// A damaged database may have any page number, and the pool would grow until the device is full.
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
  STELE_ASSERT(&p.of->pool() == this && p.writes->exist());
  {
    const std::scoped_lock one(versions_);
    if (p.of->extents_.suffice_for(p.writes->size())) return {};
  }
  const std::scoped_lock both(updates_, versions_);
  return p.of->reserve(p.writes->size());
}

void open_pool::store_early(const part& p) {
  STELE_ASSERT(&p.of->pool() == this && p.writes->exist() && p.of->has_writer());
  const std::scoped_lock both(updates_, versions_);
  database& d = *p.of;
  if (d.versions_.oldest_read() < d.versions_.newest_commit()) return;
  if (!d.reserve(p.writes->size())) return;  // E1
  const std::uint64_t first = d.find_appended(*p.writes);
  STELE_ASSERT(first * block_size >= d.versions_.newest_size());  // no reader has them
  const auto stored = pool_.update([&](stored_databases&) { d.stores_.store_lines(); });  // E2
  if (stored) p.writes->leave_from(first);                                                // E3
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
    STELE_ASSERT(p.reader->size == p.writes->size());  // D4 before its next read
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
    return !d.second->deferred_.empty() ||
           d.second->versions_.newest_size() != d.second->home_size_;
  });
}

// With archapt-undo the mechanism defers ordered commits too.
result<> open_pool::flush() {
  const std::scoped_lock alone(updates_);
  auto flushed = flush_deferred();
  return flushed ? pool_.sync() : flushed;
}

// Under the mutex of updates. Other commits may be deferred meanwhile.
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
      // A writer keeps what it has reserved, or stored before its commit.
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
// Commits to other databases that were deferred during the flush are visible before the commit
// that begins now, so they have to be durable before it.
result<> open_pool::flush_before_commit(std::unique_lock<std::mutex>& seen) {
  auto flushed = flush_deferred();
  if (!flushed) return flushed;
  seen.lock();
  if (!defers_ || !has_waiting()) return flushed;
  STELE_ASSERT(!holds_back_);
  holds_back_ = true;
  seen.unlock();
  try {
    flushed = flush_deferred();
  } catch (...) {  // no memory
    seen.lock();
    holds_back_ = false;
    throw;
  }
  seen.lock();
  holds_back_ = false;
  STELE_ASSERT(!flushed || !has_waiting());  // a durable commit survives only with all before it
  return flushed;
}

result<> open_pool::store_flushed(std::span<database* const> those) {
  for (database* const d : those) d->find_flushed();  // F2
  const auto store = [](database* d) { d->store(d->flush_, d->flusher_.size); };
  if (planted(base::mutant::sqlite_flush_apart))
    for (database* const d : those)
      if (auto early = pool_.update([&](stored_databases&) { store(d); }); !early) return early;
  return pool_.update([&](stored_databases&) {
    for (database* const d : those) store(d);
  });  // F3
}

bool open_pool::are_ready(std::span<const part> parts) const noexcept {
  return std::ranges::all_of(parts, [&](const part& p) {
    return &p.of->pool() == this && p.of->has_writer() && p.writes->exist() &&
           std::ranges::count(parts, p.of, &part::of) == 1;
  });
}

result<> open_pool::commit(std::span<const part> parts, durability d) {
  STELE_ASSERT(!parts.empty());
  STELE_ASSERT_WHOLE(are_ready(parts));
  if (d != durability::durable && defer(parts)) return {};
  const std::scoped_lock alone(updates_);
  std::unique_lock one(versions_, std::defer_lock);
  if (planted(base::mutant::sqlite_deferred_left))
    one.lock();
  else if (auto flushed = flush_before_commit(one); !flushed)
    return flushed;
  for (const part& p : parts)
    if (auto room = p.of->reserve(p.writes->size()); !room) return room;
  bool changed = false;
  for (const part& p : parts) {
    STELE_ASSERT(p.of->is_newest(*p.reader));
    p.of->find_changes(*p.writes);  // 1
    changed |= !p.of->stores_.changes.empty() || p.writes->size() != p.of->home_size_;
    if (p.of->versions_.readers() > 1) p.of->keep_changed();
  }
  // On a file a commit that is not deferred here is durable: other connections would not see one
  // that the pool defers, and one that archapt-undo defers could wait for hours.
  if (pool_.core().wants_to_defer()) d = durability::durable;
  if (planted(base::mutant::sqlite_acknowledged_early)) d = durability::ordered;
  if (planted(base::mutant::sqlite_size_apart))
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
  else if (d == durability::durable)  // ordered commits that the mechanism defers
    done = pool_.update([](stored_databases&) {}, d);
  for (const part& p : parts) {
    p.of->end_commit(p.writes->size(), done.has_value());  // 5
    p.of->begin_read(*p.reader);
    STELE_ASSERT(p.reader->size == p.of->home_size_);  // 5: no reader sees more than is durable
    p.of->drop_unread();                               // 6
    p.writes->clear();
    if (done) p.of->give_back_extents();
  }
  return done;
}

}  // namespace stele::sqlite
