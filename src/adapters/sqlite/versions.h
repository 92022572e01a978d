// The versions of a database, and who reads which: docs/protocol/sqlite.md.
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

// Readers begin and end beside everything else. The rest is called by one thread at a time: under
// the pool's mutex of versions.
class versions {
 public:
  // What a connection reads: the version at which its read transaction began.
  struct alignas(64) snapshot {
    static constexpr std::uint64_t none = ~std::uint64_t{0};
    std::atomic<std::uint64_t> version{none};
    std::uint64_t size = 0;
    recent_changes::position changes = 0;  // after those of its version
  };

  explicit versions(std::uint64_t size) noexcept { newest_[1].size = size; }

  // Steps R1 and R2: sets the snapshot to the newest version. It is the caller's alone.
  void begin_read(snapshot& s) const noexcept;
  void end_read(snapshot& s) const noexcept {
    s.version.store(snapshot::none, std::memory_order_release);
  }
  // No commit has changed the database since.
  bool is_newest(const snapshot& s) const noexcept {
    return s.version.load(std::memory_order_relaxed) >= changed_at_.load(std::memory_order_acquire);
  }
  // The changes of all versions that have been published, and perhaps of the next.
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
  // No snapshot is of an earlier version, and none will be.
  std::uint64_t oldest_read() const noexcept;

  std::uint64_t newest() const noexcept { return version_.load(std::memory_order_relaxed); }
  std::uint64_t next() const noexcept { return newest() + 1; }
  std::uint64_t newest_size() const noexcept {
    return newest_[newest() % newest_.size()].size.load(std::memory_order_relaxed);
  }
  // What the next version changes. Before publish(): who has a version knows of all changes until
  // then.
  void tell_changes(std::uint64_t size, std::span<const std::uint64_t> blocks) noexcept;
  // The next version becomes the newest.
  void publish(std::uint64_t size) noexcept;
  // The newest version is that of a commit.
  void note_commit() noexcept {
    STELE_ASSERT(newest_commit() < newest());  // publish() came before
    changed_at_.store(newest(), std::memory_order_release);
  }
  std::uint64_t newest_commit() const noexcept {
    return changed_at_.load(std::memory_order_relaxed);
  }

 private:
  bool is_registered(const snapshot& s) const noexcept;

  // What every read transaction looks at, and each commit changes: with the ends of changes_ one
  // line. What comes with the version v is in newest_[v % 2] while v is the newest version.
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
