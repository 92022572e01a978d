// The open pools of this process, and the connections to their databases.
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
  // is read. Each function takes it too.
  [[nodiscard]] std::unique_lock<std::recursive_mutex> lock() { return std::unique_lock(mutex_); }

  // The pool that a connection to this path would use. Null: it is not open.
  open_pool* find(const std::string& path);
  // The same; opens the pool if it is not open. Errors: those of open_pool::open; poisoned or full
  // if the pool is poisoned.
  result<open_pool*> acquire(const std::string& path, const pool_options& options);
  // Closes the pool when no connection uses it. Throws std::bad_alloc; then the pool stays open for
  // the next connection to it.
  void close_if_unused(const open_pool& pool);
  // As the functions of these names in file.h.
  open_pool* adopt(const std::string& path, std::unique_ptr<open_pool> pool);
  void disown(const std::string& path);

  void add(connection& c);
  void remove(connection& c) noexcept;
  std::span<connection* const> connections() const noexcept { return connections_; }

 private:
  // The file that a path leads to now; it may have led to another one before.
  struct file_id {
    dev_t device = 0;
    ino_t inode = 0;
    auto operator<=>(const file_id&) const = default;
  };
  static std::optional<file_id> id_of(const std::string& path);
  // Whether a connection uses it.
  bool is_used(const open_pool& pool) const noexcept;
  // Makes deferred commits durable when the program ends with connections open.
  void flush_at_exit();

  std::recursive_mutex mutex_;
  std::map<file_id, std::unique_ptr<open_pool>> pools_;        // that connections have open
  std::map<std::string, std::unique_ptr<open_pool>> adopted_;  // given by adopt(), by path
  std::vector<connection*> connections_;
};

}  // namespace stele::sqlite
