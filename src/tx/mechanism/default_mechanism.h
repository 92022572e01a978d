// default: the mechanism of pools that name none. A durable commit streams one record of lines and
// issues one fence; an ordered commit issues no fence. Home is volatile until bulk persistence in
// the background. Page: docs/protocol/default.md.
//
// The torn-bit log is from Volos, Tack and Swift, "Mnemosyne" (2011); volatile checkpoint and bulk
// persistence are from Lu, Shu and Sun, "Blurred Persistence" (2016). Runs of words make one record
// with a length. Commits note dirty lines in a queue beside the log, so bulk persistence does not
// read the log back.
//
// Ordered commits: records are stored, not streamed, so that any thread can make them durable.
// Their values stay in the owner's overlay and their locks stay held until the deferred commits are
// flushed: flush the records, fence, store home. Each record names the ordered commit before it;
// recovery discards the orphans.
//
// On a file, a write of a few lines costs as much as a write of a page. There all threads append to
// one ring after the other and use group commit (one log for all): one thread makes everything in
// the ring durable for the others.
#pragma once

#include <base/flatten.h>
#include <tx/log/deferred_batch.h>
#include <tx/log/group_commit.h>
#include <tx/log/log_reservations.h>
#include <tx/mechanism/bulk.h>
#include <tx/transaction_inl.h>

namespace stele::detail {

template <class Media>
class default_mechanism final : public bulk_engine<Media> {
 public:
  using typename lane_engine<Media>::lane;

  default_mechanism(pool_state& state, std::unique_ptr<typename Media::shared> shared)
      : bulk_engine<Media>(state, std::move(shared)),
        deferred_flush_medium_(*this->shared_, state.file.header().log_count + 1),
        deferred_batches_(this->lanes_.size()) {
    for (lane& l : this->lanes_) l.dirty_lines.resize_for_log(l.log.capacity_lines());
  }
  ~default_mechanism() override { this->stop(); }

  void set_up(const engine_tuning& tuning) override {
    if constexpr (supports_shared_log) shared_log_ = tuning.shared_log;
    for (unsigned i = 0; shared_log_ && i < this->lanes_.size(); ++i)
      shared_log_media_.emplace_back(*this->shared_, this->state_.file.header().log_count + 2 + i);
    bulk_engine<Media>::set_up(tuning);
  }
  [[nodiscard]] result<> start(std::uint8_t logs_were) override {
    auto started = bulk_engine<Media>::start(logs_were);
    for (std::size_t i = 0; i < commit_queues_.size(); ++i)
      commit_queues_[i].reset(this->lanes_[i].log.tail());
    return started;
  }

  commit_status run_commit(transaction& t) override {
    if constexpr (Media::under_exploration)
      return t.commit_by(*this);
    else
      return commit_flattened(t);
  }

  [[nodiscard]] result<> reserve_log(transaction& t) override {
    if (!t.ordered() && this->state_.deferred_logs.load(std::memory_order_relaxed) != 0 &&
        !base::planted<Media>(base::mutant::default_no_wait)) [[unlikely]]
      flush_deferred();
    if (t.ordered()) reserve_overlay(t);
    if constexpr (supports_shared_log)
      if (shared_log_) return prepare_shared(this->lanes_[t.log()], t);
    return this->prepare_lines(this->lanes_[t.log()], t);
  }

  bool assign_txid(transaction& t, std::uint64_t& txid) override {
    if constexpr (supports_shared_log)
      if (shared_log_) return draw_shared(t, txid);
    return t.assign_txid(txid);
  }

  bool commit(transaction& t, std::uint64_t txid) override {
    lane& l = this->lanes_[t.log()];
    if constexpr (supports_shared_log)
      if (shared_log_) return commit_shared(t, txid);
    if (t.in_order()) [[unlikely]]
      return t.ordered() && l.reserved_bytes == 0 ? commit_ordered(l, t, txid)
                                                  : commit_after_ordered(l, t, txid);
    // Queued before the fence: no truncation takes the entry while txid is announced.
    return this->commit_lines(l, t, txid, [&] { this->queue_dirty_lines(l, t, txid); });
  }

  bool defers_ordered() const noexcept override { return true; }
  [[nodiscard]] result<> sync() override {
    flush_deferred();
    return this->check_medium();
  }
  [[nodiscard]] result<> close() override {
    this->stop();
    flush_deferred();
    return bulk_engine<Media>::close();
  }

  engine_totals totals() const noexcept override {
    engine_totals t = bulk_engine<Media>::totals();
    t.media += deferred_flush_medium_.count;
    for (const Media& m : shared_log_media_) t.media += m.count;
    return t;
  }

  // Makes every ordered commit that has returned durable and stores it home: steps G1 to G3. Any
  // thread may call it.
  void flush_deferred() override {
    flush_all_deferred();
    this->state_.notify_durable_advanced();
  }
  std::uint64_t durable_through() const noexcept override {
    return this->state_.deferred_logs.load(std::memory_order_acquire) == 0
               ? pool_state::no_commit
               : this->state_.completed();
  }

 private:
  // Flattened, like the rest of the commit path: a call spills registers, and stores after a fence
  // delay the next one (docs/decisions/7-tried.md). Not for the explorer, to compile quickly.
  STELE_FLATTEN commit_status commit_flattened(transaction& t) { return t.commit_by(*this); }

  [[gnu::noinline]] void flush_all_deferred() {
    using base::mutant;
    using base::planted;
    const std::lock_guard one(deferred_flush_mutex_);
    if (this->state_.deferred_logs.load(std::memory_order_acquire) == 0)
      return this->state_.leave_ordered_mode();
    // All batches are locked, so that the commits made durable are a prefix of the TxID order.
    const all_batches_lock hold(deferred_batches_);
    flush_records();  // G1
    if (!planted<Media>(mutant::default_no_batch_fence))
      deferred_flush_medium_.fence();  // G2: records are durable before their stores to home
    if (deferred_flush_medium_.failed()) return this->state_.poisoned.store(true);
    for (std::size_t i = 0; shared_log_ && i < commit_queues_.size(); ++i)
      commit_queues_[i].set_durable(flush_ends_[i]);
    for (unsigned i = 0; i < deferred_batches_.size(); ++i)
      if (deferred_batches_[i].owner != nullptr)
        store_home(i, i != 0 && planted<Media>(mutant::batch_own_alone));  // G3
    this->state_.leave_ordered_mode();
  }

  // At this many commits in a batch, a flush is requested.
  static constexpr std::uint64_t max_batch_commits = Media::under_exploration ? 3 : 256;
  // The owner of a longer overlay waits for the flush.
  static constexpr std::uint64_t max_overlay_lines = 8192;

  bool may_run_in_background() const noexcept override { return true; }
  bool queues_dirty_lines() const noexcept override { return true; }
  void background_step() override {
    if (this->state_.deferred_logs.load(std::memory_order_relaxed) != 0) {
      if (!is_log_low()) std::this_thread::sleep_for(batch_delay);
      flush_deferred();
    }
    if (is_log_low()) this->truncate();
  }
  // An ordered commit is durable about this long after it returns.
  static constexpr auto batch_delay = std::chrono::microseconds(100);

  // Reserves memory for O2. Locked: a flush of deferred commits by another thread reads the
  // overlay.
  [[gnu::noinline]] void reserve_overlay(transaction& t) {
    const std::lock_guard hold(deferred_batches_[t.log()].mutex);
    t.reserve_overlay();
  }

  // Steps O1 to O3 of docs/protocol/default.md: no fence.
  [[gnu::noinline]] bool commit_ordered(lane& l, transaction& t, std::uint64_t txid) {
    deferred_batch& g = deferred_batches_[t.log()];
    if (base::planted<Media>(base::mutant::batch_joined_early)) t.release_txid_lock();
    std::unique_lock hold(g.mutex);
    if (!shared_log_)
      l.log.template append<store_mode::cached>(format::record_kind::redo_dependent, txid,
                                                [&](auto& out) {  // O1
                                                  out.append_word(predecessor_of(t));
                                                  this->write_redo(t, out);
                                                });
    if (base::planted<Media>(base::mutant::default_ordered_home_first))
      this->store_home_unflushed(l, t);
    if (g.owner == nullptr) {
      g.from = l.log.tail();
      g.owner = &t;
      this->state_.begin_deferred(t.log(), txid - 1);
    }
    if (!shared_log_) {
      l.log.publish();
      this->queue_dirty_lines(l, t, txid);
      g.to = l.log.tail();
    }
    const bool first = ++g.commits == 1, full = g.commits >= max_batch_commits;
    t.defer(txid);  // O2: the overlay keeps the values; locks stay held
    hold.unlock();
    t.release_txid_lock();
    if (first || full) [[unlikely]]
      request_deferred_flush(full, t.overlay_lines().size() >= max_overlay_lines);  // O3
    return true;
  }

  // The TxID of the ordered commit that t's record names.
  static std::uint64_t predecessor_of(const transaction& t) noexcept {
    return base::planted<Media>(base::mutant::default_no_chain) ? 0 : t.previous_ordered();
  }

  void request_deferred_flush(bool full, bool wait) {
    if (!this->background_.runs()) return full ? flush_deferred() : void();
    this->background_.wake();
    if (!wait) return;
    while (this->state_.deferred_logs.load(std::memory_order_acquire) != 0 &&
           !this->state_.poisoned.load())
      std::this_thread::yield();
  }

  // Commits durably while ordered commits may be pending: the record names the last of them, and
  // the commit returns when they are durable.
  [[gnu::noinline]] bool commit_after_ordered(lane& l, transaction& t, std::uint64_t txid) {
    using base::mutant;
    using base::planted;
    auto fill = [&](auto& out) {
      out.append_word(predecessor_of(t));
      this->write_redo(t, out);
    };
    if (l.reserved_bytes != 0)
      this->append_spilled(l, l, format::record_kind::redo_dependent, txid, t, this->new_value,
                           t.previous_ordered());
    else
      l.log.append(format::record_kind::redo_dependent, txid, fill);
    const bool durable = this->fence_ok(l);
    t.release_txid_lock();
    if (!durable) return false;
    if (!planted<Media>(mutant::default_no_wait))
      flush_deferred();  // earlier ordered commits are durable and home first
    t.begin_home_stores();
    this->store_home_unflushed(l, t);
    l.log.publish();
    this->queue_dirty_lines(l, t, txid);
    return !this->state_.poisoned.load();
  }

  void flush_records() {
    for (std::size_t i = 0; i < deferred_batches_.size(); ++i) {
      const deferred_batch& g = deferred_batches_[i];
      const group_commit::range r = shared_log_          ? commit_queues_[i].pending_range()
                                    : g.owner != nullptr ? group_commit::range{g.from, g.to}
                                                         : group_commit::range{0, 0};
      if (shared_log_) flush_ends_[i] = r.to;
      if (r.from < r.to)
        flush_lines(deferred_flush_medium_, this->lanes_[i],
                    {r.from, r.to - base::planted<Media>(base::mutant::default_last_record)});
    }
  }
  static void flush_lines(Media& media, const lane& l, group_commit::range r) {
    for (std::uint64_t line = r.from; line < r.to; ++line)
      media.flush(l.log.bytes() + line % l.log.capacity_lines() * line_size, line_size);
  }

  void store_home(unsigned log, bool skip = false) {
    deferred_batch& g = deferred_batches_[log];
    g.owner->begin_overlay_store();
    for (const written_line& line : g.owner->overlay_lines())
      if (!skip) lane_engine<Media>::store_home(deferred_flush_medium_, this->state_.file, line);
    g.owner->end_overlay_store();
    g.owner = nullptr;
    g.commits = 0;
    this->state_.end_deferred(log);
  }

  // One log for all: docs/protocol/default.md, steps L1 to L4.
  static constexpr bool supports_shared_log = Media::whole_cache != media::whole_cache::unsupported;

  [[nodiscard]] result<> prepare_shared(lane& own, transaction& t) {
    this->release_reserved(own);
    std::uint64_t lines = this->lines_needed(t, own.log.capacity_lines() / 2);
    if (lines > own.log.capacity_lines()) {
      if (auto made = this->reserve_spill_chunks(own, t, shared_log_media_[t.log()]); !made)
        return made;
      lines = lines_for_words(5);  // TxID, predecessor; offset, length and checksum of the payload
    }
    while (!try_reserve_log(t.log(), lines)) {
      this->truncate();
      if (this->state_.poisoned.load()) return this->check_medium();
      if (try_reserve_log(t.log(), lines)) break;
      this->state_.await_announced(t.log());
    }
    return {};
  }
  bool try_reserve_log(unsigned log, std::uint64_t lines) {
    const std::lock_guard one(append_mutex_);
    (void)reservations_.release(log);
    lane* const l = lane_with_room(lines);
    if (l != nullptr) reservations_.reserve(log, l->number, lines);
    return l != nullptr;
  }

  // L1: TxIDs grow within a ring, because each is drawn where its place in the ring is taken. A
  // truncation through H therefore finds all records up to H before all others.
  bool draw_shared(transaction& t, std::uint64_t& txid) {
    const bool txid_first = base::planted<Media>(base::mutant::default_txid_before_place);
    std::unique_lock one(append_mutex_, std::defer_lock);
    if (!txid_first) one.lock();
    if (!t.assign_txid(txid)) return false;
    if (txid_first) one.lock();
    append_shared(t, t.in_order() ? format::record_kind::redo_dependent : format::record_kind::redo,
                  txid);
    return true;
  }
  bool commit_shared(transaction& t, std::uint64_t txid) {
    const appended_record& at = appended_records_[t.log()];
    if (t.in_order() && t.ordered() && !at.spilled) [[unlikely]]
      return commit_ordered(this->lanes_[t.log()], t, txid);
    const bool durable = make_durable(t, at);  // L2, L3: the log is durable before home changes
    if (t.in_order()) [[unlikely]]
      t.release_txid_lock();
    if (!durable) return false;
    if (t.in_order() && !base::planted<Media>(base::mutant::default_no_wait)) [[unlikely]]
      flush_deferred();
    store_home_shared(t);  // L4
    return !this->state_.poisoned.load(std::memory_order_relaxed);
  }
  void store_home_shared(transaction& t) {
    t.begin_home_stores();
    for (const written_line& line : t.lines())
      lane_engine<Media>::store_home(shared_log_media_[t.log()], this->state_.file, line);
  }

  struct appended_record {
    unsigned lane = 0;
    std::uint64_t end = 0;
    bool spilled = false;
  };
  // Stored, not streamed: the thread that writes the ring makes the record durable. Under
  // append_mutex_.
  void append_shared(transaction& t, format::record_kind kind, std::uint64_t txid) {
    lane& own = this->lanes_[t.log()];
    lane* const l = &this->lanes_[reservations_.release(t.log())];
    const bool spilled = own.reserved_bytes != 0;
    if (spilled) {
      this->template append_spilled<store_mode::cached>(own, *l, kind, txid, t, this->new_value,
                                                        predecessor_of(t));
    } else {
      l->log.template append<store_mode::cached>(kind, txid, [&](auto& out) {
        if (format::has_prefix_word(kind)) out.append_word(predecessor_of(t));
        this->write_redo(t, out);
      });
    }
    this->queue_dirty_lines(*l, t, txid);
    l->log.publish();
    commit_queues_[l->number].set_appended(l->log.tail());
    appended_records_[t.log()] = {l->number, l->log.tail(), spilled};
  }
  // The ring in use, or the next ring with room; null if none has room. Under append_mutex_.
  lane* lane_with_room(std::uint64_t lines) {
    for (std::size_t i = 0; i < this->lanes_.size(); ++i) {
      const std::size_t n = (current_lane_ + i) % this->lanes_.size();
      if (this->lanes_[n].log.free_lines() < reservations_.lines_in(n) + lines) continue;
      if (i != 0 && is_log_low()) this->background_.wake();
      return &this->lanes_[current_lane_ = n];
    }
    return nullptr;
  }
  bool make_durable(transaction& t, const appended_record& at) {
    Media& medium = shared_log_media_[t.log()];
    return commit_queues_[at.lane].make_durable(at.end, [&](group_commit::range r) {
      if (base::planted<Media>(base::mutant::default_shared_alone))
        r.from = std::max(r.from, at.end - 1);
      if (!base::planted<Media>(base::mutant::default_shared_unflushed))
        flush_lines(medium, this->lanes_[at.lane], r);
      return this->fence_ok(medium);
    });
  }
  // Whether about half of the log is in use.
  bool is_log_low() const {
    if (!shared_log_) return this->is_any_log_low();
    std::uint64_t room = 0;
    for (const lane& l : this->lanes_) room += l.log.free_lines();
    return room < this->lanes_.size() * this->lanes_.front().log.capacity_lines() / 2;
  }

  bool shared_log_ = false;
  std::mutex append_mutex_;  // guards rings, lanes' media, members down to current_lane_
  log_reservations reservations_{this->lanes_.size()};
  // For each log, the record of its running commit. Only the log's owner uses its entry.
  std::vector<appended_record> appended_records_ =
      std::vector<appended_record>(this->lanes_.size());
  std::size_t current_lane_ = 0;
  std::deque<group_commit> commit_queues_{this->lanes_.size()};  // one for each ring
  // One for each log's owner: its commits fence and store home with it.
  std::deque<Media> shared_log_media_;
  // One for each ring; under deferred_flush_mutex_.
  std::vector<std::uint64_t> flush_ends_ = std::vector<std::uint64_t>(this->lanes_.size());

  std::mutex deferred_flush_mutex_;
  Media deferred_flush_medium_;  // under deferred_flush_mutex_
  std::deque<deferred_batch> deferred_batches_;
};

}  // namespace stele::detail
