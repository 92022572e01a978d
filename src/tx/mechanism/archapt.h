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
#include <tx/log/recovery.h>
#include <tx/log/stored_lines.h>
#include <tx/log/truncation.h>
#include <tx/mechanism/archapt_recovery.h>
#include <tx/mechanism_engine.h>
#include <tx/parity/checkpoint_schedule.h>
#include <tx/parity/covered_spills.h>
#include <tx/parity/home_copy.h>
#include <tx/parity/parity_tracker.h>

#include <deque>

namespace stele::detail {

template <class Media, bool undo>
class archapt {
 public:
  using medium = Media;
  static constexpr log_kind kind = undo ? log_kind::archapt_undo : log_kind::archapt_redo;
  static constexpr auto upkeep = checksum_upkeep::none;  // it skips lines
  static constexpr engine::traits what{.tells_ordered = undo};

  // Room for the parity blocks and the checkpoint copy.
  static void add_geometry(storage::pool_geometry& g, const mechanism_options& o) {
    const auto own = o.get<archapt_options>();
    g.parity_block_size = own.halves ? format::halves_block_size : format::plain_block_size;
    g.checkpoint_commits = own.checkpoint_commits;
  }

  archapt(pool_medium<Media>& m, home_checksums<Media>& sums, const engine_tuning& tuning)
      : medium_(m),
        file_(m.state.file),
        sums_(sums),
        logs(m, sums),
        home(file_),
        truncation(m, logs, background_, [this] { return truncate(); }),
        gate_(logs.size()),
        tracker_(file_, m.control, gate_),
        checkpoint_copy_(file_, tracker_.area, m.control),
        stored_(file_, logs.size()),
        covered_(logs.size()) {
    const auto options = tuning.of_mechanism.get<archapt_options>();
    for (lane& l : logs) l.dirty_lines.resize_for_log(logs.capacity());
    tracker_.set_up(options, !undo);
    if (tracker_.enabled()) load_buffers_.resize(logs.size());
    if (checkpoint_copy_.present())
      checkpoints_.begin(options.checkpoint_commits != 0 ? options.checkpoint_commits
                                                         : file_.header().checkpoint_commits);
    stored_.reserve(logs.capacity() * format::payload_words);
    if (tuning.background) background_.start([this] { logs.any_half_full() ? truncate() : 0; });
  }

  access_buffer* access_buffer_of(unsigned log) noexcept {
    return load_buffers_.empty() ? nullptr : &load_buffers_[log];
  }

  [[nodiscard]] result<> attach(log_kind were) {
    if (auto taken = logs.attach(were == kind); !taken) return taken;
    const auto epoch = medium_.read_word(format::parity_epoch_offset);
    if (!epoch) return std::unexpected(epoch.error());
    tracker_.begin(*epoch);
    physically_committed_.store(medium_.state.clock.load());
    for (lane& l : logs) stored_.begin(l.number, l.log.head());
    return {};
  }

  [[nodiscard]] result<> reserve_log(transaction& t) {
    lane& l = logs.of(t);
    // Twice: archapt-redo also logs what the lines held before.
    const std::uint64_t bound = 2 * (3 * t.lines().size() + 2);
    if (truncation.has_plenty(l, bound)) [[likely]]
      return {};
    logs.release_reserved(l);
    const std::uint64_t lines = 2 * logs.lines_needed(t, logs.capacity() / 4) + 1;
    if (lines <= logs.capacity()) return truncation.wait_for_space(l, lines);
    if (auto made = truncation.reserve_spill(l, t, l.media); !made) return made;
    covered_.reserve(l.number, l.reserved_bytes, t.lines().size());
    {  // for the truncation that reads a spilled record back
      const auto hold = truncation.lock();
      stored_.reserve(l.reserved_bytes / 8);
    }
    return truncation.wait_for_space(l, logs.capacity() / 2);
  }

  // docs/protocol/archapt.md, steps 1 to 5.
  bool commit(transaction& t, std::uint64_t txid) {
    lane& l = logs.of(t);
    enter_gate(l, t);
    append_records(l, t, txid);  // 1
    if (!planted(mutant::archapt_no_log_fence) && !medium_.fence_ok(l.media))
      return gate_.leave(l.number), false;  // 2: the record is durable before home changes
    t.begin_home_stores();
    home.store(l.media, t.lines());  // 3
    l.log.publish();
    logs.queue_dirty_lines(l, t, txid);  // 4
    gate_.leave(l.number);
    if (checkpoints_.is_due(txid)) [[unlikely]]
      checkpoint_if_due();
    if (!undo || t.ordered_requested() || planted(mutant::archapt_undo_acknowledged)) return true;
    // The commit has stored home: it takes its announcement back.
    medium_.state.committing[l.number].value.store(pool_state::no_commit,
                                                   std::memory_order_release);
    const bool kept = commit_physically(txid);  // 5
    medium_.state.notify_durable_advanced();
    return kept;
  }

  // docs/protocol/archapt.md, recovery; see also archapt_recovery.h.
  [[nodiscard]] result<> recover() {
    const auto mark = medium_.read_word(format::watermark_offset);
    if (!mark) return std::unexpected(mark.error());
    const auto fallback = medium_.read_word(format::fallback_state_offset);
    if (!fallback) return std::unexpected(fallback.error());
    if (static_cast<format::fallback_state>(*fallback) == format::fallback_state::under_way)
      return restore_checkpoint(*mark);  // before R1: spilled payloads may be gone
    log_recovery<Media> found(medium_, sums_, logs);
    if (auto read = found.scan(); !read) return read;  // R1
    found.put_in_order();
    if (auto whole = restore_stale_lines(found.records, found.words); !whole)
      return whole.error().code == errc::lost ? fall_back(whole.error(), found.newest)
                                              : whole;  // R2, R3
    if (undo && !planted(mutant::archapt_rolls_forward)) std::ranges::reverse(found.records);
    for (const logged_record& r : found.records) {  // R4
      if (!undo && r.kind != format::record_kind::redo_with_epoch) continue;
      if (auto done = found.replay(r); !done) return done;
    }
    return found.restart();  // R5, R6
  }

  // With undo, recovery may roll back a commit that has returned, until its home is durable. With
  // redo, the log has the commit.
  void flush_deferred() {
    if (!undo) return;
    // The clock also covers commits with smaller TxIDs that are still under way.
    commit_physically(medium_.state.clock.load());
    medium_.state.notify_durable_advanced();
  }
  std::uint64_t durable_through() const noexcept {
    return undo ? physically_committed_.load(std::memory_order_acquire) : pool_state::no_commit;
  }

  [[nodiscard]] result<> close() {
    background_.stop();
    {
      const auto hold = truncation.lock();
      collect_dirty_lines(pool_state::no_commit);
      end_epochs();
    }
    return truncation.close();
  }

  void add_totals(engine_totals& t) const noexcept { tracker_.add_counters_to(t.of_mechanism); }

 private:
  using mutant = base::mutant;
  using lane = typename log_lanes<Media>::lane;
  static bool planted(mutant m) noexcept { return base::planted<Media>(m); }

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
        const auto hold = truncation.lock();
        tracker_.uncover(hit);
      }
      gate_.enter(l.number);
    }
  }
  void append_records(lane& l, const transaction& t, std::uint64_t txid) {
    if (!undo && l.reserved_bytes == 0 && tracker_.enabled()) append_covered(l, t, txid);
    if constexpr (undo)
      logs.append(l, format::record_kind::undo_with_epoch, txid, t, home.old_word(),
                  tracker_.epoch());
    else
      logs.append(l, format::record_kind::redo_with_epoch, txid, t,
                  typename home_writer<Media>::new_word{}, tracker_.epoch());
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
        if (covered(line)) encode_runs({&line, 1}, out, home.old_word()), ++kept;
    });
    l.log.publish();
    tracker_.count_old_lines(kept);
  }

  // Returns when home is durable through `txid`; another thread may do the work. False: poisoned.
  bool commit_physically(std::uint64_t txid) {
    for (unsigned polls = 0;; media::spin_pause(polls)) {  // until commits before it are home
      const auto hold = truncation.lock();
      if (physically_committed_ >= txid) return true;
      if (medium_.state.completed() >= txid) make_home_durable();
      if (medium_.state.poisoned.load()) return false;
      if (physically_committed_ >= txid) return true;
    }
  }

  // Makes home durable: docs/protocol/archapt.md, T1 to T6.
  std::uint64_t truncate() {
    auto hold = truncation.lock();
    const std::uint64_t through = make_home_durable();
    // A commit of another thread may be writing the block that a head lies in: no head moves in
    // memory unless the watermark is on media
    if (!medium_.state.poisoned.load()) truncation.advance_heads(truncate_at_);  // T5, T6
    (void)medium_.check();
    hold.unlock();
    medium_.state.notify_durable_advanced();
    return through;
  }

  std::uint64_t make_home_durable() {
    // T1: all commits through it have stored home
    const std::uint64_t through = truncation.advance_completed();
    collect_dirty_lines(through);  // T2
    for (access_buffer& b : load_buffers_)
      b.drain([this](std::uint64_t offset) { tracker_.record_load(offset); });
    truncate_at_ = stored_.ends();
    tracker_.flush_or_cover([this] { collect_dirty_lines(pool_state::no_commit); },
                            [this] { return checkpoint_before_covering(); });  // T3
    if (tracker_.any_covered()) checkpoints_.covers();
    if (!planted(mutant::archapt_log_released))
      medium_.control.fence();  // home and parity blocks are durable before the watermark moves
    medium_.write_word(format::watermark_offset, through);  // T4
    // The watermark is durable before a commit is acknowledged or a head moves.
    medium_.control.fence();
    if (medium_.check()) physically_committed_.store(through, std::memory_order_release);
    return through;
  }

  // Of transactions up to `through`.
  void collect_dirty_lines(std::uint64_t through) {
    for (lane& l : logs)
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
      medium_.control.fence();  // home is durable before blocks stop counting
    if (tracker_.area.present() && !planted(mutant::archapt_checkpoint_covered))
      medium_.write_word(format::parity_epoch_offset, epoch);
  }

  // Copies all of home as it is now: docs/protocol/archapt.md, C1 to C5. Under truncation.lock().
  void make_checkpoint() {
    gate_.close();  // C1
    collect_dirty_lines(pool_state::no_commit);
    end_epochs();  // C2, C3
    const std::uint64_t newest = medium_.state.clock.load();
    // C4: home is durable and nothing is covered, so no recovery falls back to an unfinished copy
    checkpoint_copy_.update();
    medium_.write_word(format::checkpoint_offset, newest + 1);  // C5
    medium_.control.fence();  // the checkpoint is durable before anything is covered
    checkpoints_.made(newest);
    gate_.open();
  }
  // True: it made one.
  bool checkpoint_before_covering() {
    const bool makes = checkpoints_.is_missing(medium_.state.clock.load()) &&
                       !planted(mutant::archapt_no_first_checkpoint);
    if (makes) make_checkpoint();
    return makes;
  }
  [[gnu::noinline]] void checkpoint_if_due() {
    const auto hold = truncation.lock();
    if (checkpoints_.is_due(medium_.state.clock.load())) make_checkpoint();
  }

  // R2 and R3.
  template <class Records>
  [[nodiscard]] result<> restore_stale_lines(const Records& records,
                                             std::span<const std::uint64_t> words) {
    const parity_area& area = tracker_.area;
    if (!area.present()) return {};
    const auto first = medium_.read_word(format::parity_epoch_offset);
    if (!first) return std::unexpected(first.error());
    old_values olds(area);
    if (auto added = olds.add_records(file_, records, words); !added) return added;
    const auto now = find_covered(area, *first, olds);
    if (!now) return std::unexpected(now.error());
    medium_.state.stale_lines = now->stale, medium_.state.lost_lines = now->lost.size();
    if (!now->lost.empty()) return report_loss(file_, medium_.state.heap, *now);
    for (const covered_home::line& line : now->restored)
      medium_.control.store(file_.at(line.offset), line.content.data(), line_size);
    for (std::uint64_t m : now->matrices) tracker_.flush(m, area.lines_in_home(m));
    if (!planted(mutant::archapt_recover_unfenced))
      medium_.control
          .fence();  // all of a covered matrix is durable before its block stops counting
    if (now->newest_epoch != 0)
      medium_.write_word(format::parity_epoch_offset, now->newest_epoch + 1);
    // R3: no block counts any more before home changes from what the block covers.
    medium_.control.fence();
    return {};
  }

  // Recovery goes back to the checkpoint: docs/protocol/archapt.md, F1 to F4.
  [[nodiscard]] result<> fall_back(const error& why, std::uint64_t newest) {
    const auto to = medium_.read_word(format::checkpoint_offset);
    if (!to) return std::unexpected(to.error());
    if (!checkpoint_copy_.present() || *to == 0) return std::unexpected(why);
    medium_.state.fallback_reason = why.message;
    if (planted(mutant::archapt_fallback_undecided)) return restore_checkpoint(newest);
    medium_.write_word(format::fallback_to_offset, *to);  // F1
    medium_.write_word(format::fallback_from_offset, newest);
    write_fallback_state(format::fallback_state::under_way);  // durable before home changes
    return restore_checkpoint(newest);
  }
  [[nodiscard]] result<> restore_checkpoint(std::uint64_t newest) {
    const auto first = medium_.read_word(format::parity_epoch_offset),
               from = medium_.read_word(format::fallback_from_offset);
    if (!first) return std::unexpected(first.error());
    if (!from) return std::unexpected(from.error());
    const auto epoch = newest_epoch(tracker_.area, *first);
    if (!epoch) return std::unexpected(epoch.error());
    checkpoint_copy_.restore_home();  // F2
    if (*epoch != 0 && !planted(mutant::archapt_fallback_covered))
      medium_.write_word(format::parity_epoch_offset, *epoch + 1);  // F3
    log_recovery<Media> nothing(medium_, sums_, logs);
    nothing.newest = std::max(newest, *from);
    if (auto emptied =
            planted(mutant::archapt_fallback_replayed) ? medium_.check() : nothing.restart();
        !emptied)
      return emptied;
    write_fallback_state(format::fallback_state::done);  // F4
    return medium_.check();
  }
  // Durable on return.
  void write_fallback_state(format::fallback_state s) {
    medium_.write_word(format::fallback_state_offset, static_cast<std::uint64_t>(s));
    medium_.control.fence();
  }

  pool_medium<Media>& medium_;
  const storage::pool_file& file_;
  home_checksums<Media>& sums_;

 public:
  log_lanes<Media> logs;
  home_writer<Media> home;
  log_truncation<Media> truncation;

 private:
  commit_gate gate_;
  parity_tracker<Media> tracker_;
  home_copy<Media> checkpoint_copy_;
  checkpoint_schedule checkpoints_;
  // TxID through which home is durable; set under truncation.lock(), like the members below.
  std::atomic<std::uint64_t> physically_committed_{0};
  std::deque<access_buffer> load_buffers_;  // one for each log; none if nothing is ever skipped
  stored_lines stored_;
  // For each log, how far to truncate. A truncation must not need memory for it.
  std::vector<std::uint64_t> truncate_at_ = stored_.ends();
  covered_spills covered_;
  background_thread background_;  // last: it ends before what it uses
};

template <class Media>
using archapt_undo = archapt<Media, true>;
template <class Media>
using archapt_redo = archapt<Media, false>;

}  // namespace stele::detail
