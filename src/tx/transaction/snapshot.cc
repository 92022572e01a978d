// The locks of a snapshot, its extension, its validation, its conflicts.
#include <base/assert.h>
#include <base/mutant.h>
#include <tx/transaction/snapshot.h>

namespace stele::detail {

void snapshot::acquire(std::uint64_t line) {
  STELE_ASSERT(in_force_ && line % line_size == 0);
  line_lock& lock = lock_of(line);
  for (unsigned tries = 0; tries < spin_limit; ++tries) {
    std::uint64_t seen = lock.load(std::memory_order_acquire);
    if (seen == own_lock_) return;  // acquired for another line with the same lock
    if ((seen & 1) != 0) {
      media::cpu::relax();
    } else if (seen >> 1 > time_) {
      extend();
    } else {
      locks_.push_back({&lock, seen});
      if (lock.compare_exchange_strong(seen, own_lock_, std::memory_order_acq_rel)) return;
      locks_.pop_back();
    }
  }
  conflict();
}

void snapshot::lock_alone(std::uint64_t line) {
  STELE_ASSERT(!in_force_ && all_locks_ != nullptr && line % line_size == 0);
  line_lock& lock = lock_of(line);
  const std::uint64_t seen = lock.load(std::memory_order_relaxed);
  if (seen == own_lock_) return;
  locks_.push_back({&lock, seen});
  lock.store(own_lock_, std::memory_order_relaxed);
}

void snapshot::extend() {
  const std::uint64_t now = clock_->load(std::memory_order_acquire);
  if ((has_unrecorded_reads_ || !valid()) &&
      !planted_in_schedule_explorer(base::mutant::stm_extend_unchecked))
    conflict();
  time_ = now;
}

bool snapshot::valid() const noexcept {
  for (const entry& r : reads_) {
    const std::uint64_t now = r.lock->load(std::memory_order_acquire);
    // A lock of this transaction was checked against the snapshot when it was acquired.
    STELE_ASSERT((r.version & 1) == 0);  // a line is read while its lock is free
    if (now != r.version && now != own_lock_) return false;
  }
  return true;
}

void snapshot::conflict() {
  lose_attempt();
}

}  // namespace stele::detail
