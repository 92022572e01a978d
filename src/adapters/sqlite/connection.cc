// Locks, reads and writes of one connection, and the commits of those of one handle.
#include "connection.h"

#include <base/assert.h>
#include <base/mutant.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "file.h"
#include "registry.h"

namespace stele::sqlite {

connection::connection(std::string path, open_pool& pool, database& db, std::size_t pending_limit)
    : name_(std::move(path)), pool_(&pool), of_(&db), pending_limit_(pending_limit) {
  STELE_ASSERT_ALWAYS(&db.pool() == &pool);
  registry::here().add(*this);
  try {
    of_->add(reader_);
  } catch (...) {
    registry::here().remove(*this);
    throw;
  }
}

connection::~connection() {
  unlock(SQLITE_LOCK_NONE);
  STELE_ASSERT_ALWAYS(!writer_);
  of_->remove(reader_);
  registry::here().remove(*this);
}

void connection::load(std::uint64_t number, pending_writes::block& to) const {
  STELE_ASSERT(writes_.exist() && writes_.stored_limit() <= reader_.size);
  STELE_ASSERT(number * block_size < writes_.stored_limit() || writes_.is_early(number));
  if (number * block_size >= writes_.stored_limit()) return of_->read_early(number, to, 0);
  const std::uint64_t begin = number * block_size, stored = reader_.size;
  const std::size_t there = std::min<std::uint64_t>(block_size, stored - std::min(stored, begin));
  of_->read(reader_, begin, std::span(to).first(there));
  std::fill(to.begin() + there, to.end(), std::byte{0});
}

int connection::poisoned(int code) const {
  return report(pool_->poison_error(path(), "close all connections to it and open it again"), code);
}

int connection::failed(const error& why, int code) const {
  return pool_->is_poisoned() ? poisoned(code) : report(why, code);
}

int connection::read(std::uint64_t at, std::span<std::byte> to) {
  const bool unlocked =
      level_ == SQLITE_LOCK_NONE;  // SQLite reads the header of a database that it opens
  if (unlocked) of_->begin_read(reader_);
  STELE_ASSERT(!unlocked || !writes_.exist());  // sqlite.md P4: writes end with the lock
  const auto there = part_there(to, at, size());
  if (writes_.exist())
    read_through(at, there);
  else if (!unlocked && version_bytes::is_question(at, there.size()))
    cache_.answer(of_->changes(), reader_.changes, there.first<version_bytes::size>());
  else
    of_->read(reader_, at, there);
  if (unlocked)
    of_->end_read(reader_);
  else if (!version_bytes::is_question(at, there.size()))
    cache_.note(at, there);
  if (pool_->is_poisoned()) return poisoned(SQLITE_IOERR_READ);
  return end_read(to, there.size());
}

void connection::read_through(std::uint64_t at, std::span<std::byte> to) const {
  STELE_ASSERT(to.empty() || at + to.size() <= writes_.size());
  while (!to.empty()) {
    const std::size_t part = std::min<std::size_t>(to.size(), block_size - at % block_size);
    const std::uint64_t number = at / block_size;
    if (const auto* written = writes_.find(number))
      std::copy_n(written->data() + at % block_size, part, to.data());
    else if (writes_.is_early(number))
      of_->read_early(number, to.first(part), at % block_size);
    else if (at < writes_.stored_limit())
      of_->read(reader_, at, to.first(part));
    else
      std::ranges::fill(to.first(part), std::byte{0});
    at += part;
    to = to.subspan(part);
  }
}

namespace {

// A copied database in WAL mode says so in its header, and SQLite would look for the WAL. Clears
// that mode. True: it was set, so the writer's cache is invalid.
bool deny_wal(std::span<std::byte> header) {
  constexpr std::size_t write_version = 18, read_version = 19;
  if (header[read_version] != std::byte{2}) return false;
  header[write_version] = header[read_version] = std::byte{1};
  return true;
}

}  // namespace

// Does nothing after the transaction's first write.
void connection::begin_writes() noexcept {
  if (writes_.exist()) return;
  writes_.begin(reader_.size);
  most_pending_ = pending_limit_;
}

int connection::write(std::uint64_t at, std::span<const std::byte> from) {
  if (!writer_) return SQLITE_READONLY;
  sealed_ = false;
  begin_writes();
  writes_.write(at, from,
                [&](std::uint64_t number, pending_writes::block& to) { load(number, to); });
  cache_.note(at, from);
  if (at == 0 && deny_wal(*writes_.find(0))) denied_wal_ = true;
  if (writes_.bytes() > most_pending_) store_early();
  return SQLITE_OK;
}

// After a failure it is tried again when as many bytes again have been written.
void connection::store_early() {
  STELE_ASSERT(writer_ && !sealed_);
  pool_->store_early({of_, &reader_, &writes_});
  most_pending_ = writes_.bytes() + pending_limit_;
}

int connection::truncate(std::uint64_t size) {
  if (!writer_) return SQLITE_READONLY;
  begin_writes();
  writes_.set_size(size,
                   [&](std::uint64_t number, pending_writes::block& to) { load(number, to); });
  return SQLITE_OK;
}

// A reader that wants to write must read the newest version; else it has to begin again, as in
// SQLite's WAL mode.
int connection::lock(int level) {
  if (level <= level_) return SQLITE_OK;
  if (pool_->is_poisoned()) return poisoned(SQLITE_IOERR_LOCK);
  const bool begins = level_ == SQLITE_LOCK_NONE;
  STELE_ASSERT(!begins || !writer_);
  if (level > SQLITE_LOCK_SHARED || exclusive) {
    if (!writer_ && !of_->lock_writer()) return SQLITE_BUSY;
    writer_ = true;
  }
  if (begins) {
    of_->begin_read(reader_);
    cache_.begin(reader_.changes);
  }
  if (level > SQLITE_LOCK_SHARED && !of_->is_newest(reader_)) {
    if (!exclusive) unlock_writer();
    return SQLITE_BUSY_SNAPSHOT;
  }
  STELE_ASSERT(level == SQLITE_LOCK_SHARED || writer_);
  level_ = level;
  return SQLITE_OK;
}

void connection::unlock(int level) noexcept {
  if (level >= level_) return;
  // An exclusive connection may have written with the lock for reading.
  if (level_ > SQLITE_LOCK_SHARED || writes_.exist()) drop_writes();
  if (level <= SQLITE_LOCK_SHARED && !(exclusive && level == SQLITE_LOCK_SHARED)) unlock_writer();
  if (level == SQLITE_LOCK_NONE) of_->end_read(reader_);
  STELE_ASSERT(level != SQLITE_LOCK_NONE || !writer_);
  STELE_ASSERT(level <= SQLITE_LOCK_SHARED || writer_);
  level_ = level;
}

void connection::unlock_writer() noexcept {
  STELE_ASSERT(!writer_ || of_->has_writer());
  if (std::exchange(writer_, false)) of_->unlock_writer();
}

void connection::drop_writes() noexcept {
  writes_.clear();
  denied_wal_ = false;
  sealed_ = false;
}

// SYNC: SQLite has written all pages of the transaction; the database reserves room for its commit.
int connection::seal(const char* super_journal) {
  sealed_ = true;
  synced_ = false;
  if (const std::string_view name = super_journal != nullptr ? super_journal : "";
      name != super_journal_) {
    const auto one = registry::here().lock();  // other threads' commits read the list too
    super_journal_ = name;
  }
  if (!writes_.exist()) return SQLITE_OK;
  STELE_ASSERT(writer_);
  if (auto room = pool_->reserve({of_, &reader_, &writes_}); !room)
    return failed(room.error(), SQLITE_IOERR_FSYNC);
  return SQLITE_OK;
}

// Commits all databases of a pool that one SQLite transaction has changed. Their caches count as
// invalid until it has succeeded: after an error or an exception SQLite may have pages of it.
int connection::commit(std::span<connection* const> together) {
  STELE_ASSERT(!together.empty());
  for (connection* c : together) c->cache_.lost();
  std::vector<open_pool::part> parts;
  bool durable = false;
  for (connection* c : together) {
    STELE_ASSERT(c->pool_ == together[0]->pool_ && c->sealed_);
    STELE_ASSERT(c->writes_.exist() && c->writer_);
    parts.push_back({c->of_, &c->reader_, &c->writes_});
    durable |= c->synchronous >= synchronous_full && c->synced_;
    c->sealed_ = false;
  }
  auto done =
      together[0]->pool_->commit(parts, durable ? durability::durable : durability::ordered);
  STELE_ASSERT(!done || std::ranges::none_of(
                            together, [](const connection* c) { return c->writes_.exist(); }));
  if (!done) return together[0]->failed(done.error(), SQLITE_IOERR_FSYNC);
  for (connection* c : together)
    if (!std::exchange(c->denied_wal_, false)) c->cache_.committed(c->reader_.changes);
  return SQLITE_OK;
}

template <class Which>
int connection::commit_those(Which&& which) {
  std::map<open_pool*, std::vector<connection*>> waiting;
  {
    const auto one = registry::here().lock();
    for (connection* c :
         registry::here().connections())  // which() first: others belong to other threads
      if (which(*c) && c->sealed_ && c->writes_.exist()) waiting[c->pool_].push_back(c);
  }
  if (planted(base::mutant::sqlite_one_by_one))
    for (auto& [pool, together] : waiting)
      for (; together.size() > 1; together.pop_back())
        if (const int code = commit(std::array{together.back()}); code != SQLITE_OK) return code;
  for (const auto& [pool, together] : waiting)
    if (const int code = commit(together); code != SQLITE_OK) return code;
  return SQLITE_OK;
}

int connection::end_commit() {
  if (!writes_.exist()) return SQLITE_OK;
  sealed_ = true;
  const auto is_with_this = [this](const connection& c) {
    return c.pool_ == pool_ && handle_ != nullptr && c.handle_ != nullptr && *c.handle_ == *handle_;
  };
  const auto waits_too = [&](const connection* c) {
    return c != this && is_with_this(*c) && c->sealed_ && c->writes_.exist();
  };
  bool together = false;
  {
    const auto one = registry::here().lock();
    STELE_ASSERT(std::ranges::count(registry::here().connections(), this) == 1);
    together = std::ranges::any_of(registry::here().connections(), waits_too);
  }
  return together ? commit_those(is_with_this) : commit(std::array{this});
}

int commit_waiting_for(const char* super_journal) {
  return connection::commit_those(
      [&](const connection& c) { return c.super_journal_ == super_journal; });
}

void connection::belongs_to(sqlite3** handle) {
  const auto one = registry::here().lock();
  handle_ = handle;
  for (const connection* c : registry::here().connections())
    if (c != this && c->handle_ != nullptr && *c->handle_ == *handle) exclusive = c->exclusive;
}

void connection::for_all_of_handle(const std::function<void(connection&)>& call) {
  const auto one = registry::here().lock();
  for (connection* c : registry::here().connections())
    if (c == this || (handle_ != nullptr && c->handle_ != nullptr && *c->handle_ == *handle_))
      call(*c);
}

// A pool with a thread of its own checks once a clock tick, so some milliseconds late.
bool connection::has_moved() {
  timespec now{};
  if (pool_->has_thread()) ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  if (!pool_->has_thread() || std::exchange(asked_at_, now.tv_nsec) != now.tv_nsec)
    has_moved_ = name_.leads_elsewhere();
  return has_moved_;
}

}  // namespace stele::sqlite
