// One SQLite database of an open pool, shared by all connections of this process; and its pool.
//
// Readers do not wait for the writer, nor the writer for them: docs/protocol/sqlite.md. Each block
// has a stamp, the version that home's bytes belong to at the earliest. A reader of an earlier
// version finds the block among the kept ones.
#pragma once

#include "pending.h"

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>

namespace stele::sqlite {

class open_pool;

class database {
 public:
  // What a connection reads: the version at which its read transaction began.
  struct alignas(64) snapshot {
    static constexpr std::uint64_t none = ~std::uint64_t{0};
    std::atomic<std::uint64_t> version{none};
    std::uint64_t size = 0;
  };

  database(open_pool& pool, stored_database& stored);
  database(const database&) = delete;
  database& operator=(const database&) = delete;

  open_pool& pool() const noexcept { return pool_; }
  // Connections register before they read. Thread-safe, as all that follows.
  void add(snapshot& s);
  void remove(snapshot& s) noexcept;

  // Sets the snapshot to the newest version. It is the caller's alone.
  void begin_read(snapshot& s) noexcept;
  void end_read(snapshot& s) noexcept {
    s.version.store(snapshot::none, std::memory_order_release);
  }
  // Copies bytes below the snapshot's size as of its version.
  void read(const snapshot& s, std::uint64_t at, std::span<std::byte> to) const noexcept;

  // One connection at a time writes. False: another one does.
  bool lock_writer() noexcept { return !writer_.exchange(true, std::memory_order_acquire); }
  void unlock_writer() noexcept { writer_.store(false, std::memory_order_release); }
  bool has_writer() const noexcept { return writer_.load(std::memory_order_relaxed); }
  bool is_newest(const snapshot& s) const noexcept {
    return s.version.load(std::memory_order_relaxed) == version_.load(std::memory_order_acquire);
  }

 private:
  friend class open_pool;
  struct extent {
    const std::byte* bytes;
    std::unique_ptr<std::atomic<std::uint64_t>[]> stamps;
  };
  struct kept_block {
    std::uint64_t from;  // the version since which the database had these bytes
    std::unique_ptr<pending_writes::block> bytes;
  };
  struct change {
    std::uint64_t block;
    const std::byte* bytes;  // new content
    std::uint64_t lines;     // bit i: line i differs
    std::byte* home;
  };

  const extent& extent_of(std::uint64_t number) const noexcept {
    return *extents_[number].load(std::memory_order_acquire);
  }
  std::byte* home_of(std::uint64_t at) const noexcept;
  std::atomic<std::uint64_t>& stamp_of(std::uint64_t block) const noexcept;
  void read_kept(std::uint64_t version, std::uint64_t at, std::span<std::byte> to) const noexcept;
  void note_extents();
  [[nodiscard]] result<> reserve(std::uint64_t bytes);
  void find_changes(pending_writes& writes);
  void keep_changed();
  void store_changes(std::uint64_t size);
  void publish(std::uint64_t size) noexcept;
  void drop_unread() noexcept;
  void give_back_extents();
  std::uint64_t oldest_read() const noexcept;

  static constexpr std::size_t max_extents = std::size_t{1} << 20;  // 4 TiB
  open_pool& pool_;
  stored_database& stored_;
  std::unique_ptr<std::atomic<extent*>[], void (*)(std::atomic<extent*>*)> extents_;
  std::vector<std::unique_ptr<extent>> known_extents_;
  // The size as of the version v is sizes_[v % 8] while v is the newest version.
  std::array<std::atomic<std::uint64_t>, 8> sizes_{};
  std::atomic<std::uint64_t> version_{1};
  std::atomic<bool> writer_{false};
  mutable std::shared_mutex kept_mutex_;                   // of kept_
  std::map<std::uint64_t, std::vector<kept_block>> kept_;  // by block; oldest first
  std::vector<std::unique_ptr<pending_writes::block>> spare_;
  // The rest is under the pool's commit mutex.
  std::vector<snapshot*> readers_;
  std::vector<change> changes_;
  bool counts_ = false;  // changes_ change SQLite's own counter
};

// A pool that this process has open. All its databases commit together or one after another.
class open_pool {
 public:
  // Of options: as pool_options. Errors: those of pool::open; unsupported, of mechanisms whose home
  // is not in place.
  [[nodiscard]] static result<std::unique_ptr<open_pool>> open(const std::string& path,
                                                               pool_options options);
  // Over a pool that is open, for tools.
  [[nodiscard]] static result<std::unique_ptr<open_pool>> over(stele::pool<stored_databases> pool);

  stele::pool<stored_databases>& content() noexcept { return pool_; }
  // The database of this name; made, if `make`. Errors: not_found; those of update(). Thread-safe.
  [[nodiscard]] result<database*> find(const std::string& name, bool make);
  bool is_poisoned() const noexcept;
  // As pool::check(); commits wait.
  [[nodiscard]] result<> check();
  // Ordered commits stay in memory for a while, where the connections do not see them.
  bool defers_ordered() const noexcept;

  struct part {
    database* of;
    database::snapshot* reader;  // of the connection that writes; afterwards at the new version
    pending_writes* writes;
  };
  // Makes sure that a commit of these writes has room. Errors: full, io, poisoned.
  [[nodiscard]] result<> reserve(const part& p);
  // Commits the writes of one connection to databases of this pool in one transaction, and empties
  // them. Their writer locks are held. Durable on return, with durability::ordered in order. On an
  // error nothing is committed.
  [[nodiscard]] result<> commit(std::span<const part> parts, durability d);

 private:
  explicit open_pool(stele::pool<stored_databases> pool) : pool_(std::move(pool)) {}
  friend class database;

  stele::pool<stored_databases> pool_;
  std::mutex commit_;  // one update at a time: the policy of the pool is `external`
  std::map<std::string, std::unique_ptr<database>> databases_;
};

}  // namespace stele::sqlite
