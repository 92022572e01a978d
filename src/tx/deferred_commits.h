// Ordered commits that have returned before they are durable: docs/protocol/default.md, steps O1 to
// O3 and G1 to G3. Their values stay in the owner's overlay and their locks stay held until the
// deferred batches are flushed: flush the records, fence, store home.
#pragma once

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
    const std::lock_guard hold(batches_[t.log()].mutex);
    t.reserve_overlay();
  }
  // O1 to O3: no fence. Always true.
  [[gnu::noinline]] bool commit(transaction& t, std::uint64_t txid, std::uint64_t predecessor) {
    deferred_batch& batch = batches_[t.log()];
    if (planted(mutant::batch_joined_early)) t.release_txid_lock();
    std::unique_lock hold(batch.mutex);
    if (batch.owner == nullptr) {
      batch.owner = &t;
      medium_.state.begin_deferred(t.log(), txid - 1);
    }
    log_.append_deferred(t, txid, predecessor, batch);  // O1
    if (planted(mutant::default_ordered_home_first)) home_.store(log_.medium_of(t), t.lines());
    const bool first = ++batch.commits == 1, full = batch.commits >= max_batch_commits;
    t.defer(txid);  // O2: the overlay keeps the values; locks stay held
    hold.unlock();
    t.release_txid_lock();
    if (first || full) [[unlikely]]
      request_flush(full, t.overlay_lines().size() >= max_overlay_lines);  // O3
    return true;
  }

  // Makes every ordered commit that has returned durable and stores it home. Any thread may call
  // it.
  void flush() {
    flush_batches();
    medium_.state.notify_durable_advanced();
  }
  // Deferred commits are stored home before a truncation removes their records.
  void flush_before_truncation() {
    if (any()) flush();
  }
  // A step of the background thread: an ordered commit is durable about batch_delay after it
  // returns, at once if the log is low.
  void flush_in_background() {
    if (!any()) return;
    if (!log_.is_low()) std::this_thread::sleep_for(batch_delay);
    flush();
  }

  // Every commit that has returned and has a TxID up to the result is durable.
  std::uint64_t durable_through() const noexcept {
    return any() ? medium_.state.completed() : pool_state::no_commit;
  }
  void add_totals(engine_totals& t) const noexcept { t.media += flush_medium_.count; }

 private:
  // At this many commits in a batch, a flush is requested.
  static constexpr std::uint64_t max_batch_commits = Media::under_exploration ? 3 : 256;
  // The owner of a longer overlay waits for the flush.
  static constexpr std::uint64_t max_overlay_lines = 8192;
  static constexpr auto batch_delay = std::chrono::microseconds(100);
  static bool planted(mutant m) noexcept { return base::planted<Media>(m); }

  void request_flush(bool full, bool wait) {
    if (!background_.runs()) return full ? flush() : void();
    background_.wake();
    if (!wait) return;
    while (any() && !medium_.state.poisoned.load()) std::this_thread::yield();
  }
  // G1 to G3.
  [[gnu::noinline]] void flush_batches() {
    const std::lock_guard one(flush_mutex_);
    if (!any()) return medium_.state.leave_ordered_mode();
    // All batches are locked, so that the commits made durable are a prefix of the TxID order.
    const all_batches_lock hold(batches_);
    log_.flush(flush_medium_, batches_, planted(mutant::default_last_record));  // G1
    if (!planted(mutant::default_no_batch_fence))
      flush_medium_.fence();  // G2: records are durable before their stores to home
    if (flush_medium_.failed()) return medium_.state.poisoned.store(true);
    log_.hardened();
    for (unsigned i = 0; i < batches_.size(); ++i)
      if (batches_[i].owner != nullptr)
        store_home(i, i != 0 && planted(mutant::batch_own_alone));  // G3
  }
  void store_home(unsigned log, bool skip) {
    deferred_batch& batch = batches_[log];
    batch.owner->begin_overlay_store();
    if (!skip) home_.store(flush_medium_, batch.owner->overlay_lines());
    batch.owner->end_overlay_store();
    batch.owner = nullptr;
    batch.commits = 0;
    medium_.state.end_deferred(log);
  }

  pool_medium<Media>& medium_;
  Log& log_;
  const home_writer<Media>& home_;
  background_thread& background_;
  std::mutex flush_mutex_;
  Media flush_medium_;  // under flush_mutex_
  std::deque<deferred_batch> batches_;
};

}  // namespace stele::detail
