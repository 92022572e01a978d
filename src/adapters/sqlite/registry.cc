// Pools of this process: found by their files, opened by the first connection, closed by the last.
#include "registry.h"

#include <base/assert.h>
#include <base/per_process.h>
#include <media/os.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "connection.h"
#include "file.h"

namespace stele::sqlite {

namespace {

bool is_sqlite_file(const std::string& path) {
  constexpr std::string_view begin("SQLite format 3\0", 16);
  return media::os::read_text(path.c_str(), begin.size()) == begin;
}

// SQLite takes an empty file for a new database.
void remove_if_empty(const std::string& path) {
  struct stat s{};
  if (::stat(path.c_str(), &s) == 0 && S_ISREG(s.st_mode) && s.st_size == 0) ::unlink(path.c_str());
}

std::unexpected<error> why_not_opened(error why, const std::string& path) {
  if (why.code == errc::not_a_pool && is_sqlite_file(path))
    why.message = path +
                  " is an ordinary SQLite database, not a pool; make a pool of it by `stele sqlite "
                  "import " +
                  path + " POOL`, or open it without vfs=stele";
  return std::unexpected(std::move(why));
}

}  // namespace

registry& registry::here() {
  return base::per_process<registry>();
}

std::optional<registry::file_id> registry::id_of(const std::string& path) {
  struct stat s{};
  if (::stat(path.c_str(), &s) != 0) return std::nullopt;
  return file_id{s.st_dev, s.st_ino};
}

void registry::add(connection& c) {
  const std::scoped_lock one(mutex_);
  STELE_ASSERT_ALWAYS(std::ranges::find(connections_, &c) == connections_.end());
  connections_.push_back(&c);
}

void registry::remove(connection& c) noexcept {
  const std::scoped_lock one(mutex_);
  STELE_ASSERT_ALWAYS(std::ranges::count(connections_, &c) == 1);
  std::erase(connections_, &c);
}

open_pool* registry::adopt(const std::string& path, std::unique_ptr<open_pool> pool) {
  const std::scoped_lock one(mutex_);
  STELE_ASSERT_ALWAYS(pool != nullptr);
  return adopted_.emplace(path, std::move(pool)).first->second.get();
}

void registry::disown(const std::string& path) {
  const std::scoped_lock one(mutex_);
  const auto at = adopted_.find(path);
  if (at == adopted_.end()) return;
  STELE_ASSERT(!is_used(*at->second));
  adopted_.erase(at);
}

bool registry::is_used(const open_pool& pool) const noexcept {
  return std::ranges::any_of(connections_,
                             [&](const connection* c) { return &c->pool() == &pool; });
}

open_pool* registry::find(const std::string& path) {
  const std::scoped_lock one(mutex_);
  if (const auto at = adopted_.find(path); at != adopted_.end()) return at->second.get();
  const auto id = id_of(path);
  if (!id) return nullptr;
  const auto at = pools_.find(*id);
  return at == pools_.end() ? nullptr : at->second.get();
}

// Does not wait for a thread that is opening or closing a pool.
void registry::flush_at_exit() {
  const std::unique_lock one(mutex_, std::try_to_lock);
  if (!one) return;
  for (const auto& [id, pool] : pools_)
    (void)within_boundary(SQLITE_NOMEM, [&] {
      if (!pool->is_poisoned()) (void)pool->flush();
      return SQLITE_OK;
    });
}

// The mapping of an open pool keeps its inode, also when the file was removed, so a path that leads
// to the same inode leads to the same pool.
result<open_pool*> registry::acquire(const std::string& path, const pool_options& options) {
  const std::scoped_lock one(mutex_);
  if (open_pool* const open = find(path)) {
    if (open->is_poisoned())
      return std::unexpected(open->poison_error(path, "close all connections to it first"));
    return open;
  }
  [[maybe_unused]] static const int at_exit = std::atexit([] { here().flush_at_exit(); });
  if (options.create_size != 0) remove_if_empty(path);
  auto pool = open_pool::open(path, options);
  if (!pool) return why_not_opened(std::move(pool.error()), path);
  const auto id = id_of(path);
  if (!id)
    return std::unexpected(error{errc::not_found, path + " was removed while it was opened"});
  const auto [at, is_new] = pools_.try_emplace(*id, std::move(*pool));
  if (!is_new)
    return std::unexpected(error{errc::in_use, path + " was replaced while it was opened"});
  return at->second.get();
}

void registry::close_if_unused(const open_pool& pool) {
  const std::scoped_lock one(mutex_);
  if (is_used(pool)) return;
  const auto at =
      std::ranges::find_if(pools_, [&](const auto& p) { return p.second.get() == &pool; });
  if (at == pools_.end()) return;
  const auto closed = at->second->close();
  const bool is_known = at->second->is_poisoned();  // then the error was reported before
  pools_.erase(at);
  if (!closed && !is_known) report(closed.error(), SQLITE_IOERR_CLOSE);
}

}  // namespace stele::sqlite
