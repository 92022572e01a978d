// archapt-undo, archapt-redo: commits do not flush home; truncation does it later. A line that the
// cache is estimated to have evicted already is not flushed at all: checksums over a matrix of
// lines cover it. Page: docs/protocol/archapt.md. Source: Wu, Ren and Li, "Architecture-Aware, High
// Performance Transaction for Persistent Memory" (2019).
//
// Invariant: while a matrix is covered, the log has the old value of each of its words that was
// stored since its block's epoch. So the content that the block covers follows from media, log and
// checksums, whichever of the later stores have reached media.
#pragma once

#include <base/assert.h>
#include <media/spin.h>
#include <published/archapt/access_buffer.h>
#include <published/archapt/archapt_recovery.h>
#include <published/archapt/checkpoint_schedule.h>
#include <published/archapt/covered_spills.h>
#include <published/archapt/fallback_to_checkpoint.h>
#include <published/archapt/home_copy.h>
#include <published/archapt/parity_tracker.h>
#include <published/mutant.h>
#include <stele/archapt_options.h>
#include <tx/log/recovery.h>
#include <tx/log/stored_lines.h>
#include <tx/log/truncation.h>
#include <tx/mechanism_engine.h>

#include <algorithm>
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
    may_stand_alone_ = undo && !tracker_.always_skips() && !checkpoint_copy_.present();
    if (tracker_.enabled()) load_buffers_.resize(logs.size());
    if (checkpoint_copy_.present())
      checkpoints_.begin(options.checkpoint_commits != 0 ? options.checkpoint_commits
                                                         : file_.header().checkpoint_commits);
    stored_.reserve(logs.capacity() * format::payload_words);
    if (tuning.background) background_.start([this] { logs.any_half_full() ? truncate() : 0; });
  }

  detail::load_observer* load_observer(unsigned log) noexcept {
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

  // docs/protocol/archapt.md, steps 1 to 5, and D1 to D4.
  bool commit(transaction& t, std::uint64_t txid) {
    lane& l = logs.of(t);
    STELE_ASSERT(txid != 0 && l.log.tail() == l.log.appended_end());
    enter_gate(l, t);
    if (undo && stands_alone(t)) return commit_alone(l, t, txid);
    append_records(l, t, txid);  // 1
    // 2: the record is durable before home changes
    if (!medium_.fence_ok(l.media)) return gate_.leave(l.number), false;
    t.begin_home_stores();
    home.store(l.media, t.lines());  // 3
    l.log.publish();
    logs.queue_dirty_lines(l, t, txid);  // 4
    if (undo && t.ordered_requested()) note_ordered(txid);
    gate_.leave(l.number);
    if (checkpoints_.is_due(txid)) [[unlikely]]
      checkpoint_if_due();
    if (!undo || t.ordered_requested() || planted<Media>(mutant::archapt_undo_acknowledged))
      return true;
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
    fallback_to_checkpoint<Media> fallback(medium_, sums_, logs, checkpoint_copy_, tracker_.area);
    const auto interrupted = fallback.is_under_way();
    if (!interrupted) return std::unexpected(interrupted.error());
    if (*interrupted) return fallback.finish(*mark);  // before R1: spilled payloads may be gone
    log_recovery<Media> found(medium_, sums_, logs);
    if (auto read = found.scan(); !read) return read;  // R1
    found.put_in_order();
    const auto whole = restore_stale_lines(
        medium_, tracker_.area, std::span<const logged_record>(found.records), found.words);
    if (!whole)
      return whole.error().code == errc::lost ? fallback.run(whole.error(), found.newest)
                                              : whole;  // R2, R3
    if (auto done = undo ? roll_back<Media>(file_, found) : replay_new_values(found); !done)
      return done;           // R4
    return found.restart();  // R5, R6
  }

  // With undo, recovery may roll back a commit that has returned, until its home is durable. With
  // redo, the log has the commit.
  void flush_deferred() {
    if (!undo || !has_ordered()) return;
    // The clock also covers commits with smaller TxIDs that are still under way.
    commit_physically(medium_.state.clock.load());
    medium_.state.notify_durable_advanced();
  }
  std::uint64_t durable_through() const noexcept {
    return undo && has_ordered() ? physically_committed_.load(std::memory_order_acquire)
                                 : pool_state::no_commit;
  }

  [[nodiscard]] result<> close() {
    background_.stop();
    if (auto sound = medium_.check(); !sound) return sound;
    {
      const auto hold = truncation.lock();
      collect_dirty_lines(pool_state::no_commit);
      end_epochs();
    }
    return truncation.close();
  }

  void add_totals(engine_totals& t) const noexcept { tracker_.add_counters_to(t.of_mechanism); }

 private:
  using mutant = published::mutant;
  using lane = typename log_lanes<Media>::lane;

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
    if constexpr (undo) {
      logs.append(l, format::record_kind::undo_with_epoch, txid, t, home.old_word(),
                  tracker_.epoch());
    } else {
      if (l.reserved_bytes == 0 && any_covered(t)) [[unlikely]]
        append_covered(l, t, txid);
      logs.append(l, format::record_kind::redo, txid, t, typename home_writer<Media>::new_word{});
    }
  }
  bool is_covered(const written_line& line) const noexcept {
    return tracker_.covered(tracker_.area.matrix_of(line.offset));
  }
  // Inside the gate: whether the transaction stores to a covered matrix.
  bool any_covered(const transaction& t) const noexcept {
    return tracker_.any_covered() &&
           std::ranges::any_of(t.lines(), [this](const auto& line) { return is_covered(line); });
  }
  // Logs what the transaction's covered lines hold before its stores.
  [[gnu::noinline]] void append_covered(lane& l, const transaction& t, std::uint64_t txid) {
    if (planted<Media>(mutant::archapt_no_old_values)) return;
    std::uint64_t kept = 0;
    l.log.append(format::record_kind::undo_with_epoch, txid, [&](auto& out) {
      out.append_word(tracker_.epoch());
      for (const written_line& line : t.lines())
        if (is_covered(line)) encode_runs({&line, 1}, out, home.old_word()), ++kept;
    });
    l.log.publish();
    tracker_.count_old_lines(kept);
  }

  // Ordered commits whose home is not durable yet.
  bool has_ordered() const noexcept {
    return newest_ordered_.load(std::memory_order_acquire) >
           physically_committed_.load(std::memory_order_acquire);
  }
  // Before the commit's locks are released: a later commit that stores to its lines sees it.
  void note_ordered(std::uint64_t txid) noexcept {
    for (std::uint64_t before = newest_ordered_.load(std::memory_order_relaxed);
         before < txid && !newest_ordered_.compare_exchange_weak(before, txid);) {
    }
  }
  // Inside the gate, over undo: whether the commit may be D1 to D4. Nothing that it builds on is
  // volatile, and no block covers what it stores to.
  bool stands_alone(const transaction& t) const noexcept {
    if (!may_stand_alone_ || t.ordered_requested() || any_covered(t)) return false;
    return !has_ordered() || planted<Media>(mutant::archapt_alone_over_ordered);
  }
  // D1 to D4: the record tells recovery by itself whether home has all of the commit.
  bool commit_alone(lane& l, transaction& t, std::uint64_t txid) {
    logs.append(l, format::record_kind::undo_with_sum, txid, t, home.old_word(),
                sum_of_new_values(t.lines(), file_.header().id, txid));  // D1
    bool kept = medium_.fence_ok(l.media);  // D2: the record is durable before home changes
    if (kept) {
      t.begin_home_stores();
      home.store_flushed(l.media, t, sums_);  // D3
      l.log.publish();
      l.dirty_lines.push_clean(txid, l.log.appended_end());
      l.spilled = false;
      // D4: home is durable before the commit is acknowledged, and before a block may describe it.
      kept = medium_.fence_ok(l.media);
    }
    gate_.leave(l.number);
    return kept;
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
    if (!medium_.state.poisoned.load()) {
      STELE_ASSERT_WHOLE(std::ranges::all_of(logs, [this](const lane& l) {
        return l.log.head() <= truncate_at_[l.number] && truncate_at_[l.number] <= l.log.tail();
      }));
      truncation.advance_heads(truncate_at_);  // T5, T6
    }
    (void)medium_.check();
    hold.unlock();
    medium_.state.notify_durable_advanced();
    return through;
  }

  std::uint64_t make_home_durable() {
    // T1: all commits through it have stored home
    const std::uint64_t through = truncation.advance_completed();
    STELE_ASSERT(base::holds(through >= physically_committed_.load(std::memory_order_relaxed)));
    collect_dirty_lines(through);  // T2
    for (access_buffer& b : load_buffers_)
      (void)b.drain([this](std::uint64_t offset, std::uint64_t) { tracker_.record_load(offset); });
    truncate_at_ = stored_.ends();
    tracker_.flush_or_cover([this] { collect_dirty_lines(pool_state::no_commit); },
                            [this] { return checkpoint_before_covering(); });  // T3
    if (medium_.state.poisoned.load()) return through;  // lines are missing: the log stays
    if (tracker_.any_covered()) checkpoints_.covers();
    medium_.control.fence();  // home and parity blocks are durable before the watermark moves
    medium_.write_word(format::watermark_offset, through);  // T4
    medium_.control.fence();  // it is durable before a commit is acknowledged or a head moves
    if (medium_.check()) physically_committed_.store(through, std::memory_order_release);
    return through;
  }

  // Of transactions up to `through`.
  void collect_dirty_lines(std::uint64_t through) {
    const auto record = [this](std::uint64_t line) {
      tracker_.record_store(line), checkpoint_copy_.record_store(line);
    };
    for (lane& l : logs)
      if (!stored_.collect(l, through, record))
        medium_.state.poison(pool_state::poison_cause::overwritten);
  }
  // Makes home durable; from the next fence on no block counts. The gate is closed, or there are no
  // commits.
  void end_epochs() {
    const std::uint64_t epoch = tracker_.end_all();
    medium_.control.fence();  // home is durable before blocks stop counting
    if (tracker_.area.present() && !planted<Media>(mutant::archapt_checkpoint_covered))
      medium_.write_word(format::parity_epoch_offset, epoch);
  }

  // Copies all of home as it is now: docs/protocol/archapt.md, C1 to C5. Under truncation.lock().
  void make_checkpoint() {
    gate_.close();  // C1
    collect_dirty_lines(pool_state::no_commit);
    end_epochs();  // C2, C3
    STELE_ASSERT(checkpoint_copy_.present() && !tracker_.any_covered());
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
                       !planted<Media>(mutant::archapt_no_first_checkpoint);
    if (makes) make_checkpoint();
    return makes;
  }
  [[gnu::noinline]] void checkpoint_if_due() {
    const auto hold = truncation.lock();
    if (checkpoints_.is_due(medium_.state.clock.load())) make_checkpoint();
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
  bool may_stand_alone_ = false;  // commits may be D1 to D4
  std::atomic<std::uint64_t> newest_ordered_{0};
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
