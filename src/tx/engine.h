// What stands between transactions and media: one engine a pool, a mechanism's protocol compiled
// for a medium.
//
// The runtime asks it for room before a commit's point of no return, then to commit. A mechanism is
// a class template over Media that derives from lane_engine<Media>; see mechanism/redo.h for the
// shape, and docs/CONTRIBUTING.md for the steps.
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
  std::uint64_t truncations = 0, log_spills = 0, mode_switches = 0;
  std::string_view mode = "";  // adaptive: what it runs as now
  std::uint64_t cleaned_chunks = 0, fast_cleaned_chunks = 0, moved_bytes = 0;  // log_structured
  std::uint64_t cache_bytes = 0;  // likewise: the cleaners' node caches
  std::uint64_t skipped_lines = 0, checksum_lines = 0, undo_logged_lines = 0;  // archapt
};

// How an engine does its work, where there is a choice.
struct engine_tuning {
  bool background = true;  // it may use a thread of its own
  // Commits of all threads go to one ring after the other, and one thread writes for those that
  // wait; where the medium is one that pays for each place written, not for each byte (a file). Of
  // `default` alone.
  bool shared_log = false;
  bulk_persistence bulk = bulk_persistence::automatic;
  adaptive_options adaptive = {};
  log_structured_options log_structured = {};
  archapt_options archapt = {};
  std::uint32_t media_latency_ns = 0;  // added to each line written
};

// What every engine of a pool works on.
struct pool_state {
  storage::pool_file file;
  std::unique_ptr<storage::log_space> space;  // of a log-structured pool, from recovery on
  storage::heap heap;
  alignas(64) std::atomic<std::uint64_t> clock{
      0};  // TxID of the newest commit; counts up by one a commit, so on a line of its own
  alignas(64) std::atomic<bool> poisoned{
      false};  // an I/O error at commit: nothing is acknowledged any more
  // For each log, the clock's value before its running commit drew a TxID: a lower bound, or
  // no_commit.
  static constexpr std::uint64_t no_commit = ~std::uint64_t{0};
  struct alignas(64) announcement {
    std::atomic<std::uint64_t> value{no_commit};
  };
  std::vector<announcement> committing;

  // Ordered commits, where a mechanism defers them: for each log a lower bound of those not yet
  // stored home, or no_commit; how many logs have such; whether there are any about (then all
  // commits draw their TxIDs one at a time, under the mutex, so that each knows the ordered one
  // before it).
  std::vector<announcement> deferred_from;
  std::atomic<unsigned> deferred_logs{0};
  std::atomic<unsigned> overlays{
      0};  // logs whose ordered commits still hold their locks, settled or not
  std::atomic<bool> ordered_mode{false};
  std::mutex txid_mutex;
  std::uint64_t last_ordered =
      0;  // under txid_mutex, which an ordered commit holds until it is pending: TxID

  // More may be durable than before: who waits for that is told. Not under a lock that commits
  // take. Nobody may be waiting.
  void notify_durable_advanced() const {
    if (has_durable_callbacks.load(std::memory_order_acquire)) [[unlikely]]
      notify_durable();
  }
  std::atomic<bool> has_durable_callbacks{false};
  std::function<void()> notify_durable;  // the runtime's

  // Recovery's: lines of home that were not what their checksums speak for; of these, those that
  // could not be restored.
  std::uint64_t stale_lines = 0, lost_lines = 0;
  std::string fallback_reason;  // what recovery could not restore, for which it went back to a
                                // checkpoint; empty: nothing

  // Waits for the commits that have announced themselves, except a log's own.
  void await_announced(unsigned except) const noexcept;

  media::sigbus_guard lost_pages_guard;  // of the mapping: a page that is gone poisons the pool

  explicit pool_state(storage::pool_file f)
      : file(std::move(f)),
        heap(file),
        committing(file.header().log_count),
        deferred_from(file.header().log_count) {
    if (file.mapping().fd >= 0)
      lost_pages_guard = media::sigbus_guard(file.base(), file.reserved_bytes(), poisoned);
  }

  // Every commit up to this TxID has stored its values home. May be less than it was before: a
  // commit announces what the clock was when it looked. What was true stays true, so who writes a
  // watermark never lowers it.
  std::uint64_t completed() const noexcept {
    std::uint64_t through = clock.load(std::memory_order_seq_cst);
    if (!base::planted(base::mutant::bulk_runs_ignored))
      for (const auto& a : committing)
        through = std::min(through, a.value.load(std::memory_order_seq_cst));
    if (base::planted(base::mutant::settle_pending_ignored)) return through;
    for (const auto& p : deferred_from)
      through = std::min(
          through,
          p.value.load(std::memory_order_seq_cst));  // after: a commit goes from there to here
    return through;
  }
};

class engine {
 public:
  virtual ~engine() = default;

  // Brings home to the state after the acknowledged commits and empties the logs; sets the clock.
  // May be interrupted anywhere and run again. Errors: corrupt, io.
  [[nodiscard]] virtual result<> recover() = 0;
  // Takes over empty logs of the kind that the session word names, and marks the pool open on
  // media. Errors: corrupt, io.
  [[nodiscard]] virtual result<> start(std::uint8_t logs_were) = 0;

  // Called once, before start.
  virtual void set_up(const engine_tuning&) {}

  // Execution in log: the stores of transactions that begin() says so of go to their log as they
  // are made. begin is asked only where may_execute_in_log; both may throw restart.
  virtual bool may_execute_in_log() const noexcept { return false; }
  virtual bool begin(transaction&) { return false; }
  // Stores a word (the bytes of the mask) to t's log, in the block that holds it already or a new
  // one (null); returns the block.
  virtual format::log_block* store_in_log(transaction&, format::log_block*, std::uint64_t,
                                          std::uint64_t, std::uint8_t) {
    return nullptr;
  }
  virtual void abort(transaction&) noexcept {}

  // Where transactions of a log note what they load; null: nobody wants to know. Asked once a log,
  // after set_up.
  virtual access_buffer* access_buffer_of(unsigned) { return nullptr; }

  // Makes sure that the log has room for t's record; may wait. Nothing has changed when it fails.
  // Errors: full, poisoned.
  [[nodiscard]] virtual result<> reserve_log(transaction& t) = 0;
  // Draws t's TxID, and may take its place in the log with it. False: t has read what is not
  // current any more; nothing has changed.
  virtual bool assign_txid(transaction& t, std::uint64_t& txid);
  // The point of no return: t's stores become durable and reach home. False: the medium failed; the
  // pool is poisoned.
  virtual bool commit(transaction& t, std::uint64_t txid) = 0;
  // Both, and what is around them: t.commit_by(*this). For an engine that wants it in one piece.
  virtual commit_status run_commit(transaction& t);

  // Ordered commits return before they are durable; flush_deferred() makes those that have returned
  // durable and stores them home.
  virtual bool defers_ordered() const noexcept { return false; }
  virtual void flush_deferred() {}
  // Every commit that has returned is durable up to this TxID, without anybody doing anything for
  // it; all: no_commit.
  virtual std::uint64_t durable_through() const noexcept { return pool_state::no_commit; }
  // Every commit that has returned is durable when this returns.
  [[nodiscard]] virtual result<> sync() = 0;
  // Home durable, logs empty, pool marked closed.
  [[nodiscard]] virtual result<> close() = 0;

  // Home is durable and no record counts any more when it returns, if no transaction runs. Errors:
  // io; unsupported.
  [[nodiscard]] virtual result<> checkpoint() = 0;
  // The sums of home's blocks are those of home when it returns, if the mechanism keeps them and no
  // transaction runs. Errors: io.
  [[nodiscard]] virtual result<> refresh_block_checksums() = 0;
  // Makes the pool one of so many chunks, on media; the file has room, no transaction runs,
  // checkpoint() has returned. Errors: corrupt, io.
  [[nodiscard]] virtual result<> grow(const format::growth& to) = 0;

  // What recovery wrote down when it went back to a checkpoint is forgotten. Errors: unsupported,
  // by mechanisms that make none.
  [[nodiscard]] virtual result<> acknowledge_fallback() = 0;

  // Whether transactions may store home as they run when nobody else looks (no crash is ever
  // recovered from).
  virtual bool stores_in_place() const noexcept { return false; }

  virtual engine_totals totals() const noexcept = 0;
  virtual void note(unsigned log, media::tape_mark m, std::uint64_t argument) = 0;
};

}  // namespace stele::detail
