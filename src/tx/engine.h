// The interface between transactions and media. Each pool has one engine: the protocol of a
// mechanism, compiled for a medium.
//
// A commit first reserves log space, which may fail; after that comes the point of no return. A
// mechanism is a class template over Media that derives from lane_engine<Media> or
// media_engine<Media>. mechanism/redo.h is the shortest one; docs/CONTRIBUTING.md has the steps.
#pragma once

#include <base/mutant.h>
#include <format/log_block.h>
#include <format/pool_layout.h>
#include <media/media.h>
#include <media/sigbus_guard.h>
#include <pool/heap.h>
#include <pool/log_space.h>
#include <pool/pool_file.h>
#include <stele/error.h>
#include <stele/pool.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace stele::detail {

class access_buffer;
class transaction;

struct engine_totals {
  media::counters media;
  std::uint64_t truncations = 0, log_spills = 0;
  std::string_view mode = "";  // what the mechanism runs as now, if it has several modes
  mechanism_counters of_mechanism;
};

// Options of an engine.
struct engine_tuning {
  bool background = true;  // the engine may start a background thread
  // `default` only: all threads append to the same ring, then to the next one, and one thread
  // writes the records of all waiting threads. For a medium where the cost of a write depends on
  // the number of places, not of bytes (a file).
  bool shared_log = false;
  bulk_persistence bulk = bulk_persistence::automatic;
  mechanism_options of_mechanism = {};
  std::uint32_t media_latency_ns = 0;  // added to each line written
};

// The state of an open pool that its engine and its transactions share.
struct pool_state {
  storage::pool_file file;
  std::unique_ptr<storage::log_space> space;  // log-structured pools only; from recovery on
  storage::heap heap;
  // TxID of the newest commit. Each commit increments it, so it has a cache line of its own.
  alignas(64) std::atomic<std::uint64_t> clock{0};
  // Set by an I/O error at commit, by a lost page of the file, and in a child of fork(). No commit
  // is acknowledged afterwards.
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

  // Until end_deferred(), this log has deferred commits with TxIDs above `before`.
  void begin_deferred(unsigned log, std::uint64_t before) noexcept {
    deferred_from[log].value.store(before, std::memory_order_seq_cst);
    deferred_logs.fetch_add(1, std::memory_order_seq_cst);
  }
  void end_deferred(unsigned log) noexcept {
    deferred_from[log].value.store(no_commit, std::memory_order_seq_cst);
    deferred_logs.fetch_sub(1, std::memory_order_release);
  }
  // Without deferred commits, TxIDs need not be drawn in order.
  void leave_ordered_mode() {
    const std::unique_lock lock(txid_mutex, std::try_to_lock);
    if (lock.owns_lock() && deferred_logs.load(std::memory_order_acquire) == 0)
      ordered_mode.store(false, std::memory_order_relaxed);
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

  media::sigbus_guard lost_pages_guard;  // a lost page of the mapping poisons the pool

  explicit pool_state(storage::pool_file f)
      : file(std::move(f)),
        heap(file),
        committing(file.header().log_count),
        deferred_from(file.header().log_count) {
    if (file.mapping().fd >= 0)
      lost_pages_guard = media::sigbus_guard(file.base(), file.reserved_bytes(), poisoned);
  }

  // Every commit with a TxID up to the result has stored its values home. A result may be smaller
  // than an earlier one, because a commit announces a clock value that it read before. The earlier
  // result stays true, so the writer of the watermark never lowers it.
  std::uint64_t completed() const noexcept {
    std::uint64_t through = clock.load(std::memory_order_seq_cst);
    if (!base::planted(base::mutant::bulk_runs_ignored))
      for (const auto& a : committing)
        through = std::min(through, a.value.load(std::memory_order_seq_cst));
    if (base::planted(base::mutant::batch_pending_ignored)) return through;
    for (const auto& p : deferred_from)
      // Read after `committing`: a commit moves from `committing` to `deferred_from`.
      through = std::min(through, p.value.load(std::memory_order_seq_cst));
    return through;
  }
};

class engine {
 public:
  virtual ~engine() = default;

  // Brings home to the state after the acknowledged commits, empties the logs and sets the clock.
  // After a crash at any point of it, it can run again. Errors: corrupt, io.
  [[nodiscard]] virtual result<> recover() = 0;
  // Takes over empty logs of the kind that the session word names, and marks the pool open on
  // media. Errors: corrupt, io.
  [[nodiscard]] virtual result<> start(std::uint8_t logs_were) = 0;

  // Called once, before start().
  virtual void set_up(const engine_tuning&) {}

  // Execution in log: if begin() returns true, the stores of the transaction go to its log as they
  // are made. begin() is called only if may_execute_in_log(). begin() and store_in_log() may throw
  // restart.
  virtual bool may_execute_in_log() const noexcept { return false; }
  virtual bool begin(transaction&) { return false; }
  // Stores the bytes of the mask of one word to t's log: in the block that already holds the word,
  // or in a new block (null). Returns the block.
  virtual format::log_block* store_in_log(transaction&, format::log_block*, std::uint64_t,
                                          std::uint64_t, std::uint8_t) {
    return nullptr;
  }
  virtual void abort(transaction&) noexcept {}

  // The buffer in which transactions of a log record the lines that they load; null: none. Called
  // once for each log, after set_up().
  virtual access_buffer* access_buffer_of(unsigned) { return nullptr; }

  // Reserves log space for t's record; may wait. On an error neither home nor a log has changed.
  // Errors: full, poisoned, io.
  [[nodiscard]] virtual result<> reserve_log(transaction& t) = 0;
  // Draws t's TxID; may append t's record too. False: a value that t has read is not current any
  // more. Neither home nor a log has changed then.
  virtual bool assign_txid(transaction& t, std::uint64_t& txid);
  // The point of no return: makes t's stores durable and stores them home, or defers both. False:
  // the medium failed; the pool is poisoned.
  virtual bool commit(transaction& t, std::uint64_t txid) = 0;
  // The whole commit: t.commit_by(*this). Virtual so that an engine can compile it as one function.
  virtual commit_status run_commit(transaction& t);

  // Whether ordered commits return before they are durable. flush_deferred() makes those that have
  // returned durable and stores them home.
  virtual bool defers_ordered() const noexcept { return false; }
  virtual void flush_deferred() {}
  // Every commit that has returned and has a TxID up to the result is durable already. no_commit:
  // all of them are.
  virtual std::uint64_t durable_through() const noexcept { return pool_state::no_commit; }
  // On return every commit that had returned before is durable.
  [[nodiscard]] virtual result<> sync() = 0;
  // On return home is durable, the logs are empty and the pool is marked closed on media.
  [[nodiscard]] virtual result<> close() = 0;

  // If no transaction runs: on return home is durable and no log record counts any more. Errors:
  // io; unsupported.
  [[nodiscard]] virtual result<> checkpoint() = 0;
  // If the mechanism maintains block checksums and no transaction runs: on return they are those of
  // home. Errors: io.
  [[nodiscard]] virtual result<> refresh_block_checksums() = 0;
  // Gives the pool `to.chunk_count` chunks, durably. Preconditions: the file has the room, no
  // transaction runs, checkpoint() has returned. Errors: corrupt, io.
  [[nodiscard]] virtual result<> grow(const format::growth& to) = 0;

  // Clears the note on media that recovery went back to a checkpoint. Errors: unsupported, if the
  // mechanism has no checkpoint copy.
  [[nodiscard]] virtual result<> acknowledge_fallback() = 0;

  // Whether transactions may store home as they run, when no other thread reads. Such a mechanism
  // cannot recover from a crash.
  virtual bool stores_in_place() const noexcept { return false; }

  virtual engine_totals totals() const noexcept = 0;
  virtual void note(unsigned log, media::tape_mark m, std::uint64_t argument) = 0;
};

}  // namespace stele::detail
