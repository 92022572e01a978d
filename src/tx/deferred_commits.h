// Ordered commits that have returned before they are durable: docs/protocol/default.md, steps O1 to
// O3 and G1 to G4. Their values stay in the owner's overlay and their locks stay held until the
// deferred batches are flushed: flush the records, fence, store home.
#pragma once

#include <base/assert.h>
#include <base/mutant.h>
#include <tx/background_thread.h>
#include <tx/engine.h>
#include <tx/home_writer.h>
#include <tx/log/deferred_batch.h>

#include <deque>
#include <mutex>
#include <thread>

namespace stele::detail {

template <class Media, class Log>
class deferred_commits {
 public:
  using mutant = base::mutant;

  deferred_commits(pool_medium<Media>& medium, Log& log, const home_writer<Media>& home,
                   background_thread& background, std::size_t logs)
      : medium_(medium),
        log_(log),
        home_(home),
        background_(background),
        flush_medium_(*medium.shared, medium.state.file.header().log_count + 1),
        batches_(logs) {}

  bool any() const noexcept {
    return medium_.state.deferred_logs.load(std::memory_order_acquire) != 0;
  }
  // Before the commit of t, which is ordered, draws its TxID: memory for O2. Locked: a flush by
  // another thread reads the overlay.
  [[gnu::noinline]] void reserve(transaction& t) {
    STELE_ASSERT(t.ordered() && t.log() < batches_.size());
    const std::lock_guard hold(batches_[t.log()].mutex);
    t.reserve_overlay();
  }
  // O1 to O3: no fence. Always true.
  [[gnu::noinline]] bool commit(transaction& t, std::uint64_t txid, std::uint64_t predecessor) {
    deferred_batch& batch = batches_[t.log()];
    if (planted<Media>(mutant::batch_joined_early)) t.release_txid_lock();
    std::unique_lock hold(batch.mutex);
    STELE_ASSERT(t.ordered() && t.in_order());
    STELE_ASSERT(batch.owner == nullptr ? batch.commits == 0 : batch.owner == &t);
    STELE_ASSERT(txid > batch.newest);
    if (batch.owner == nullptr) {
      batch.owner = &t;
      medium_.state.begin_deferred(t.log(), txid - 1);
    }
    log_.append_deferred(t, txid, predecessor, batch);  // O1
    if (planted<Media>(mutant::default_ordered_home_first))
      home_.store(log_.medium_of(t), t.lines());
    batch.newest = txid;
    const bool first = ++batch.commits == 1, full = batch.commits % max_batch_commits == 0;
    t.defer(txid);  // O2: the overlay keeps the values; locks stay held
    STELE_ASSERT(t.has_deferred() && !t.overlay_lines().empty());
    STELE_ASSERT(medium_.state.has_deferred(t.log()));
    hold.unlock();
    t.release_txid_lock();
    const bool is_long = t.overlay_lines().size() >= max_overlay_lines;
    if (first || full || is_long) [[unlikely]]
      request_flush(t.log(), full, is_long);  // O3
    return true;
  }

  // Makes every ordered commit that has returned durable and stores it home. Ordered commits wait
  // meanwhile. Any thread may call it.
  void flush() {
    flush_batches(false);
    medium_.state.notify_durable_advanced();
  }
  // Makes every ordered commit that has returned durable. Ordered commits go on meanwhile; a batch
  // that they have added to is stored home by a later flush. Any thread may call it.
  void harden() {
    flush_batches(true);
    medium_.state.notify_durable_advanced();
  }
  // Deferred commits are stored home before a truncation removes their records.
  void flush_before_truncation() {
    if (any()) flush();
  }
  // A step of the background thread: an ordered commit is durable about batch_delay after it
  // returns, at once if the log is low. While other threads flush, this one only looks now and then
  // whether they still do.
  void flush_in_background() {
    if (!any()) return;
    if (!log_.is_low()) {
      const std::uint64_t before = flushes_.load(std::memory_order_relaxed);
      std::this_thread::sleep_for(others_flush_ ? delay_beside_others : batch_delay);
      others_flush_ = before % 2 != 0 || flushes_.load(std::memory_order_relaxed) != before;
      if (others_flush_) return;
    }
    harden();
  }

  // Every commit that has returned and has a TxID up to the result is durable.
  std::uint64_t durable_through() const noexcept {
    if (!any()) return pool_state::no_commit;
    return std::max(hardened_through_.load(std::memory_order_acquire), medium_.state.completed());
  }
  void add_totals(engine_totals& t) const noexcept { t.media += flush_medium_.count; }

 private:
  // At each so many commits of a batch, a flush is requested.
  static constexpr std::uint64_t max_batch_commits = Media::under_exploration ? 3 : 256;
  // The owner of a longer overlay waits for the flush.
  static constexpr std::uint64_t max_overlay_lines = 8192;
  static constexpr auto batch_delay = std::chrono::microseconds(100);
  static constexpr auto delay_beside_others = std::chrono::milliseconds(1);

  void request_flush(unsigned log, bool full, bool wait) {
    if (!background_.runs()) return full || wait ? flush() : void();
    background_.wake();
    if (!wait) return;
    while (medium_.state.has_deferred(log) && !medium_.state.poisoned.load())
      std::this_thread::yield();
  }
  // G1 to G4.
  [[gnu::noinline]] void flush_batches(bool commits_go_on) {
    const std::lock_guard one(flush_mutex_);
    if (!any()) return medium_.state.leave_ordered_mode();
    const counted_flush counted(flushes_);
    all_batches_lock hold(batches_);
    const bool one_by_one = commits_go_on && planted<Media>(mutant::batch_no_prefix);
    if (one_by_one) hold.unlock();
    const std::uint64_t newest = begin_flush(one_by_one);  // G1
    STELE_ASSERT(newest != 0);
    if (commits_go_on) hold.unlock();
    log_.flush(flush_medium_);  // G2
    flush_medium_.fence();      // G3: records are durable before their stores to home
    if (flush_medium_.failed())
      return medium_.state.poison(pool_state::poison_cause::write_failed,
                                  medium_.error_number_of(flush_medium_));
    if (commits_go_on) hold.lock();
    STELE_ASSERT(newest >= hardened_through_.load(std::memory_order_relaxed));
    hardened_through_.store(planted<Media>(mutant::batch_told_late) ? newest_commit() : newest,
                            std::memory_order_release);
    for (unsigned i = 0; planted<Media>(mutant::batch_ends_late) && i < batches_.size(); ++i)
      log_.begin_flush(i, batches_[i]);
    log_.hardened();
    for (unsigned i = 0; i < batches_.size(); ++i) end_flush(i);  // G4
  }
  // All batches are locked, so that the commits that become durable are a prefix of the TxID order.
  // Returns the newest of them.
  std::uint64_t begin_flush(bool one_by_one) {
    for (unsigned i = 0; i < batches_.size(); ++i) {
      deferred_batch& b = batches_[i];
      std::unique_lock alone(b.mutex, std::defer_lock);
      if (one_by_one) alone.lock();
      log_.begin_flush(i, b);
      b.flushed_commits = b.commits;
    }
    return newest_commit();
  }
  std::uint64_t newest_commit() const noexcept {
    std::uint64_t newest = 0;
    for (const deferred_batch& b : batches_) newest = std::max(newest, b.newest);
    return newest;
  }
  void end_flush(unsigned log) {
    const deferred_batch& b = batches_[log];
    if (b.owner == nullptr) return;
    STELE_ASSERT(b.commits != 0 && b.flushed_commits <= b.commits);  // default.md G4
    if (b.commits == b.flushed_commits || planted<Media>(mutant::batch_home_early))
      store_home(log, log != 0 && planted<Media>(mutant::batch_own_alone));
  }
  void store_home(unsigned log, bool skip) {
    deferred_batch& batch = batches_[log];
    STELE_ASSERT(batch.owner->log() == log && batch.owner->has_deferred());
    STELE_ASSERT(medium_.state.has_deferred(log));
    batch.owner->begin_overlay_store();
    if (!skip) home_.store(flush_medium_, batch.owner->overlay_lines());
    batch.owner->end_overlay_store();
    batch.owner = nullptr;
    batch.commits = 0;
    medium_.state.end_deferred(log);
    STELE_ASSERT(!medium_.state.has_deferred(log));
  }

  pool_medium<Media>& medium_;
  Log& log_;
  const home_writer<Media>& home_;
  background_thread& background_;
  // Counts itself at its begin and at its end, so the count is odd while a flush runs.
  struct counted_flush {
    explicit counted_flush(std::atomic<std::uint64_t>& c) noexcept : count(c) {
      add();
      STELE_ASSERT(count.load(std::memory_order_relaxed) % 2 == 1);
    }
    ~counted_flush() { add(); }
    counted_flush(const counted_flush&) = delete;
    counted_flush& operator=(const counted_flush&) = delete;
    void add() const noexcept { count.store(count.load() + 1, std::memory_order_relaxed); }
    std::atomic<std::uint64_t>& count;
  };

  std::mutex flush_mutex_;
  std::atomic<std::uint64_t> flushes_{0};
  bool others_flush_ = false;  // of the background thread
  Media flush_medium_;         // under flush_mutex_
  // The newest ordered commit that a flush has made durable; so are all before it.
  std::atomic<std::uint64_t> hardened_through_{0};
  std::deque<deferred_batch> batches_;
};

}  // namespace stele::detail
