// archapt-undo, archapt-redo: commits do not flush home; truncation does it later. A line that the
// cache is estimated to have evicted already is not flushed at all: checksums over a matrix of
// lines cover it. Page: docs/protocol/archapt.md. Source: Wu, Ren and Li, "Architecture-Aware, High
// Performance Transaction for Persistent Memory" (2019).
//
// Invariant: while a matrix is covered, the log has the old value of each of its words that was
// stored since its block's epoch. So the content that the block covers follows from media, log and
// checksums, whichever of the later stores have reached media.
#pragma once

#include <stele/archapt_options.h>
#include <tx/access_buffer.h>
#include <tx/mechanism/archapt_recovery.h>
#include <tx/mechanism/bulk.h>
#include <tx/parity/home_copy.h>
#include <tx/parity/parity_tracker.h>

#include <deque>

namespace stele::detail {

template <class Media>
class archapt : public bulk_engine<Media> {
 public:
  using typename lane_engine<Media>::lane;
  using mutant = base::mutant;

  archapt(pool_state& state, std::unique_ptr<typename Media::shared> shared, bool undo)
      : bulk_engine<Media>(state, std::move(shared),
                           undo ? log_kind::archapt_undo : log_kind::archapt_redo),
        undo_(undo),
        gate_(this->lanes_.size()),
        tracker_(state.file, this->control_, gate_),
        checkpoint_copy_(state.file, tracker_.area, this->control_),
        collected_until_(this->lanes_.size()),
        truncate_at_(this->lanes_.size()) {
    for (lane& l : this->lanes_) l.dirty_lines.resize_for_log(l.log.capacity_lines());
  }
  ~archapt() override { this->stop(); }

  void set_up(const engine_tuning& tuning) override {
    const auto options = tuning.of_mechanism.get<archapt_options>();
    tracker_.set_up(options, !undo_);
    if (tracker_.enabled()) load_buffers_.resize(this->lanes_.size());
    if (checkpoint_copy_.present()) begin_checkpoints(options.checkpoint_commits);
    record_.payload.reserve(this->lanes_.front().log.capacity_lines() * format::payload_words);
    bulk_engine<Media>::set_up(tuning);
  }

  access_buffer* access_buffer_of(unsigned log) override {
    return load_buffers_.empty() ? nullptr : &load_buffers_[log];
  }

  [[nodiscard]] result<> reserve_log(transaction& t) override {
    lane& l = this->lanes_[t.log()];
    // Twice: archapt-redo also logs what the lines held before.
    const std::uint64_t bound = 2 * (3 * t.lines().size() + 2);
    if (bound <= l.log.free_lines() && l.log.free_lines() >= l.log.capacity_lines() / 2 &&
        l.reserved_bytes == 0) [[likely]]
      return {};
    this->release_reserved(l);
    const std::uint64_t lines = 2 * this->lines_needed(t, l.log.capacity_lines() / 4) + 1;
    if (lines <= l.log.capacity_lines()) return this->wait_for_log_space(l, lines);
    if (auto made = this->reserve_spill_chunks(l, t, l.media); !made) return made;
    reserve_spilled(l, t);
    return this->wait_for_log_space(l, l.log.capacity_lines() / 2);
  }

  // docs/protocol/archapt.md, steps 1 to 5.
  bool commit(transaction& t, std::uint64_t txid) override {
    lane& l = this->lanes_[t.log()];
    enter_gate(l, t);
    undo_ ? append_old_values(l, t, txid) : append_old_and_new_values(l, t, txid);  // 1
    if (!planted(mutant::archapt_no_log_fence) && !this->fence_ok(l))
      return gate_.leave(l.number), false;  // 2: the record is durable before home changes
    t.begin_home_stores();
    this->store_home_unflushed(l, t);  // 3
    l.log.publish();
    this->queue_dirty_lines(l, t, txid);  // 4
    gate_.leave(l.number);
    if (txid >= checkpoint_due_.load(std::memory_order_relaxed)) [[unlikely]]
      checkpoint_if_due();
    if (!undo_ || t.ordered_requested() || planted(mutant::archapt_undo_acknowledged)) return true;
    // The commit has stored home: it takes its announcement back.
    this->state_.committing[l.number].value.store(pool_state::no_commit, std::memory_order_release);
    const bool kept = commit_physically(txid);  // 5
    this->state_.notify_durable_advanced();
    return kept;
  }

  // docs/protocol/archapt.md, recovery; see also archapt_recovery.h.
  [[nodiscard]] result<> recover() override {
    auto mark = this->read_word(format::watermark_offset);
    if (!mark) return std::unexpected(mark.error());
    const auto fallback = this->read_word(format::fallback_state_offset);
    if (!fallback) return std::unexpected(fallback.error());
    if (static_cast<format::fallback_state>(*fallback) == format::fallback_state::under_way)
      return restore_checkpoint(*mark);  // before R1: spilled payloads may be gone
    std::vector<typename torn_bit_engine<Media>::logged_record> records;
    std::vector<std::uint64_t> words;
    if (auto read = this->scan_logs(*mark, records, words); !read) return read;  // R1
    std::ranges::stable_sort(records, {}, &torn_bit_engine<Media>::logged_record::txid);
    const std::uint64_t newest = records.empty() ? *mark : std::max(*mark, records.back().txid);
    if (auto whole = restore_stale_lines(records, words); !whole)
      return whole.error().code == errc::lost ? fall_back(whole.error(), newest) : whole;  // R2, R3
    if (undo_ && !planted(mutant::archapt_rolls_forward)) std::ranges::reverse(records);
    line_set lines;
    for (const auto& r : records) {  // R4
      if (!undo_ && r.kind != format::record_kind::redo_with_epoch) continue;
      if (auto done = this->replay(std::span(words).subspan(r.first, r.words), lines); !done)
        return done;
    }
    return this->end_recovery(lines, newest);  // R5, R6
  }

  // With undo, recovery may roll back a commit that has returned, until its home is durable. With
  // redo, the log has the commit.
  [[nodiscard]] result<> sync() override {
    flush_deferred();
    return this->check_medium();
  }
  void flush_deferred() override {
    if (!undo_) return;
    // The clock also covers commits with smaller TxIDs that are still under way.
    commit_physically(this->state_.clock.load());
    this->state_.notify_durable_advanced();
  }
  std::uint64_t durable_through() const noexcept override {
    return undo_ ? physically_committed_.load(std::memory_order_acquire) : pool_state::no_commit;
  }

  [[nodiscard]] result<> close() override {
    this->stop();
    {
      const auto hold = this->lock_truncation();
      collect_all_dirty_lines();
      end_epochs();
    }
    return bulk_engine<Media>::close();
  }

  [[nodiscard]] result<> acknowledge_fallback() override {
    const auto hold = this->lock_truncation();
    this->write_word(format::fallback_state_offset,
                     static_cast<std::uint64_t>(format::fallback_state::none));
    this->control_.fence();
    return this->check_medium();
  }

  engine_totals totals() const noexcept override {
    engine_totals t = bulk_engine<Media>::totals();
    t.of_mechanism.add("skipped_lines", tracker_.skipped_lines());
    t.of_mechanism.add("checksum_lines", tracker_.checksum_lines());
    t.of_mechanism.add("undo_logged_lines", tracker_.undo_logged_lines());
    return t;
  }

 private:
  // Truncation leaves skipped lines unflushed.
  bool maintains_block_checksums() const noexcept override { return false; }
  static constexpr unsigned polls_before_yield = 64;
  static bool planted(mutant m) noexcept { return base::planted<Media>(m); }
  bool may_run_in_background() const noexcept override { return true; }
  void background_step() override {
    if (this->is_any_log_low()) truncate();
  }

  // Enters the commit gate. A spilled record is written to chunks of home, so none of them may be
  // covered. It logs no old values, so with redo no line of the transaction may be covered either.
  void enter_gate(lane& l, const transaction& t) {
    gate_.enter(l.number);
    if (l.reserved_bytes == 0 || !tracker_.enabled()) [[likely]]
      return;
    for (;;) {
      const std::span<const std::uint64_t> hit = covered_matrices_of(l, t);
      if (hit.empty()) return;
      gate_.leave(l.number);
      {
        const auto hold = this->lock_truncation();
        tracker_.uncover(hit);
      }
      gate_.enter(l.number);
    }
  }
  // Reserves memory for covered_matrices_of(), and for the truncation that reads the record back.
  void reserve_spilled(const lane& l, const transaction& t) {
    covered_hits_[l.number].reserve(
        tracker_.area.matrix_of(l.reserved_bytes + tracker_.area.offset_of(0, 0)) + 2 +
        t.lines().size());
    const auto hold = this->lock_truncation();
    record_.payload.reserve(l.reserved_bytes / 8);
  }
  std::span<const std::uint64_t> covered_matrices_of(const lane& l, const transaction& t) {
    std::vector<std::uint64_t>& hit = covered_hits_[l.number];
    hit.clear();
    auto look = [&](std::uint64_t m) {
      if (tracker_.covered(m) && std::ranges::find(hit, m) == hit.end()) hit.push_back(m);
    };
    for (std::uint64_t m = tracker_.area.matrix_of(l.reserved_spill);
         m <= tracker_.area.matrix_of(l.reserved_spill + l.reserved_bytes - 1); ++m)
      look(m);
    if (!undo_)
      for (const written_line& line : t.lines()) look(tracker_.area.matrix_of(line.offset));
    return hit;
  }

  auto old_value() const {
    return [this](std::uint64_t offset, std::uint64_t) {
      return __atomic_load_n(reinterpret_cast<const std::uint64_t*>(this->state_.file.at(offset)),
                             __ATOMIC_RELAXED);
    };
  }
  template <class WordOf>
  void append_at(lane& l, format::record_kind kind, std::uint64_t txid, const transaction& t,
                 WordOf&& word_of) {
    if (l.reserved_bytes != 0) [[unlikely]]
      return this->append_spilled(l, l, kind, txid, t, word_of, tracker_.epoch());
    l.log.append(kind, txid, [&](auto& out) {
      out.append_word(tracker_.epoch());
      this->write_runs(t, out, word_of);
    });
  }
  void append_old_values(lane& l, const transaction& t, std::uint64_t txid) {
    append_at(l, format::record_kind::undo_with_epoch, txid, t, old_value());
  }
  void append_old_and_new_values(lane& l, const transaction& t, std::uint64_t txid) {
    if (l.reserved_bytes == 0 && tracker_.enabled()) append_covered(l, t, txid);
    append_at(l, format::record_kind::redo_with_epoch, txid, t, this->new_value);
  }
  // Logs what the transaction's covered lines hold before its stores.
  void append_covered(lane& l, const transaction& t, std::uint64_t txid) {
    const auto lines = t.lines();
    const auto covered = [this](const written_line& line) {
      return tracker_.covered(tracker_.area.matrix_of(line.offset));
    };
    if (std::ranges::none_of(lines, covered) || planted(mutant::archapt_no_old_values)) return;
    std::uint64_t kept = 0;
    l.log.append(format::record_kind::undo_with_epoch, txid, [&](auto& out) {
      out.append_word(tracker_.epoch());
      for (const written_line& line : lines)
        if (covered(line)) this->write_any_runs({&line, 1}, out, old_value()), ++kept;
    });
    l.log.publish();
    tracker_.count_old_lines(kept);
  }

  // Returns when home is durable through `txid`; another thread may do the work. False: poisoned.
  bool commit_physically(std::uint64_t txid) {
    for (unsigned polls = 1;; ++polls) {  // until commits before it have stored home
      {
        const auto hold = this->lock_truncation();
        if (physically_committed_ >= txid) return true;
        if (this->state_.completed() >= txid) make_home_durable();
        if (this->state_.poisoned.load()) return false;
        if (physically_committed_ >= txid) return true;
      }
      if (polls % polls_before_yield != 0)
        media::cpu::relax();
      else
        std::this_thread::yield();  // there may be more threads than processors
    }
  }

  // --- making home durable: docs/protocol/archapt.md, T1 to T6 ---

  std::uint64_t truncate() override {
    const std::uint64_t through = truncate_logs();
    this->state_.notify_durable_advanced();
    return through;
  }
  std::uint64_t truncate_logs() {
    const auto hold = this->lock_truncation();
    const std::uint64_t through = make_home_durable();
    this->advance_heads(truncate_at_);  // T5, T6
    (void)this->check_medium();
    return through;
  }

  std::uint64_t make_home_durable() {
    // T1: all commits through it have stored home
    const std::uint64_t through = this->advance_completed();
    for (lane& l : this->lanes_) collect_dirty_lines(l, through);  // T2
    for (access_buffer& b : load_buffers_)
      b.drain([this](std::uint64_t offset) {
        if (offset >= this->state_.file.header().home_offset) tracker_.record_load(offset);
      });
    truncate_at_ = collected_until_;
    tracker_.flush_or_cover([this] { collect_all_dirty_lines(); },
                            [this] { return checkpoint_before_covering(); });  // T3
    if (checkpoint_interval_ != 0 && tracker_.any_covered())
      checkpoint_due_.store(checkpoint_valid_until_, std::memory_order_relaxed);
    if (!planted(mutant::archapt_log_released))
      this->control_.fence();  // home and parity blocks are durable before the watermark moves
    this->write_word(format::watermark_offset, through);  // T4
    // The watermark is durable before a commit is acknowledged or a head moves.
    this->control_.fence();
    physically_committed_.store(through, std::memory_order_release);
    (void)this->check_medium();
    return through;
  }

  // Takes from one log's queue which lines its transactions up to `through` stored to.
  void collect_dirty_lines(lane& l, std::uint64_t through) {
    std::uint64_t& position = collected_until_[l.number];
    position = std::max(position, l.log.head());
    for (dirty_line_queue::entry n; l.dirty_lines.peek(n) && n.txid <= through;) {
      if (n.lines == 0) collect_logged_lines(l, position, n.next);
      position = n.next;
      l.dirty_lines.pop(n, [&](std::uint64_t line) { record_store(line); });
    }
  }
  void collect_all_dirty_lines() {
    for (lane& l : this->lanes_) collect_dirty_lines(l, pool_state::no_commit);
  }
  void record_store(std::uint64_t line) {
    tracker_.record_store(line);
    checkpoint_copy_.record_store(line);
  }
  void collect_logged_lines(lane& l, std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t at = from; at < to;) {
      (void)l.read(at, to, record_);
      (void)for_each_stored_run(
          this->state_.file, record_.payload, [&](format::run_header head, const std::uint64_t*) {
            for_each_line(head, [&](std::uint64_t line) { record_store(line); });
          });
    }
  }
  // Makes home durable; from the next fence on no block counts. The gate is closed, or there are no
  // commits.
  void end_epochs() {
    const std::uint64_t epoch = tracker_.end_all();
    if (!planted(mutant::archapt_checkpoint_unflushed))
      this->control_.fence();  // home is durable before blocks stop counting
    if (tracker_.area.present() && !planted(mutant::archapt_checkpoint_covered))
      this->write_word(format::parity_epoch_offset, epoch);
  }

  // --- checkpoints: docs/protocol/archapt.md, C1 to C5 ---

  // The session's first checkpoint comes before anything is covered.
  void begin_checkpoints(std::uint64_t between) {
    checkpoint_interval_ = between != 0 ? between : this->state_.file.header().checkpoint_commits;
  }
  // Copies all of home as it is now. Under truncation_mutex_.
  void make_checkpoint() {
    gate_.close();  // C1
    collect_all_dirty_lines();
    end_epochs();  // C2, C3
    const std::uint64_t newest = this->state_.clock.load();
    // C4: home is durable and nothing is covered, so no recovery falls back to an unfinished copy
    checkpoint_copy_.update();
    this->write_word(format::checkpoint_offset, newest + 1);  // C5
    this->control_.fence();  // the checkpoint is durable before anything is covered
    checkpoint_valid_until_ = newest + checkpoint_interval_;
    checkpoint_due_.store(pool_state::no_commit, std::memory_order_relaxed);
    gate_.open();
  }
  // A covered line can be lost, and then everything since the checkpoint. So before anything is
  // covered, a recent checkpoint must exist. True: it made one.
  bool checkpoint_before_covering() {
    if (checkpoint_interval_ == 0 || this->state_.clock.load() < checkpoint_valid_until_ ||
        planted(mutant::archapt_no_first_checkpoint))
      return false;
    make_checkpoint();
    return true;
  }
  [[gnu::noinline]] void checkpoint_if_due() {
    const auto hold = this->lock_truncation();
    if (this->state_.clock.load() >= checkpoint_due_) make_checkpoint();
  }

  [[nodiscard]] result<> attach_logs(log_kind logs_were) override {
    if (auto taken = bulk_engine<Media>::attach_logs(logs_were); !taken) return taken;
    const auto epoch = this->read_word(format::parity_epoch_offset);
    if (!epoch) return std::unexpected(epoch.error());
    tracker_.begin(*epoch);
    physically_committed_.store(this->state_.clock.load());
    for (lane& l : this->lanes_) collected_until_[l.number] = l.log.head();
    return {};
  }

  // R2 and R3.
  template <class Records>
  [[nodiscard]] result<> restore_stale_lines(const Records& records,
                                             std::span<const std::uint64_t> words) {
    const parity_area& area = tracker_.area;
    if (!area.present()) return {};
    const auto first = this->read_word(format::parity_epoch_offset);
    if (!first) return std::unexpected(first.error());
    old_values olds(area);
    for (const auto& r : records)
      if (r.kind == format::record_kind::undo_with_epoch)
        if (auto added =
                olds.add(this->state_.file, std::span(words).subspan(r.first, r.words), r.front);
            !added)
          return added;
    const covered_home now = find_covered(area, *first, olds);
    if (auto possible = check_epoch(now.newest_epoch); !possible) return possible;
    this->state_.stale_lines = now.stale, this->state_.lost_lines = now.lost.size();
    if (!now.lost.empty()) return report_loss(this->state_.file, this->state_.heap, now);
    for (const covered_home::line& line : now.restored)
      this->control_.store(this->state_.file.at(line.offset), line.content.data(), line_size);
    for (std::uint64_t m : now.matrices) tracker_.flush(m, area.lines_in_home(m));
    if (!planted(mutant::archapt_recover_unfenced))
      this->control_.fence();  // all of a covered matrix is durable before its block stops counting
    if (now.newest_epoch != 0) this->write_word(format::parity_epoch_offset, now.newest_epoch + 1);
    // R3: no block counts any more before home changes from what the block covers.
    this->control_.fence();
    return {};
  }
  [[nodiscard]] result<> check_epoch(std::uint64_t newest) const {
    if (newest < format::txid_limit) return {};
    return base::fail(errc::corrupt,
                      fmt::format("{}: a block of checksums over home is of epoch {}, which no "
                                  "program reaches; restore the pool from a copy",
                                  this->state_.file.path(), newest));
  }

  // --- recovery falls back: docs/protocol/archapt.md, F1 to F4 ---

  [[nodiscard]] result<> fall_back(const error& why, std::uint64_t newest) {
    const auto to = this->read_word(format::checkpoint_offset);
    if (!to) return std::unexpected(to.error());
    if (!checkpoint_copy_.present() || *to == 0) return std::unexpected(why);
    this->state_.fallback_reason = why.message;
    if (planted(mutant::archapt_fallback_undecided)) return restore_checkpoint(newest);
    this->write_word(format::fallback_to_offset, *to);  // F1
    this->write_word(format::fallback_from_offset, newest);
    this->write_word(format::fallback_state_offset,
                     static_cast<std::uint64_t>(format::fallback_state::under_way));
    this->control_.fence();  // the decision is durable before home changes
    return restore_checkpoint(newest);
  }
  [[nodiscard]] result<> restore_checkpoint(std::uint64_t newest) {
    const auto first = this->read_word(format::parity_epoch_offset),
               from = this->read_word(format::fallback_from_offset);
    if (!first) return std::unexpected(first.error());
    if (!from) return std::unexpected(from.error());
    const std::uint64_t epoch = newest_epoch(tracker_.area, *first);
    if (auto possible = check_epoch(epoch); !possible) return possible;
    checkpoint_copy_.restore_home();  // F2
    if (epoch != 0 && !planted(mutant::archapt_fallback_covered))
      this->write_word(format::parity_epoch_offset, epoch + 1);  // F3
    if (auto emptied = planted(mutant::archapt_fallback_replayed)
                           ? this->check_medium()
                           : this->end_recovery({}, std::max(newest, *from));
        !emptied)
      return emptied;
    this->write_word(format::fallback_state_offset,
                     static_cast<std::uint64_t>(format::fallback_state::done));  // F4
    this->control_.fence();
    return this->check_medium();
  }

  const bool undo_;
  commit_gate gate_;
  parity_tracker<Media> tracker_;
  home_copy<Media> checkpoint_copy_;
  // Commits from one checkpoint to the next; 0: no checkpoints are made.
  std::uint64_t checkpoint_interval_ = 0;
  // Under truncation_mutex_: from this TxID on, too many commits follow the newest checkpoint.
  std::uint64_t checkpoint_valid_until_ = 0;
  // The same value while anything is covered: the commit that reaches it makes the next checkpoint.
  std::atomic<std::uint64_t> checkpoint_due_{pool_state::no_commit};
  // TxID through which home is durable; set under truncation_mutex_, like the members below.
  std::atomic<std::uint64_t> physically_committed_{0};
  std::deque<access_buffer> load_buffers_;  // one for each log; none if nothing is ever skipped
  // For each log: the position that was collected; the position up to which it may be truncated.
  std::vector<std::uint64_t> collected_until_, truncate_at_;
  // For each log: the result of covered_matrices_of().
  std::vector<std::vector<std::uint64_t>> covered_hits_{this->lanes_.size()};
  log_record record_;
};

template <class Media>
struct archapt_undo final : archapt<Media> {
  archapt_undo(pool_state& state, std::unique_ptr<typename Media::shared> shared)
      : archapt<Media>(state, std::move(shared), true) {}
};
template <class Media>
struct archapt_redo final : archapt<Media> {
  archapt_redo(pool_state& state, std::unique_ptr<typename Media::shared> shared)
      : archapt<Media>(state, std::move(shared), false) {}
};

}  // namespace stele::detail
