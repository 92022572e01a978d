// The versions of a database, and the snapshots that read them: docs/protocol/sqlite.md.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <base/assert.h>
#include "cache.h"

namespace stele::sqlite {

// Readers begin and end at any time. One thread at a time calls the rest, under the pool's mutex of
// versions.
class versions {
 public:
  // The version at which a connection's read transaction began.
  struct alignas(64) snapshot {
    static constexpr std::uint64_t none = ~std::uint64_t{0};
    std::atomic<std::uint64_t> version{none};
    std::uint64_t size = 0;
    recent_changes::position changes = 0;  // after those of its version
  };

  explicit versions(std::uint64_t size) noexcept { newest_[1].size = size; }

  // Steps R1 and R2: sets the snapshot, which only the caller uses, to the newest version.
  void begin_read(snapshot& s) const noexcept;
  void end_read(snapshot& s) const noexcept {
    s.version.store(snapshot::none, std::memory_order_release);
  }
  // Whether no commit has changed the database since this snapshot.
  bool is_newest(const snapshot& s) const noexcept {
    return s.version.load(std::memory_order_relaxed) >= changed_at_.load(std::memory_order_acquire);
  }
  // The changes of all published versions, and perhaps of the next one.
  const recent_changes& changes() const noexcept { return changes_; }

  // Readers register before they begin.
  void add(snapshot& s) {
    STELE_ASSERT_WHOLE(!is_registered(s));
    readers_.push_back(&s);
  }
  void remove(snapshot& s) noexcept {
    STELE_ASSERT(s.version.load(std::memory_order_relaxed) == snapshot::none);
    STELE_ASSERT_WHOLE(is_registered(s));
    std::erase(readers_, &s);
  }
  std::size_t readers() const noexcept { return readers_.size(); }
  // After this, one call of add() needs no memory.
  void make_room() { readers_.reserve(readers_.size() + 1); }
  bool has_room() const noexcept { return readers_.size() < readers_.capacity(); }
  // No snapshot has an earlier version, and none will.
  std::uint64_t oldest_read() const noexcept;

  std::uint64_t newest() const noexcept { return version_.load(std::memory_order_relaxed); }
  std::uint64_t next() const noexcept { return newest() + 1; }
  std::uint64_t newest_size() const noexcept {
    return newest_[newest() % newest_.size()].size.load(std::memory_order_relaxed);
  }
  // Adds the changes of the next version. Called before publish(), so that a reader of a version
  // finds all changes up to it.
  void tell_changes(std::uint64_t size, std::span<const std::uint64_t> blocks) noexcept;
  // The next version becomes the newest.
  void publish(std::uint64_t size) noexcept;
  // Says that the newest version is that of a commit.
  void note_commit() noexcept {
    STELE_ASSERT(newest_commit() < newest());  // publish() came before
    changed_at_.store(newest(), std::memory_order_release);
  }
  std::uint64_t newest_commit() const noexcept {
    return changed_at_.load(std::memory_order_relaxed);
  }

 private:
  bool is_registered(const snapshot& s) const noexcept;

  // One line, with the ends of changes_: read by every read transaction, changed by each commit.
  // newest_[v % 2] has the size and changes of version v while v is the newest.
  struct published {
    std::atomic<std::uint64_t> size{0}, changes{0};
  };
  alignas(64) std::array<published, 2> newest_{};
  std::atomic<std::uint64_t> version_{1};
  std::atomic<std::uint64_t> changed_at_{1};  // version of the newest commit
  recent_changes changes_;
  std::vector<snapshot*> readers_;
};

}  // namespace stele::sqlite
