// The state of an open pool that its engine and its transactions share: the file, the heap, the
// clock, which commits are under way, and which are deferred.
#pragma once

#include <base/assert.h>
#include <base/mutant.h>
#include <format/pool_layout.h>
#include <media/sigbus_guard.h>
#include <pool/heap.h>
#include <pool/pool_file.h>
#include <tx/readers/shared_memory.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace stele::detail {

struct pool_state {
  std::shared_ptr<void> tape;  // that the engine records on; null: none
  storage::pool_file file;
  storage::heap heap;
  // Of a pool that other processes may read: its first word is the clock. Else null.
  std::shared_ptr<const shared_memory> clock_memory;
  // TxID of the newest commit. Each commit increments it, so it has a cache line of its own.
  alignas(64) std::atomic<std::uint64_t> own_clock{0};
  std::atomic<std::uint64_t>& clock;
  // Set by poison(), and by a lost page of the mapping. No commit is acknowledged afterwards.
  alignas(64) std::atomic<bool> poisoned{false};
  // For each log, the announcement of its running commit: the clock's value before the commit drew
  // its TxID, a lower bound of that TxID. no_commit: no commit is announced.
  static constexpr std::uint64_t no_commit = ~std::uint64_t{0};
  struct alignas(64) announcement {
    std::atomic<std::uint64_t> value{no_commit};
  };
  std::vector<announcement> committing;

  // Deferred commits, of mechanisms that have them. For each log, a lower bound of the TxIDs that
  // are not yet stored home; no_commit: the log has no deferred commit.
  std::vector<announcement> deferred_from;
  std::atomic<unsigned> deferred_logs{0};  // logs that have deferred commits
  // Logs with an overlay whose line locks are still held, whether it is stored home or not.
  std::atomic<unsigned> overlays{0};
  // Ordered mode: every commit draws its TxID under txid_mutex, so that its record can name the
  // ordered commit before it.
  std::atomic<bool> ordered_mode{false};
  std::mutex txid_mutex;
  // TxID of the newest ordered commit. Under txid_mutex. An ordered commit holds that mutex until
  // it is in its deferred batch, or is durable.
  std::uint64_t last_ordered = 0;

  enum class poison_cause : std::uint8_t {
    lost_page,
    write_failed,
    fork,         // this is a child of the process that opened the pool
    overwritten,  // the file holds another pool, or its logs are not what was written
  };
  // The first cause stays. `error_number`: an errno, or 0 where there is none.
  void poison(poison_cause why, int error_number = 0) noexcept;
  // For sentences of a poisoned pool: "an earlier write failed (No space left on device)".
  std::string poison_reason() const;

  // Until end_deferred(), this log has deferred commits with TxIDs above `before`.
  void begin_deferred(unsigned log, std::uint64_t before) noexcept {
    STELE_ASSERT(log < deferred_from.size() && !has_deferred(log));
    STELE_ASSERT(before < format::txid_limit);
    deferred_from[log].value.store(before, std::memory_order_seq_cst);
    deferred_logs.fetch_add(1, std::memory_order_seq_cst);
  }
  void end_deferred(unsigned log) noexcept {
    STELE_ASSERT(log < deferred_from.size() && has_deferred(log));
    STELE_ASSERT(deferred_logs.load(std::memory_order_relaxed) != 0);
    deferred_from[log].value.store(no_commit, std::memory_order_seq_cst);
    deferred_logs.fetch_sub(1, std::memory_order_release);
  }
  bool has_deferred(unsigned log) const noexcept {
    return deferred_from[log].value.load(std::memory_order_acquire) != no_commit;
  }
  // Without deferred commits, TxIDs need not be drawn in order. Left by a durable commit or an idle
  // flush, and not by each flush: entering it again interrupts every thread. Under txid_mutex.
  void leave_ordered_mode_if_idle() noexcept {
    if (deferred_logs.load(std::memory_order_acquire) == 0)
      ordered_mode.store(false, std::memory_order_relaxed);
  }
  void leave_ordered_mode() {
    const std::unique_lock lock(txid_mutex, std::try_to_lock);
    if (lock.owns_lock()) leave_ordered_mode_if_idle();
  }

  // Runs the callbacks of commits that have become durable, if there are any. The caller holds no
  // lock that commits take.
  void notify_durable_advanced() const {
    if (has_durable_callbacks.load(std::memory_order_acquire)) [[unlikely]]
      notify_durable();
  }
  std::atomic<bool> has_durable_callbacks{false};
  std::function<void()> notify_durable;  // set by the runtime

  // Set by recovery: home lines that did not match their checksums, and how many of them could not
  // be restored.
  std::uint64_t stale_lines = 0, lost_lines = 0;
  // What recovery could not restore, so that it went back to a checkpoint. Empty: it did not.
  std::string fallback_reason;

  // Waits until the commits that are announced now have ended, except the one of log `except`.
  void await_announced(unsigned except) const noexcept;

  std::atomic<std::uint32_t> poisoned_by{0};  // errno, and above it the poison_cause
  media::sigbus_guard lost_pages_guard;       // a lost page of the mapping poisons the pool

  explicit pool_state(storage::pool_file f, std::shared_ptr<const shared_memory> memory = nullptr)
      : file(std::move(f)),
        heap(file, &poisoned),
        clock_memory(std::move(memory)),
        clock(clock_memory != nullptr
                  ? *reinterpret_cast<std::atomic<std::uint64_t>*>(clock_memory->at())
                  : own_clock),
        committing(file.header().log_count),
        deferred_from(file.header().log_count) {
    // The clock of a pool that readers attach to is a word of its own page.
    STELE_ASSERT_ALWAYS(clock_memory == nullptr ||
                        (clock_memory->at() != nullptr && clock_memory->size() >= sizeof clock));
    STELE_ASSERT_ALWAYS(reinterpret_cast<std::uintptr_t>(&clock) % sizeof clock == 0);
    STELE_ASSERT_ALWAYS(!committing.empty());
    if (file.mapping().fd >= 0)
      lost_pages_guard = media::sigbus_guard(file.base(), file.reserved_bytes(), poisoned);
  }

  // Every commit with a TxID up to the result has stored its values home. A result may be smaller
  // than an earlier one, because a commit announces a clock value that it read before. The earlier
  // result stays true, so the writer of the watermark never lowers it.
  std::uint64_t completed() const noexcept {
    std::uint64_t through = clock.load(std::memory_order_seq_cst);
    if (!planted(base::mutant::bulk_runs_ignored))
      for (const auto& a : committing)
        through = std::min(through, a.value.load(std::memory_order_seq_cst));
    if (planted(base::mutant::batch_pending_ignored)) return through;
    for (const auto& p : deferred_from)
      // Read after `committing`: a commit moves from `committing` to `deferred_from`.
      through = std::min(through, p.value.load(std::memory_order_seq_cst));
    return through;
  }
};

}  // namespace stele::detail
