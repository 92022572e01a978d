// Publishes versions, and finds the oldest that is read.
#include "versions.h"

#include <base/mutant.h>

#include <algorithm>

namespace stele::sqlite {

// A commit raises the version before it reads the snapshots, so it drops nothing that this reader
// needs.
void versions::begin_read(snapshot& s) const noexcept {
  for (std::uint64_t now = version_.load(std::memory_order_acquire);;) {
    const published& newest = newest_[now % newest_.size()];
    s.size = newest.size.load(std::memory_order_relaxed);
    s.changes = planted(base::mutant::sqlite_cache_early)
                    ? changes_.end()
                    : newest.changes.load(std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_acquire);  // with that of publish()
    s.version.store(now, std::memory_order_seq_cst);
    const std::uint64_t again = version_.load(std::memory_order_seq_cst);
    if (again == now || planted(base::mutant::sqlite_snapshot_unchecked)) return;
    STELE_ASSERT(now < again);  // sqlite.md R2: versions only rise
    now = again;
  }
}

bool versions::is_registered(const snapshot& s) const noexcept {
  return std::ranges::find(readers_, &s) != readers_.end();
}

void versions::tell_changes(std::uint64_t size, std::span<const std::uint64_t> blocks) noexcept {
  STELE_ASSERT(!readers_.empty());  // that of the connection which commits
  if (readers_.size() == 1) return;
  if (size != newest_size())
    changes_.add_all();
  else
    changes_.add(blocks);
}

void versions::publish(std::uint64_t size) noexcept {
  const std::uint64_t version = next();
  published& newest = newest_[version % newest_.size()];
  // A reader that reads this place for an earlier version finds the newer one, and retries.
  std::atomic_thread_fence(std::memory_order_release);
  newest.size.store(size, std::memory_order_relaxed);
  STELE_ASSERT(newest.changes.load(std::memory_order_relaxed) <= changes_.end());  // V2
  newest.changes.store(changes_.end(), std::memory_order_relaxed);
  version_.store(version, std::memory_order_seq_cst);
}

std::uint64_t versions::oldest_read() const noexcept {
  std::uint64_t oldest = newest();
  if (planted(base::mutant::sqlite_reader_forgotten)) return oldest;
  for (const snapshot* s : readers_)
    oldest = std::min(oldest, s->version.load(std::memory_order_seq_cst));
  return oldest;
}

}  // namespace stele::sqlite
