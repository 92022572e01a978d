// default: the mechanism of pools that name none. A durable commit streams one record of lines and
// issues one fence; an ordered commit issues no fence. Home is volatile until bulk persistence in
// the background. Page: docs/protocol/default.md.
//
// The torn-bit log is from Volos, Tack and Swift, "Mnemosyne" (2011); volatile checkpoint and bulk
// persistence are from Lu, Shu and Sun, "Blurred Persistence" (2016). Runs of words make one record
// with a length. Commits note dirty lines in a queue beside the log, so bulk persistence does not
// read the log back.
//
// Ordered commits: records are stored, not streamed, so that any thread can make them durable. Each
// record names the ordered commit before it; recovery discards the orphans.
//
// `Log` is private_log, or shared_log on a file, where a write of a few lines costs as much as a
// write of a page: one thread makes the records of all durable.
#pragma once

#include <base/assert.h>
#include <base/mutant.h>
#include <tx/bulk_write_back.h>
#include <tx/deferred_commits.h>
#include <tx/log/private_log.h>
#include <tx/log/recovery.h>
#include <tx/log/shared_log.h>
#include <tx/mechanism_engine.h>

namespace stele::detail {

// What redo-async and vcbp (redo_async.h) have otherwise than default.
struct checkpoint_variant {
  bool ordered = true;        // ordered commits return before they are durable
  bool in_background = true;  // a thread truncates, if the pool may have one
  dirty_lines where = dirty_lines::in_queue;
  bool owner_writes_back = true;  // what is in the queue, in batches
};

template <class Media, class Log, checkpoint_variant variant>
class volatile_checkpoint {
 public:
  using medium = Media;
  static constexpr log_kind kind = log_kind::torn_bit;
  static constexpr auto upkeep = checksum_upkeep::at_truncation;
  static constexpr engine::traits what{.defers_ordered = variant.ordered};

  volatile_checkpoint(pool_medium<Media>& m, home_checksums<Media>& sums,
                      const engine_tuning& tuning)
      : medium_(m),
        sums_(sums),
        logs(m, sums),
        home(m.state.file),
        truncation(m, logs, background_,
                   [this] {
                     deferred_.flush_before_truncation();
                     return write_back.truncate();
                   }),
        write_back(m, sums, logs, truncation, tuning.bulk, variant.where),
        log_(m, logs, truncation),
        deferred_(m, log_, home, background_, logs.size()) {
    if (variant.in_background && tuning.background)
      background_.start([this] { background_step(); }, [this] { return deferred_.any(); });
  }

  // --- a durable commit ---

  // Before the TxID is drawn. Ordered commits are durable before a durable one after them.
  [[nodiscard]] result<> reserve_log(transaction& t) {
    if (t.ordered()) [[unlikely]]
      deferred_.reserve(t);
    else if (deferred_.any()) [[unlikely]]
      flush_earlier_ordered();
    return log_.reserve(t);
  }
  bool assign_txid(transaction& t, std::uint64_t& txid) {
    return log_.assign_txid(t, txid, predecessor_of);
  }

  bool commit(transaction& t, std::uint64_t txid) {
    STELE_ASSERT(!t.ordered() || t.in_order());
    if (t.in_order()) [[unlikely]]
      return t.ordered() && !log_.is_spilled(t)
                 ? deferred_.commit(t, txid, predecessor_of(t))  // O1 to O3
                 : commit_after_ordered(t, txid);
    if constexpr (owner_writes_back) write_back.write_back_earlier(logs.of(t));  // 1
    log_.append(t, format::record_kind::redo, txid);  // 2; the shared log has done it
    if (planted<Media>(mutant::bulk_own_flushed)) write_back.write_back_earlier(logs.of(t));
    if (planted<Media>(mutant::bulk_home_first)) home.store(log_.medium_of(t), t.lines());
    // 3: the record is durable before home changes
    if (!log_.harden(t)) return false;
    STELE_ASSERT(!t.observed());
    t.begin_home_stores();
    home.store(log_.medium_of(t), t.lines());  // 4: not flushed
    log_.publish(t);
    return true;
  }

  // docs/protocol/recovery.md. After a crash at any point of it, it can run again.
  [[nodiscard]] result<> recover() {
    log_recovery<Media> found(medium_, sums_, logs);
    if (auto read = found.scan(); !read) return read;  // R1: records above the watermark
    found.put_in_order();                              // R2: by TxID
    // A record whose predecessor is missing is dropped: it was not acknowledged.
    found.discard_orphans();
    for (const logged_record& r : found.records)  // R3: home, and what it changes in checksums
      if (auto replayed = found.replay(r); !replayed) return replayed;
    // R3 to R6: home is durable before the watermark says so, the watermark before logs are emptied
    return found.restart();
  }

  // --- ordered commits ---

  void flush_deferred() { deferred_.flush(); }
  void harden_deferred() { deferred_.harden(); }
  std::uint64_t durable_through() const noexcept { return deferred_.durable_through(); }

  // --- of a session ---

  [[nodiscard]] result<> attach(log_kind were) {
    auto taken = logs.attach(were == kind);
    log_.attached();
    return taken;
  }
  [[nodiscard]] result<> close() {
    background_.stop();
    if (!medium_.state.poisoned.load()) deferred_.flush();
    STELE_ASSERT_ALWAYS(medium_.state.poisoned.load() || !deferred_.any());
    return truncation.close();
  }
  void add_totals(engine_totals& t) const noexcept { log_.add_totals(t), deferred_.add_totals(t); }

 private:
  using mutant = base::mutant;
  static constexpr bool owner_writes_back =
      Log::has_one_writer && variant.where == dirty_lines::in_queue && variant.owner_writes_back;

  // The TxID of the ordered commit that t's record names.
  static std::uint64_t predecessor_of(const transaction& t) noexcept {
    return planted<Media>(mutant::default_no_chain) ? 0 : t.previous_ordered();
  }

  [[gnu::always_inline]] void flush_earlier_ordered() {
    if (!planted<Media>(mutant::default_no_wait)) deferred_.flush();
  }
  // A durable commit while ordered commits may be deferred: the record names the last of them, and
  // the commit returns when they are durable.
  [[gnu::noinline]] bool commit_after_ordered(transaction& t, std::uint64_t txid) {
    STELE_ASSERT(t.in_order() && predecessor_of(t) < txid);
    STELE_ASSERT(!t.ordered() || log_.is_spilled(t));
    log_.append(t, format::record_kind::redo_dependent, txid, predecessor_of(t));
    const bool durable = log_.harden(t);
    t.release_txid_lock();
    if (!durable) return false;
    flush_earlier_ordered();  // they are durable and home first
    t.begin_home_stores();
    home.store(log_.medium_of(t), t.lines());
    log_.publish(t);
    return !medium_.state.poisoned.load();
  }

  void background_step() {
    deferred_.flush_in_background();
    if (log_.is_low()) truncation.truncate();
  }

  pool_medium<Media>& medium_;
  home_checksums<Media>& sums_;

 public:
  log_lanes<Media> logs;
  home_writer<Media> home;
  log_truncation<Media> truncation;
  bulk_write_back<Media> write_back;

 private:
  Log log_;
  deferred_commits<Media, Log> deferred_;
  background_thread background_;  // last: it ends before what it uses
};

template <class Media>
struct default_mechanism
    : volatile_checkpoint<Media, private_log<Media, true>, checkpoint_variant{}> {
  using volatile_checkpoint<Media, private_log<Media, true>,
                            checkpoint_variant{}>::volatile_checkpoint;
  using on_shared_log = volatile_checkpoint<Media, shared_log<Media>, checkpoint_variant{}>;
};

}  // namespace stele::detail
