// archapt-undo, archapt-redo: home is not flushed by commits, and where the cache is estimated to have lost a line already, not at all:
// checksums over matrices of lines cover it. Page: docs/protocol/archapt.md.
// Source: Wu, Ren and Li, "Architecture-Aware, High Performance Transaction for Persistent Memory" (2019).
//
// Invariant: while a matrix is covered, the log has the values from before of every word of it that was stored since its block's epoch;
// so what the block speaks for can be told from media, log and the sums, whatever of the later stores has reached media.
#pragma once

#include <tx/mechanism/archapt_recovery.h>
#include <tx/mechanism/bulk.h>
#include <tx/parity/covers.h>

namespace stele::detail {

template <class Media>
class archapt : public bulk_engine<Media> {
 public:
  using typename engine_on<Media>::lane;
  using mutant = base::mutant;

  archapt(pool_state& state, std::unique_ptr<typename Media::shared> shared, bool undo)
      : bulk_engine<Media>(state, std::move(shared), undo ? log_kind::archapt_undo : log_kind::archapt_redo),
        undo_(undo), gate_(this->lanes_.size()), covers_(state.file, this->control_, gate_), positions_(this->lanes_.size()) {
    for (lane& l : this->lanes_) l.notes.size_for(l.log.lines());
  }
  ~archapt() override { this->stop(); }

  void set_up(const engine_tuning& tuning) override {
    covers_.set_up(tuning.archapt);
    bulk_engine<Media>::set_up(tuning);
  }

  result<> prepare(transaction& t) override {
    lane& l = this->lanes_[t.log()];
    const std::uint64_t bound = 2 * (3 * t.lines().size() + 2);  // over redo: also what the lines held
    if (bound <= l.log.room() && l.log.room() >= l.log.lines() / 2 && l.reserved_bytes == 0) [[likely]]
      return {};
    this->drop_reserved(l);
    const std::uint64_t lines = 2 * this->lines_needed(t, l.log.lines() / 4) + 1;
    if (lines <= l.log.lines()) return this->make_room(l, lines);
    if (auto made = this->make_spill(l, t); !made) return made;
    return this->make_room(l, l.log.lines() / 2);
  }

  // docs/protocol/archapt.md, 1 to 5.
  bool commit(transaction& t, std::uint64_t txid) override {
    lane& l = this->lanes_[t.log()];
    enter(l, t);
    undo_ ? append_old(l, t, txid) : append_both(l, t, txid);                                  // 1
    if (!planted(mutant::archapt_no_log_fence) && !this->settled(l)) return gate_.leave(l.number), false;  // 2: the record before home changes
    t.begin_home();
    this->store_home_volatile(l, t);  // 3
    l.log.publish();
    this->note(l, t, txid);           // 4
    gate_.leave(l.number);
    if (!undo_ || t.asked_for_order() || planted(mutant::archapt_undo_acknowledged)) return true;
    this->state_.committing[l.number].value.store(pool_state::no_commit, std::memory_order_release);  // home has it
    const bool kept = make_physical(txid);  // 5
    this->state_.durable_moved();
    return kept;
  }

  // docs/protocol/archapt.md, recovery: see archapt_recovery.h.
  result<> recover() override {
    auto mark = this->read_word(format::watermark_offset);
    if (!mark) return std::unexpected(mark.error());
    std::vector<typename torn_bit_engine<Media>::found> records;
    std::vector<std::uint64_t> words;
    if (auto read = this->collect(*mark, records, words); !read) return read;  // R1
    std::ranges::stable_sort(records, {}, &torn_bit_engine<Media>::found::txid);
    const std::uint64_t newest = records.empty() ? *mark : std::max(*mark, records.back().txid);
    if (auto whole = make_home_whole(records, words); !whole) return whole;  // R2, R3
    if (undo_ && !planted(mutant::archapt_rolls_forward)) std::ranges::reverse(records);
    line_set lines;
    for (const auto& r : records) {  // R4
      if (!undo_ && r.kind != format::record_kind::redo_at) continue;
      if (auto done = this->replay(std::span(words).subspan(r.first, r.words), lines); !done) return done;
    }
    return this->end_recovery(lines, newest);  // R5, R6
  }

  // Over undo a commit that has returned may be taken back until home is durable; over redo the log has it.
  result<> sync() override {
    settle();
    return this->check_medium();
  }
  void settle() override {
    if (!undo_) return;
    make_physical(this->state_.clock.load());  // also past commits with smaller TxIDs that are under way
    this->state_.durable_moved();
  }
  std::uint64_t durable_through() const noexcept override { return undo_ ? physical_.load(std::memory_order_acquire) : pool_state::no_commit; }

  result<> close() override {
    this->stop();
    truncate();
    end_epochs();
    return bulk_engine<Media>::close();
  }

  engine_totals totals() const noexcept override {
    engine_totals t = bulk_engine<Media>::totals();
    t.skipped_lines = covers_.skipped_lines();
    t.checksum_lines = covers_.checksum_lines();
    t.kept_lines = covers_.kept_lines();
    return t;
  }

 private:
  static bool planted(mutant m) noexcept { return base::planted<Media>(m); }
  bool in_background() const noexcept override { return true; }
  void work_once() override {
    if (this->short_of_room()) truncate();
  }

  // Into the gate. A record that goes to chunks of home must find none of them covered, and brings no old values along.
  void enter(lane& l, const transaction& t) {
    gate_.enter(l.number);
    if (l.reserved_bytes == 0 || !covers_.ever()) [[likely]]
      return;
    for (;;) {
      std::vector<std::uint64_t> hit = covered_of(l, t);
      if (hit.empty()) return;
      gate_.leave(l.number);
      {
        const auto hold = this->hold_truncation();
        covers_.uncover(hit);
      }
      gate_.enter(l.number);
    }
  }
  std::vector<std::uint64_t> covered_of(const lane& l, const transaction& t) const {
    std::vector<std::uint64_t> hit;
    auto look = [&](std::uint64_t m) {
      if (covers_.covered(m) && std::ranges::find(hit, m) == hit.end()) hit.push_back(m);
    };
    for (std::uint64_t m = covers_.area.matrix_of(l.reserved_spill); m <= covers_.area.matrix_of(l.reserved_spill + l.reserved_bytes - 1); ++m) look(m);
    if (!undo_)
      for (const written_line& line : t.lines()) look(covers_.area.matrix_of(line.offset));
    return hit;
  }

  auto old_value() const {
    return [this](std::uint64_t offset, std::uint64_t) { return __atomic_load_n(reinterpret_cast<const std::uint64_t*>(this->state_.file.at(offset)), __ATOMIC_RELAXED); };
  }
  template <class WordOf>
  void append_at(lane& l, format::record_kind kind, std::uint64_t txid, const transaction& t, WordOf&& word_of) {
    if (l.reserved_bytes != 0) [[unlikely]]
      return this->append_spilled(l, kind, txid, t, word_of, covers_.epoch());
    l.log.append(kind, txid, [&](auto& out) {
      out.word(covers_.epoch());
      this->write_runs(t, out, word_of);
    });
  }
  void append_old(lane& l, const transaction& t, std::uint64_t txid) { append_at(l, format::record_kind::undo_at, txid, t, old_value()); }
  void append_both(lane& l, const transaction& t, std::uint64_t txid) {
    if (l.reserved_bytes == 0 && covers_.ever()) append_covered(l, t, txid);
    append_at(l, format::record_kind::redo_at, txid, t, this->new_value);
  }
  // What the transaction's lines that are covered hold until now.
  void append_covered(lane& l, const transaction& t, std::uint64_t txid) {
    const auto lines = t.lines();
    const auto covered = [this](const written_line& line) { return covers_.covered(covers_.area.matrix_of(line.offset)); };
    if (std::ranges::none_of(lines, covered) || planted(mutant::archapt_no_old_values)) return;
    std::uint64_t kept = 0;
    l.log.append(format::record_kind::undo_at, txid, [&](auto& out) {
      out.word(covers_.epoch());
      for (const written_line& line : lines)
        if (covered(line)) this->write_any_runs({&line, 1}, out, old_value()), ++kept;
    });
    l.log.publish();
    covers_.kept(kept);
  }

  // Until home has everything up to `txid` durably; others' work counts.
  bool make_physical(std::uint64_t txid) {
    for (;;) {  // until commits before it have stored home
      {
        const auto hold = this->hold_truncation();
        if (physical_ >= txid) return true;
        if (this->state_.completed() >= txid) make_home_durable();
        if (this->state_.poisoned.load()) return false;
        if (physical_ >= txid) return true;
      }
      media::cpu::relax();
    }
  }

  // --- making home durable: docs/protocol/archapt.md, T1 to T6 ---

  std::uint64_t truncate() override {
    const std::uint64_t through = cut_logs();
    this->state_.durable_moved();
    return through;
  }
  std::uint64_t cut_logs() {
    const auto hold = this->hold_truncation();
    const std::uint64_t through = make_home_durable();
    this->cut(cut_at_);  // T5, T6
    (void)this->check_medium();
    return through;
  }

  std::uint64_t make_home_durable() {
    const std::uint64_t through = this->state_.completed();  // T1: all of these have stored home
    for (lane& l : this->lanes_) gather(l, through);         // T2
    cut_at_ = positions_;
    covers_.settle([this] {                                  // T3
      for (lane& l : this->lanes_) gather(l, pool_state::no_commit);
    });
    if (!planted(mutant::archapt_log_released)) this->control_.fence();  // home and blocks are durable before the watermark moves
    this->write_word(format::watermark_offset, through);     // T4
    this->control_.fence();  // the watermark is durable before a commit is told of it, or a head moves
    physical_.store(through, std::memory_order_release);
    (void)this->check_medium();
    return through;
  }

  // Of one log: which lines its transactions up to `through` stored to, and used.
  void gather(lane& l, std::uint64_t through) {
    std::uint64_t& position = positions_[l.number];
    position = std::max(position, l.log.head());
    for (home_notes::note n; l.notes.peek(n) && n.txid <= through;) {
      if (n.lines == 0) gather_logged(l, position, n.next);
      position = n.next;
      l.notes.take(n, [&](std::uint64_t line) { covers_.stored(line); });
    }
  }
  void gather_logged(lane& l, std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t at = from; at < to;) {
      (void)l.read(at, to, record_);
      (void)for_each_stored_run(this->state_.file, record_.payload, [&](format::run_head head, const std::uint64_t*) {
        for_each_line(head, [&](std::uint64_t line) { covers_.stored(line); });
      });
    }
  }
  // At close: blocks of this session are of no account any more.
  void end_epochs() {
    const auto hold = this->hold_truncation();
    covers_.flush_skipped();
    this->control_.fence();  // home is durable before blocks stop to count
    if (covers_.area.present()) this->write_word(format::parity_epoch_offset, covers_.epoch() + 1);
    this->control_.fence();  // before the pool is marked closed
  }

  result<> take_over(log_kind logs_were) override {
    if (auto taken = bulk_engine<Media>::take_over(logs_were); !taken) return taken;
    const auto epoch = this->read_word(format::parity_epoch_offset);
    if (!epoch) return std::unexpected(epoch.error());
    covers_.begin(*epoch);
    physical_.store(this->state_.clock.load());
    for (lane& l : this->lanes_) positions_[l.number] = l.log.head();
    return {};
  }

  // R2 and R3.
  template <class Records>
  result<> make_home_whole(const Records& records, std::span<const std::uint64_t> words) {
    const parity_area& area = covers_.area;
    if (!area.present()) return {};
    const auto first = this->read_word(format::parity_epoch_offset);
    if (!first) return std::unexpected(first.error());
    old_values olds(area);
    for (const auto& r : records)
      if (r.kind == format::record_kind::undo_at)
        if (auto added = olds.add(this->state_.file, std::span(words).subspan(r.first, r.words), r.front); !added) return added;
    const covered_home now = find_covered(area, *first, olds);
    if (!now.lost.empty()) return report_loss(this->state_.file, this->state_.heap, now);
    for (const covered_home::line& line : now.restored) this->control_.store(this->state_.file.at(line.offset), line.content.data(), line_size);
    for (std::uint64_t m : now.matrices) covers_.flush(m, area.lines_in_home(m));
    if (!planted(mutant::archapt_recover_unfenced)) this->control_.fence();  // all of a covered matrix is durable before its block stops to count
    if (now.newest_epoch != 0) this->write_word(format::parity_epoch_offset, now.newest_epoch + 1);
    this->control_.fence();  // R3: no block counts any more before home changes from what it speaks for
    return {};
  }
  const bool undo_;
  commit_gate gate_;
  covers<Media> covers_;
  std::atomic<std::uint64_t> physical_{0};         // TxID through which home is durable; set under truncating_, like what follows
  std::vector<std::uint64_t> positions_, cut_at_;  // of each log: what has been gathered; what may be cut
  log_record record_;
};

template <class Media>
struct archapt_undo final : archapt<Media> {
  archapt_undo(pool_state& state, std::unique_ptr<typename Media::shared> shared) : archapt<Media>(state, std::move(shared), true) {}
};
template <class Media>
struct archapt_redo final : archapt<Media> {
  archapt_redo(pool_state& state, std::unique_ptr<typename Media::shared> shared) : archapt<Media>(state, std::move(shared), false) {}
};

}  // namespace stele::detail
