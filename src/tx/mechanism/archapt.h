// archapt-undo, archapt-redo: commits do not flush home; truncation does it later. A line that the
// cache is estimated to have evicted already is not flushed at all: checksums over a matrix of
// lines cover it. Page: docs/protocol/archapt.md. Source: Wu, Ren and Li, "Architecture-Aware, High
// Performance Transaction for Persistent Memory" (2019).
//
// Invariant: while a matrix is covered, the log has the old value of each of its words that was
// stored since its block's epoch. So the content that the block covers follows from media, log and
// checksums, whichever of the later stores have reached media.
#pragma once

#include <media/spin.h>
#include <stele/archapt_options.h>
#include <tx/access_buffer.h>
#include <tx/log/stored_lines.h>
#include <tx/mechanism/archapt_recovery.h>
#include <tx/mechanism/bulk.h>
#include <tx/parity/checkpoint_schedule.h>
#include <tx/parity/covered_spills.h>
#include <tx/parity/home_copy.h>
#include <tx/parity/parity_tracker.h>

#include <deque>

namespace stele::detail {

template <class Media, bool undo>
class archapt final : public bulk_engine<Media> {
 public:
  using typename lane_engine<Media>::lane;
  using mutant = base::mutant;

  archapt(pool_state& state, std::unique_ptr<typename Media::shared> shared)
      : bulk_engine<Media>(state, std::move(shared),
                           undo ? log_kind::archapt_undo : log_kind::archapt_redo),
        gate_(this->lanes_.size()),
        tracker_(state.file, this->control_, gate_),
        checkpoint_copy_(state.file, tracker_.area, this->control_),
        stored_(state.file, this->lanes_.size()) {
    for (lane& l : this->lanes_) l.dirty_lines.resize_for_log(l.log.capacity_lines());
  }
  ~archapt() override { this->stop(); }

  void set_up(const engine_tuning& tuning) override {
    const auto options = tuning.of_mechanism.get<archapt_options>();
    tracker_.set_up(options, !undo);
    if (tracker_.enabled()) load_buffers_.resize(this->lanes_.size());
    if (checkpoint_copy_.present())
      checkpoints_.begin(options.checkpoint_commits != 0
                             ? options.checkpoint_commits
                             : this->state_.file.header().checkpoint_commits);
    stored_.reserve(this->lanes_.front().log.capacity_lines() * format::payload_words);
    bulk_engine<Media>::set_up(tuning);
  }

  access_buffer* access_buffer_of(unsigned log) override {
    return load_buffers_.empty() ? nullptr : &load_buffers_[log];
  }

  [[nodiscard]] result<> reserve_log(transaction& t) override {
    lane& l = this->lanes_[t.log()];
    // Twice: archapt-redo also logs what the lines held before.
    const std::uint64_t bound = 2 * (3 * t.lines().size() + 2);
    if (this->has_plenty(l, bound)) [[likely]]
      return {};
    this->release_reserved(l);
    const std::uint64_t lines = 2 * this->lines_needed(t, l.log.capacity_lines() / 4) + 1;
    if (lines <= l.log.capacity_lines()) return this->wait_for_log_space(l, lines);
    if (auto made = this->reserve_spill_chunks(l, t, l.media); !made) return made;
    covered_.reserve(l.number, l.reserved_bytes, t.lines().size());
    reserve_collecting(l.reserved_bytes / 8);
    return this->wait_for_log_space(l, l.log.capacity_lines() / 2);
  }

  // docs/protocol/archapt.md, steps 1 to 5.
  bool commit(transaction& t, std::uint64_t txid) override {
    lane& l = this->lanes_[t.log()];
    enter_gate(l, t);
    append_records(l, t, txid);  // 1
    if (!planted(mutant::archapt_no_log_fence) && !this->fence_ok(l))
      return gate_.leave(l.number), false;  // 2: the record is durable before home changes
    t.begin_home_stores();
    this->store_home_unflushed(l, t);  // 3
    l.log.publish();
    this->queue_dirty_lines(l, t, txid);  // 4
    gate_.leave(l.number);
    if (checkpoints_.is_due(txid)) [[unlikely]]
      checkpoint_if_due();
    if (!undo || t.ordered_requested() || planted(mutant::archapt_undo_acknowledged)) return true;
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
    if (undo && !planted(mutant::archapt_rolls_forward)) std::ranges::reverse(records);
    line_set lines;
    for (const auto& r : records) {  // R4
      if (!undo && r.kind != format::record_kind::redo_with_epoch) continue;
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
    if (!undo) return;
    // The clock also covers commits with smaller TxIDs that are still under way.
    commit_physically(this->state_.clock.load());
    this->state_.notify_durable_advanced();
  }
  std::uint64_t durable_through() const noexcept override {
    return undo ? physically_committed_.load(std::memory_order_acquire) : pool_state::no_commit;
  }

  [[nodiscard]] result<> close() override {
    this->stop();
    {
      const auto hold = this->lock_truncation();
      collect_dirty_lines(pool_state::no_commit);
      end_epochs();
    }
    return bulk_engine<Media>::close();
  }

  [[nodiscard]] result<> acknowledge_fallback() override {
    const auto hold = this->lock_truncation();
    write_fallback_state(format::fallback_state::none);
    return this->check_medium();
  }

  engine_totals totals() const noexcept override {
    engine_totals t = bulk_engine<Media>::totals();
    tracker_.add_counters_to(t.of_mechanism);
    return t;
  }

 private:
  bool maintains_block_checksums() const noexcept override { return false; }  // skips lines
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
      const std::span<const std::uint64_t> hit =
          covered_.find(l.number, tracker_, l.reserved_spill, l.reserved_bytes,
                        undo ? std::span<const written_line>() : t.lines());
      if (hit.empty()) return;
      gate_.leave(l.number);
      {
        const auto hold = this->lock_truncation();
        tracker_.uncover(hit);
      }
      gate_.enter(l.number);
    }
  }
  // For the truncation that reads a spilled record back.
  void reserve_collecting(std::size_t words) {
    const auto hold = this->lock_truncation();
    stored_.reserve(words);
  }

  void append_records(lane& l, const transaction& t, std::uint64_t txid) {
    if constexpr (undo)
      return append_at(l, format::record_kind::undo_with_epoch, txid, t, this->old_value());
    if (l.reserved_bytes == 0 && tracker_.enabled()) append_covered(l, t, txid);
    append_at(l, format::record_kind::redo_with_epoch, txid, t, this->new_value);
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
        if (covered(line)) this->write_any_runs({&line, 1}, out, this->old_value()), ++kept;
    });
    l.log.publish();
    tracker_.count_old_lines(kept);
  }

  // Returns when home is durable through `txid`; another thread may do the work. False: poisoned.
  bool commit_physically(std::uint64_t txid) {
    for (unsigned polls = 0;; media::spin_pause(polls)) {  // until commits before it are home
      const auto hold = this->lock_truncation();
      if (physically_committed_ >= txid) return true;
      if (this->state_.completed() >= txid) make_home_durable();
      if (this->state_.poisoned.load()) return false;
      if (physically_committed_ >= txid) return true;
    }
  }

  // Makes home durable: docs/protocol/archapt.md, T1 to T6.
  std::uint64_t truncate() override {
    auto hold = this->lock_truncation();
    const std::uint64_t through = make_home_durable();
    this->advance_heads(truncate_at_);  // T5, T6
    (void)this->check_medium();
    hold.unlock();
    this->state_.notify_durable_advanced();
    return through;
  }

  std::uint64_t make_home_durable() {
    // T1: all commits through it have stored home
    const std::uint64_t through = this->advance_completed();
    collect_dirty_lines(through);  // T2
    for (access_buffer& b : load_buffers_)
      b.drain([this](std::uint64_t offset) { tracker_.record_load(offset); });
    truncate_at_ = stored_.ends();
    tracker_.flush_or_cover([this] { collect_dirty_lines(pool_state::no_commit); },
                            [this] { return checkpoint_before_covering(); });  // T3
    if (tracker_.any_covered()) checkpoints_.covers();
    if (!planted(mutant::archapt_log_released))
      this->control_.fence();  // home and parity blocks are durable before the watermark moves
    this->write_word(format::watermark_offset, through);  // T4
    // The watermark is durable before a commit is acknowledged or a head moves.
    this->control_.fence();
    physically_committed_.store(through, std::memory_order_release);
    (void)this->check_medium();
    return through;
  }

  // Of transactions up to `through`.
  void collect_dirty_lines(std::uint64_t through) {
    for (lane& l : this->lanes_)
      stored_.collect(l, through, [this](std::uint64_t line) {
        tracker_.record_store(line);
        checkpoint_copy_.record_store(line);
      });
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

  // Copies all of home as it is now: docs/protocol/archapt.md, C1 to C5. Under truncation_mutex_.
  void make_checkpoint() {
    gate_.close();  // C1
    collect_dirty_lines(pool_state::no_commit);
    end_epochs();  // C2, C3
    const std::uint64_t newest = this->state_.clock.load();
    // C4: home is durable and nothing is covered, so no recovery falls back to an unfinished copy
    checkpoint_copy_.update();
    this->write_word(format::checkpoint_offset, newest + 1);  // C5
    this->control_.fence();  // the checkpoint is durable before anything is covered
    checkpoints_.made(newest);
    gate_.open();
  }
  // True: it made one.
  bool checkpoint_before_covering() {
    const bool makes = checkpoints_.is_missing(this->state_.clock.load()) &&
                       !planted(mutant::archapt_no_first_checkpoint);
    if (makes) make_checkpoint();
    return makes;
  }
  [[gnu::noinline]] void checkpoint_if_due() {
    const auto hold = this->lock_truncation();
    if (checkpoints_.is_due(this->state_.clock.load())) make_checkpoint();
  }

  [[nodiscard]] result<> attach_logs(log_kind logs_were) override {
    if (auto taken = bulk_engine<Media>::attach_logs(logs_were); !taken) return taken;
    const auto epoch = this->read_word(format::parity_epoch_offset);
    if (!epoch) return std::unexpected(epoch.error());
    tracker_.begin(*epoch);
    physically_committed_.store(this->state_.clock.load());
    for (lane& l : this->lanes_) stored_.begin(l.number, l.log.head());
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
    if (auto added = olds.add_records(this->state_.file, records, words); !added) return added;
    const auto now = find_covered(area, *first, olds);
    if (!now) return std::unexpected(now.error());
    this->state_.stale_lines = now->stale, this->state_.lost_lines = now->lost.size();
    if (!now->lost.empty()) return report_loss(this->state_.file, this->state_.heap, *now);
    for (const covered_home::line& line : now->restored)
      this->control_.store(this->state_.file.at(line.offset), line.content.data(), line_size);
    for (std::uint64_t m : now->matrices) tracker_.flush(m, area.lines_in_home(m));
    if (!planted(mutant::archapt_recover_unfenced))
      this->control_.fence();  // all of a covered matrix is durable before its block stops counting
    if (now->newest_epoch != 0)
      this->write_word(format::parity_epoch_offset, now->newest_epoch + 1);
    // R3: no block counts any more before home changes from what the block covers.
    this->control_.fence();
    return {};
  }

  // Recovery goes back to the checkpoint: docs/protocol/archapt.md, F1 to F4.
  [[nodiscard]] result<> fall_back(const error& why, std::uint64_t newest) {
    const auto to = this->read_word(format::checkpoint_offset);
    if (!to) return std::unexpected(to.error());
    if (!checkpoint_copy_.present() || *to == 0) return std::unexpected(why);
    this->state_.fallback_reason = why.message;
    if (planted(mutant::archapt_fallback_undecided)) return restore_checkpoint(newest);
    this->write_word(format::fallback_to_offset, *to);  // F1
    this->write_word(format::fallback_from_offset, newest);
    write_fallback_state(format::fallback_state::under_way);  // durable before home changes
    return restore_checkpoint(newest);
  }
  [[nodiscard]] result<> restore_checkpoint(std::uint64_t newest) {
    const auto first = this->read_word(format::parity_epoch_offset),
               from = this->read_word(format::fallback_from_offset);
    if (!first) return std::unexpected(first.error());
    if (!from) return std::unexpected(from.error());
    const auto epoch = newest_epoch(tracker_.area, *first);
    if (!epoch) return std::unexpected(epoch.error());
    checkpoint_copy_.restore_home();  // F2
    if (*epoch != 0 && !planted(mutant::archapt_fallback_covered))
      this->write_word(format::parity_epoch_offset, *epoch + 1);  // F3
    if (auto emptied = planted(mutant::archapt_fallback_replayed)
                           ? this->check_medium()
                           : this->end_recovery({}, std::max(newest, *from));
        !emptied)
      return emptied;
    write_fallback_state(format::fallback_state::done);  // F4
    return this->check_medium();
  }
  // Durable on return.
  void write_fallback_state(format::fallback_state s) {
    this->write_word(format::fallback_state_offset, static_cast<std::uint64_t>(s));
    this->control_.fence();
  }

  commit_gate gate_;
  parity_tracker<Media> tracker_;
  home_copy<Media> checkpoint_copy_;
  checkpoint_schedule checkpoints_;
  // TxID through which home is durable; set under truncation_mutex_, like the members below.
  std::atomic<std::uint64_t> physically_committed_{0};
  std::deque<access_buffer> load_buffers_;  // one for each log; none if nothing is ever skipped
  stored_lines stored_;
  // For each log, how far to truncate. A truncation must not need memory for it.
  std::vector<std::uint64_t> truncate_at_ = stored_.ends();
  covered_spills covered_{this->lanes_.size()};
};

template <class Media>
using archapt_undo = archapt<Media, true>;
template <class Media>
using archapt_redo = archapt<Media, false>;

}  // namespace stele::detail
