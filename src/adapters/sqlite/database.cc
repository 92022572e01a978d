// Versions, commits, and the pools that hold databases: docs/protocol/sqlite.md.
#include "database.h"

#include <base/mutant.h>
#include <tx/runtime.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>

namespace stele::sqlite {

namespace {

// Another thread may store to `from` meanwhile; the caller asks afterwards.
void copy_beside_stores(std::byte* to, const std::byte* from, std::size_t size) noexcept {
#ifdef __SANITIZE_THREAD__
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

constexpr pending_writes::block zeroes{};

}  // namespace

database::database(open_pool& pool, stored_database& stored)
    : pool_(pool),
      stored_(stored),
      extents_(static_cast<std::atomic<extent*>*>(
                   std::calloc(max_extents, sizeof(std::atomic<extent*>))),
               [](std::atomic<extent*>* e) { std::free(static_cast<void*>(e)); }) {
  if (extents_ == nullptr) throw std::bad_alloc();
  note_extents();
  sizes_[1] = stored.size_bytes.load();
}

// Called when a transaction has given the database extents.
void database::note_extents() {
  for (std::uint64_t n = known_extents_.size(); n < stored_.extent_count; ++n) {
    auto e = std::make_unique<extent>();
    e->bytes = stored_.extents.load()[n].load();
    e->stamps = std::make_unique<std::atomic<std::uint64_t>[]>(extent_bytes(n) / block_size);
    known_extents_.push_back(std::move(e));
    extents_[n].store(known_extents_.back().get(), std::memory_order_release);
  }
}

// Under the pool's commit mutex.
result<> database::reserve(std::uint64_t bytes) {
  if (extents_for(bytes) <= known_extents_.size()) return {};
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
  const std::scoped_lock one(pool_.commit_);
  readers_.push_back(&s);
}

void database::remove(snapshot& s) noexcept {
  const std::scoped_lock one(pool_.commit_);
  std::erase(readers_, &s);
  drop_unread();
}

// A commit looks at the snapshots after it has raised the version, and so drops nothing that this
// reader needs.
void database::begin_read(snapshot& s) noexcept {
  for (std::uint64_t now = version_.load(std::memory_order_acquire);;) {
    s.size = sizes_[now % sizes_.size()].load(std::memory_order_relaxed);
    s.version.store(now, std::memory_order_seq_cst);
    const std::uint64_t again = version_.load(std::memory_order_seq_cst);
    if (again == now) return;
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
      read_kept(version, at, to.first(part));
    at += part;
    to = to.subspan(part);
  }
}

void database::read_kept(std::uint64_t version, std::uint64_t at,
                         std::span<std::byte> to) const noexcept {
  const std::shared_lock shared(kept_mutex_);
  const auto found = kept_.find(at / block_size);
  if (found == kept_.end()) return;
  const kept_block* of_version = nullptr;
  for (const kept_block& k : found->second)
    if (k.from <= version) of_version = &k;
  if (of_version != nullptr)
    std::memcpy(to.data(), of_version->bytes->data() + at % block_size, to.size());
}

// What the commit must store: lines of the written blocks that differ, and zeroes where the
// database was cut and is longer again.
void database::find_changes(pending_writes& writes) {
  changes_.clear();
  const auto compare = [&](std::uint64_t number, const std::byte* bytes) {
    std::byte* const home = home_of(number * block_size);
    std::uint64_t lines = differing_lines(home, bytes);
    if (base::planted(base::mutant::sqlite_line_skipped)) lines &= ~std::bit_floor(lines);
    if (lines != 0) changes_.push_back({number, bytes, lines, home});
  };
  const std::uint64_t end = (writes.size() + block_size - 1) / block_size;
  std::uint64_t unwritten = (writes.stored_limit() + block_size - 1) / block_size;
  for (const auto& w : writes.in_order()) {
    for (; unwritten < std::min(w.number, end); ++unwritten) compare(unwritten, zeroes.data());
    if (w.number >= end) break;
    compare(w.number, w.bytes->data());
    unwritten = std::max(unwritten, w.number + 1);
  }
  for (; unwritten < end; ++unwritten) compare(unwritten, zeroes.data());
  counts_ = !changes_.empty() && changes_[0].block == 0 &&
            std::memcmp(changes_[0].home + change_counter_at, changes_[0].bytes + change_counter_at,
                        change_counter_bytes) != 0;
}

// Steps 2 and 3 of docs/protocol/sqlite.md.
void database::keep_changed() {
  const std::uint64_t next = version_.load(std::memory_order_relaxed) + 1;
  {
    const std::scoped_lock alone(kept_mutex_);
    for (const change& c : changes_) {
      std::unique_ptr<pending_writes::block> copy;
      if (spare_.empty()) {
        copy = std::make_unique_for_overwrite<pending_writes::block>();
      } else {
        copy = std::move(spare_.back());
        spare_.pop_back();
      }
      std::memcpy(copy->data(), c.home, block_size);
      kept_[c.block].push_back(
          {stamp_of(c.block).load(std::memory_order_relaxed), std::move(copy)});
    }
  }
  for (const change& c : changes_) stamp_of(c.block).store(next, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

// In the transaction.
void database::store_changes(std::uint64_t size) {
  for (const change& c : changes_) {
    for (std::uint64_t rest = c.lines; rest != 0;) {
      const auto first = static_cast<unsigned>(std::countr_zero(rest));
      const auto count = static_cast<unsigned>(std::countr_one(rest >> first));
      detail::store_range(c.home + 64 * first, c.bytes + 64 * first, 64 * count);
      rest = first + count == 64 ? 0 : rest >> (first + count) << (first + count);
    }
  }
  if (size != stored_.size_bytes) stored_.size_bytes = size;
  if (!counts_) stored_.uncounted_commits = stored_.uncounted_commits + 1;
}

void database::publish(std::uint64_t size) noexcept {
  const std::uint64_t next = version_.load(std::memory_order_relaxed) + 1;
  sizes_[next % sizes_.size()].store(size, std::memory_order_relaxed);
  version_.store(next, std::memory_order_seq_cst);
}

std::uint64_t database::oldest_read() const noexcept {
  std::uint64_t oldest = version_.load(std::memory_order_relaxed);
  for (const snapshot* s : readers_)
    oldest = std::min(oldest, s->version.load(std::memory_order_seq_cst));
  return oldest;
}

// A kept block serves the versions before the next one's; the last of a block those before its
// stamp.
void database::drop_unread() noexcept {
  constexpr std::size_t most_spare = 1024;
  if (kept_.empty()) return;
  const std::uint64_t oldest = oldest_read();
  const std::scoped_lock alone(kept_mutex_);
  for (auto at = kept_.begin(); at != kept_.end();) {
    auto& blocks = at->second;
    std::size_t unread = 0;
    while (unread < blocks.size()) {
      const std::uint64_t until = unread + 1 < blocks.size()
                                      ? blocks[unread + 1].from
                                      : stamp_of(at->first).load(std::memory_order_relaxed);
      if (until > oldest) break;
      ++unread;
    }
    for (std::size_t i = 0; i < unread && spare_.size() < most_spare; ++i)
      spare_.push_back(std::move(blocks[i].bytes));
    blocks.erase(blocks.begin(), blocks.begin() + static_cast<std::ptrdiff_t>(unread));
    at = blocks.empty() ? kept_.erase(at) : std::next(at);
  }
}

// The database is shorter, and nobody reads what it was: the space is for others. If that fails,
// the next commit tries again.
void database::give_back_extents() {
  const std::uint64_t wanted = extents_for(stored_.size_bytes);
  if (wanted + 1 >= known_extents_.size() ||
      oldest_read() != version_.load(std::memory_order_relaxed))
    return;
  drop_unread();  // of readers that have ended since: no block of these extents may stay kept
  if (!pool_.pool_.update([&](stored_databases&) { set_extents(stored_, stored_.size_bytes); }))
    return;
  for (; known_extents_.size() > wanted; known_extents_.pop_back())
    extents_[known_extents_.size() - 1].store(nullptr, std::memory_order_release);
}

result<std::unique_ptr<open_pool>> open_pool::open(const std::string& path, pool_options options) {
  auto pool = stele::pool<stored_databases>::open(path, options);
  if (!pool && pool.error().code == errc::unsupported && options.max_size != 0) {
    options.max_size = 0;  // a pool whose mechanism does not grow
    pool = stele::pool<stored_databases>::open(path, options);
  }
  if (!pool) return std::unexpected(std::move(pool.error()));
  return over(std::move(*pool));
}

result<std::unique_ptr<open_pool>> open_pool::over(stele::pool<stored_databases> pool) {
  if (!pool.core().has_plain_reads())
    return std::unexpected(
        error{errc::unsupported, "SQLite reads pages in place, which pools of the mechanism " +
                                     pool.mechanism() + " do not have; choose another mechanism"});
  return std::unique_ptr<open_pool>(new open_pool(std::move(pool)));
}

bool open_pool::is_poisoned() const noexcept {
  return pool_.core().state().poisoned.load(std::memory_order_relaxed);
}

bool open_pool::defers_ordered() const noexcept {
  return pool_.core().defers_ordered();
}

result<> open_pool::check() {
  const std::scoped_lock one(commit_);
  return pool_.check();
}

result<database*> open_pool::find(const std::string& name, bool make) {
  const std::scoped_lock one(commit_);
  if (const auto at = databases_.find(name); at != databases_.end()) return at->second.get();
  stored_database* stored = nullptr;
  auto found = pool_.read([&](const stored_databases& all) { stored = all.find(name); });
  if (found && stored == nullptr && make)
    found = pool_.update([&](stored_databases& all) { stored = all.make(name); });
  if (!found) return std::unexpected(std::move(found.error()));
  if (stored == nullptr)
    return std::unexpected(error{errc::not_found, "the pool has no database \"" + name + "\""});
  return databases_.emplace(name, std::make_unique<database>(*this, *stored)).first->second.get();
}

result<> open_pool::reserve(const part& p) {
  const std::scoped_lock one(commit_);
  return p.of->reserve(p.writes->size());
}

result<> open_pool::commit(std::span<const part> parts, durability d) {
  const std::scoped_lock one(commit_);
  for (const part& p : parts)
    if (auto room = p.of->reserve(p.writes->size()); !room) return room;
  bool changed = false;
  for (const part& p : parts) {
    p.of->find_changes(*p.writes);  // 1
    changed |= !p.of->changes_.empty() || p.writes->size() != p.of->stored_.size_bytes;
    if (p.of->readers_.size() > 1) p.of->keep_changed();
  }
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
          for (const part& p : parts) p.of->store_changes(p.writes->size());
        },
        d);
  for (const part& p : parts) {
    // A commit that failed has stored nothing: a version like the one before.
    p.of->publish(done ? p.writes->size() : p.of->stored_.size_bytes.load());  // 5
    p.of->begin_read(*p.reader);
    p.of->drop_unread();  // 6
    p.writes->clear();
    if (done) p.of->give_back_extents();
  }
  return done;
}

}  // namespace stele::sqlite
