// What this process has open: pools, and the connections to their databases.
#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "open_pool.h"

namespace stele::sqlite {

class connection;

class registry {
 public:
  // A child of fork has none of its parent's connections.
  static registry& here();

  // Held over calls that belong together: while a pool is opened or closed, and while connections()
  // are looked at. Each call takes it, too.
  [[nodiscard]] std::unique_lock<std::recursive_mutex> lock() { return std::unique_lock(mutex_); }

  // The pool that a connection to this path would have. Null: it is not open.
  open_pool* find(const std::string& path);
  // The same; opened, if it is not. Errors: those of open_pool::open; poisoned and full, if it is
  // poisoned.
  result<open_pool*> acquire(const std::string& path, const pool_options& options);
  // Closes the pool when no connection has it. Throws std::bad_alloc; then the pool stays open, for
  // the next connection to it.
  void close_if_unused(const open_pool& pool);
  // As the functions of these names in file.h.
  open_pool* adopt(const std::string& path, std::unique_ptr<open_pool> pool);
  void disown(const std::string& path);

  void add(connection& c);
  void remove(connection& c) noexcept;
  std::span<connection* const> connections() const noexcept { return connections_; }

 private:
  // The file that a path leads to now, which is not always the one that it led to before.
  struct file_id {
    dev_t device = 0;
    ino_t inode = 0;
    auto operator<=>(const file_id&) const = default;
  };
  static std::optional<file_id> id_of(const std::string& path);
  // A connection has it.
  bool is_used(const open_pool& pool) const noexcept;
  // When the program ends with connections open, what waits in memory is made durable all the same.
  void flush_at_exit();

  std::recursive_mutex mutex_;
  std::map<file_id, std::unique_ptr<open_pool>> pools_;        // that connections have open
  std::map<std::string, std::unique_ptr<open_pool>> adopted_;  // by path
  std::vector<connection*> connections_;
};

}  // namespace stele::sqlite
