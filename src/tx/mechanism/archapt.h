// archapt-undo, archapt-redo: home is not flushed by commits, and where the cache is estimated to have lost a line already, not at all:
// checksums over matrices of lines cover it. Page: docs/protocol/archapt.md.
// Source: Wu, Ren and Li, "Architecture-Aware, High Performance Transaction for Persistent Memory" (2019).
//
// Invariant: while a matrix is covered, the log has the values from before of every word of it that was stored since its block's epoch;
// so what the block speaks for can be told from media, log and the sums, whatever of the later stores has reached media.
#pragma once

#include <tx/commit_gate.h>
#include <tx/mechanism/bulk.h>
#include <tx/mechanism/archapt_recovery.h>
#include <tx/parity/residence.h>

#include <unordered_map>

namespace stele::detail {

template <class Media>
class archapt : public bulk_engine<Media> {
 public:
  using typename engine_on<Media>::lane;
  using mutant = base::mutant;

  archapt(pool_state& state, std::unique_ptr<typename Media::shared> shared, bool undo)
      : bulk_engine<Media>(state, std::move(shared), undo ? log_kind::archapt_undo : log_kind::archapt_redo),
        undo_(undo), area_(state.file), gate_(this->lanes_.size()), positions_(this->lanes_.size()), covered_(area_.matrices()) {
    for (lane& l : this->lanes_) l.notes.size_for(l.log.lines());
  }
  ~archapt() override { this->stop(); }

  void set_up(const engine_tuning& tuning) override {
    options_ = tuning.archapt;
    skips_ = area_.present() && options_.skip != skipping::never && Media::whole_cache != media::whole_cache::best;
    const std::size_t bytes = options_.cache_bytes != 0 ? options_.cache_bytes : media::cpu::last_level_cache_bytes();
    used_.emplace(bytes / (format::matrix_side * line_size) / (planted(mutant::archapt_short_queue) ? 16 : 1));
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
    note(l, t, txid);                 // 4
    gate_.leave(l.number);
    if (!undo_ || t.asked_for_order() || planted(mutant::archapt_undo_acknowledged)) return true;
    this->state_.committing[l.number].value.store(pool_state::no_commit, std::memory_order_release);  // home has it
    return make_physical(txid);       // 5
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
    for (std::uint64_t line : lines.all()) this->control_.flush(this->state_.file.at(line), line_size);
    this->control_.fence();  // home before the logs are cut
    this->state_.clock.store(newest);
    this->write_word(format::watermark_offset, newest);  // R5
    this->control_.fence();  // no record counts any more before rings are emptied
    this->empty_logs();      // R6
    return this->check_medium();
  }

  // Over undo a commit that has returned may be taken back until home is durable; over redo the log has it.
  result<> sync() override {
    if (undo_) truncate();
    return this->check_medium();
  }
  void settle() override {
    if (undo_) truncate();
  }

  result<> close() override {
    this->stop();
    truncate();
    uncover_all();
    return bulk_engine<Media>::close();
  }

  engine_totals totals() const noexcept override {
    engine_totals t = bulk_engine<Media>::totals();
    t.skipped_lines = skipped_lines_.load(std::memory_order_relaxed);
    t.checksum_lines = checksum_lines_.load(std::memory_order_relaxed);
    t.kept_lines = kept_lines_.load(std::memory_order_relaxed);
    return t;
  }

 private:
  static bool planted(mutant m) noexcept { return base::planted<Media>(m); }
  bool in_background() const noexcept override { return true; }
  void work_once() override {
    if (this->short_of_room()) truncate();
  }

  struct new_block {
    std::uint64_t matrix, flushes;
    unsigned which;
    format::parity_block block;
  };
  static constexpr std::size_t batch = 32;  // matrices that are summed up while commits wait

  // --- commits ---

  // Into the gate. A record that goes to chunks of home must find none of them covered, and brings no old values along.
  void enter(lane& l, const transaction& t) {
    gate_.enter(l.number);
    if (l.reserved_bytes == 0 || covered_.empty()) [[likely]]
      return;
    for (;;) {
      std::vector<std::uint64_t> hit = covered_of(l, t);
      if (hit.empty()) return;
      gate_.leave(l.number);
      {
        const auto hold = this->hold_truncation();
        uncover(hit);
      }
      gate_.enter(l.number);
    }
  }
  std::vector<std::uint64_t> covered_of(const lane& l, const transaction& t) const {
    std::vector<std::uint64_t> hit;
    auto look = [&](std::uint64_t m) {
      if (is_covered(m) && std::ranges::find(hit, m) == hit.end()) hit.push_back(m);
    };
    for (std::uint64_t m = area_.matrix_of(l.reserved_spill); m <= area_.matrix_of(l.reserved_spill + l.reserved_bytes - 1); ++m) look(m);
    if (!undo_)
      for (const written_line& line : t.lines()) look(area_.matrix_of(line.offset));
    return hit;
  }
  bool is_covered(std::uint64_t matrix) const noexcept { return (covered_[matrix].load(std::memory_order_relaxed) & 1) != 0; }
  // Where the next block of a matrix goes: not over the one that counts, also if that says that nothing is covered.
  unsigned next_place(std::uint64_t matrix) const noexcept { return 1 - covered_[matrix].load(std::memory_order_relaxed) / 2; }
  void set_covered(std::uint64_t matrix, bool is, unsigned place) noexcept { covered_[matrix].store(static_cast<std::uint8_t>(is + 2 * place), std::memory_order_relaxed); }

  auto old_value() const {
    return [this](std::uint64_t offset, std::uint64_t) { return __atomic_load_n(reinterpret_cast<const std::uint64_t*>(this->state_.file.at(offset)), __ATOMIC_RELAXED); };
  }
  template <class WordOf>
  void append_at(lane& l, format::record_kind kind, std::uint64_t txid, const transaction& t, WordOf&& word_of) {
    if (l.reserved_bytes != 0) [[unlikely]]
      return this->append_spilled(l, kind, txid, t, word_of, epoch_);
    l.log.append(kind, txid, [&](auto& out) {
      out.word(epoch_);
      this->write_runs(t, out, word_of);
    });
  }
  void append_old(lane& l, const transaction& t, std::uint64_t txid) { append_at(l, format::record_kind::undo_at, txid, t, old_value()); }
  void append_both(lane& l, const transaction& t, std::uint64_t txid) {
    if (l.reserved_bytes == 0 && !covered_.empty()) append_covered(l, t, txid);
    append_at(l, format::record_kind::redo_at, txid, t, this->new_value);
  }
  // What the transaction's lines that are covered hold until now.
  void append_covered(lane& l, const transaction& t, std::uint64_t txid) {
    const auto lines = t.lines();
    const auto covered = [this](const written_line& line) { return is_covered(area_.matrix_of(line.offset)); };
    if (std::ranges::none_of(lines, covered) || planted(mutant::archapt_no_old_values)) return;
    std::uint64_t kept = 0;
    l.log.append(format::record_kind::undo_at, txid, [&](auto& out) {
      out.word(epoch_);
      for (const written_line& line : lines)
        if (covered(line)) this->write_any_runs({&line, 1}, out, old_value()), ++kept;
    });
    l.log.publish();
    kept_lines_.fetch_add(kept, std::memory_order_relaxed);
  }

  void note(lane& l, const transaction& t, std::uint64_t txid) {
    const bool spilled = std::exchange(l.spilled, false);
    l.notes.record(txid, l.log.end(), spilled ? std::span<const written_line>() : t.lines());
  }

  // Until home has everything up to `txid` durably; others' work counts.
  bool make_physical(std::uint64_t txid) {
    for (;;) {
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
    const auto hold = this->hold_truncation();
    const std::uint64_t through = make_home_durable();
    std::vector<std::uint64_t>& heads = cut_at_;
    for (std::size_t i = 0; i < heads.size(); ++i)  // T5
      if (heads[i] != this->lanes_[i].log.head()) this->write_word(this->log_offset(this->lanes_[i]), heads[i]);
    this->control_.fence();  // heads are durable before their lines are written again
    this->release(heads);    // T6
    ++this->truncations_;
    (void)this->check_medium();
    return through;
  }

  std::uint64_t make_home_durable() {
    const std::uint64_t through = this->state_.completed();  // T1: all of these have stored home
    for (lane& l : this->lanes_) gather(l, through);         // T2
    cut_at_ = positions_;
    for (std::uint64_t m : carried_) dirty_.try_emplace(m, 0);
    carried_.clear();
    cover_cold();                                            // T3
    for (const auto& [matrix, lines] : dirty_) {
      flush(matrix, lines);
      if (skips_ && is_covered(matrix)) carried_.push_back(matrix);  // the log has its old values until the next truncation
    }
    dirty_.clear();
    if (!planted(mutant::archapt_log_released)) this->control_.fence();  // home and blocks are durable before the watermark moves
    this->write_word(format::watermark_offset, through);     // T4
    this->control_.fence();  // the watermark is durable before a commit is told of it, or a head moves
    physical_ = through;
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
      l.notes.take(n, [&](std::uint64_t line) { stored(line); });
    }
  }
  void gather_logged(lane& l, std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t at = from; at < to;) {
      (void)l.read(at, to, record_);
      (void)for_each_stored_run(this->state_.file, record_.payload, [&](format::run_head head, const std::uint64_t*) {
        for (std::uint64_t line = head.offset / line_size; line <= (head.offset + head.count * 8 - 1) / line_size; ++line) stored(line * line_size);
      });
    }
  }
  void stored(std::uint64_t offset) {
    const std::uint64_t m = area_.matrix_of(offset);
    dirty_[m] |= std::uint64_t{1} << area_.line_of(offset);
    if (!skips_) return;
    used_->use(area_.column_of(offset));
  }

  std::uint64_t cold_lines(std::uint64_t matrix, std::uint64_t lines) const noexcept {
    std::uint64_t cold = 0;
    for (std::uint64_t left = lines; left != 0; left &= left - 1) {
      const auto line = static_cast<unsigned>(std::countr_zero(left));
      if (!used_->holds(area_.column_of(matrix, line))) cold |= std::uint64_t{1} << line;
    }
    return cold;
  }
  // The lines of a matrix that a new block is to cover; none: it is better flushed.
  std::uint64_t worth_covering(std::uint64_t matrix, std::uint64_t dirty) const noexcept {
    const std::uint64_t cold = cold_lines(matrix, dirty), before = is_covered(matrix) ? covers_.at(matrix) : 0;
    const std::uint64_t candidates = cold | (before & ~dirty);
    if (options_.skip == skipping::always) return candidates;
    const bool pays_off = kept_lines_.load(std::memory_order_relaxed) <= saved_lines_;  // what was saved has not gone into old values since
    return pays_off && static_cast<unsigned>(std::popcount(candidates)) > area_.block_lines() ? candidates : 0;
  }

  // Matrices that were stored to, a batch at a time: those with enough cold lines get a new block, other covered ones are no more.
  void cover_cold() {
    if (!skips_) return;
    std::vector<std::uint64_t> chosen, ended;
    for (const auto& [matrix, lines] : dirty_) {
      if (worth_covering(matrix, lines) != 0)
        chosen.push_back(matrix);
      else if (is_covered(matrix) && !planted(mutant::archapt_touched_left))
        ended.push_back(matrix);
    }
    std::ranges::sort(chosen);  // not as the table has them: a run follows from its plan
    std::ranges::sort(ended);
    uncover(ended);
    for (std::size_t from = 0; from < chosen.size(); from += batch) cover_batch(std::span(chosen).subspan(from, std::min(batch, chosen.size() - from)));
  }

  void cover_batch(std::span<const std::uint64_t> matrices) {
    std::vector<new_block> blocks;
    gate_.close();
    for (lane& l : this->lanes_) gather(l, pool_state::no_commit);  // what else is stored by now
    ++epoch_;
    for (std::uint64_t m : matrices) blocks.push_back(sum_up_matrix(m));
    gate_.open();
    if (planted(mutant::archapt_blocks_first)) write(blocks);
    for (const new_block& b : blocks) flush(b.matrix, b.flushes);
    if (!planted(mutant::archapt_no_data_fence)) this->control_.fence();  // the lines that are not skipped before a block says so
    write(blocks);  // durable by the fence before the watermark
  }
  // While the gate is closed.
  new_block sum_up_matrix(std::uint64_t m) {
    const std::uint64_t dirty = dirty_[m], skipped = worth_covering(m, dirty);
    new_block b{.matrix = m, .flushes = dirty & ~skipped, .which = next_place(m), .block = {}};
    if (is_covered(m) ? planted(mutant::archapt_in_place) : planted(mutant::archapt_over_end)) b.which = 1 - b.which;
    if (planted(mutant::archapt_hot_unflushed)) b.flushes = 0;
    area_.read(m, matrix_);
    sum_up(matrix_, area_.halves(), b.block);
    b.block.epoch = epoch_;
    b.block.kind = format::parity_kind::covers;
    b.block.skipped = skipped;
    b.block.checksum = area_.checksum_for(b.block, m, b.which);
    dirty_.erase(m);
    covers_[m] = skipped;
    set_covered(m, true, b.which);
    skipped_lines_.fetch_add(static_cast<std::uint64_t>(std::popcount(skipped & dirty)), std::memory_order_relaxed);
    saved_lines_ += static_cast<std::uint64_t>(std::popcount(skipped & dirty));
    return b;
  }
  void write(std::span<const new_block> blocks) {
    const std::size_t size = area_.block_size() - (planted(mutant::archapt_block_unflushed) ? line_size : 0);
    for (const new_block& b : blocks) {
      std::byte* const to = this->state_.file.base() + area_.block_offset(b.matrix, b.which);
      this->control_.store(to, &b.block, area_.block_size());
      this->control_.flush(to, size);
    }
    checksum_lines_.fetch_add(blocks.size() * area_.block_lines(), std::memory_order_relaxed);
  }
  void flush(std::uint64_t matrix, std::uint64_t lines) {
    for (; lines != 0; lines &= lines - 1) {
      const std::uint64_t offset = area_.offset_of(matrix, static_cast<unsigned>(std::countr_zero(lines)));
      this->control_.flush(this->state_.file.at(offset), line_size);
    }
  }

  // Matrices are covered no more: what was skipped is flushed, then a block says so. Holds truncating_.
  void uncover(std::span<const std::uint64_t> matrices) {
    if (matrices.empty()) return;
    for (std::uint64_t m : matrices) flush(m, covers_.at(m));
    if (!planted(mutant::archapt_ended_first)) this->control_.fence();  // home is durable before the block says that it is
    gate_.close();  // the epoch that records are of
    ++epoch_;
    gate_.open();
    for (std::uint64_t m : matrices) {
      const unsigned which = next_place(m);
      format::parity_block end{};
      end.epoch = epoch_;
      end.kind = format::parity_kind::ended;
      end.checksum = area_.checksum_for(end, m, which);
      std::byte* const to = this->state_.file.base() + area_.block_offset(m, which);
      this->control_.store(to, &end, line_size);
      this->control_.flush(to, line_size);
    }
    checksum_lines_.fetch_add(matrices.size(), std::memory_order_relaxed);
    this->control_.fence();  // no block counts before a store to the matrix brings no old values along
    for (std::uint64_t m : matrices) {
      covers_.erase(m);
      set_covered(m, false, next_place(m));
    }
  }
  // At close: blocks of this session are of no account any more.
  void uncover_all() {
    const auto hold = this->hold_truncation();
    for (const auto& [m, skipped] : covers_) flush(m, skipped);
    this->control_.fence();  // home is durable before blocks stop to count
    if (area_.present()) this->write_word(format::parity_epoch_offset, epoch_ + 1);
    this->control_.fence();  // before the pool is marked closed
    for (const auto& [m, skipped] : covers_) set_covered(m, false, 0);
    covers_.clear();
  }

  result<> take_over(log_kind logs_were) override {
    if (auto taken = bulk_engine<Media>::take_over(logs_were); !taken) return taken;
    const auto epoch = this->read_word(format::parity_epoch_offset);
    if (!epoch) return std::unexpected(epoch.error());
    epoch_ = *epoch;
    for (lane& l : this->lanes_) positions_[l.number] = l.log.head();
    return {};
  }

  // R2 and R3.
  template <class Records>
  result<> make_home_whole(const Records& records, std::span<const std::uint64_t> words) {
    if (!area_.present()) return {};
    const auto first = this->read_word(format::parity_epoch_offset);
    if (!first) return std::unexpected(first.error());
    old_values olds(area_);
    for (const auto& r : records)
      if (r.kind == format::record_kind::undo_at)
        if (auto added = olds.add(this->state_.file, std::span(words).subspan(r.first, r.words), r.front); !added) return added;
    const covered_home now = find_covered(area_, *first, olds);
    if (!now.lost.empty()) return report_loss(this->state_.file, now);
    for (const covered_home::line& line : now.restored) this->control_.store(this->state_.file.at(line.offset), line.content.data(), line_size);
    for (std::uint64_t m : now.matrices) flush(m, all_in_home(m));
    if (!planted(mutant::archapt_recover_unfenced)) this->control_.fence();  // all of a covered matrix is durable before its block stops to count
    if (now.newest_epoch != 0) this->write_word(format::parity_epoch_offset, now.newest_epoch + 1);
    this->control_.fence();  // R3: no block counts any more before home changes from what it speaks for
    return {};
  }
  std::uint64_t all_in_home(std::uint64_t m) const noexcept {
    std::uint64_t lines = 0;
    for (unsigned i = 0; i < format::matrix_lines; ++i) lines |= std::uint64_t{area_.in_home(area_.offset_of(m, i))} << i;
    return lines;
  }

  const bool undo_;
  archapt_options options_;
  bool skips_ = false;
  parity_area area_;
  commit_gate gate_;
  std::uint64_t epoch_ = 0;     // changes while the gate is closed
  std::uint64_t physical_ = 0;  // under truncating_, like all that follows but covered_ and the counts
  std::optional<residence> used_;
  std::vector<std::uint64_t> positions_, cut_at_;  // of each log: what has been gathered; what may be cut
  std::unordered_map<std::uint64_t, std::uint64_t> dirty_;  // matrices with stores that were gathered: which lines
  std::unordered_map<std::uint64_t, std::uint64_t> covers_;  // matrices that are covered: which lines were skipped
  std::vector<std::uint64_t> carried_;  // of those, the ones stored to after they were summed up, while a truncation went on
  std::vector<std::atomic<std::uint8_t>> covered_;  // of each matrix: is it, and which of its blocks counts
  matrix matrix_;
  log_record record_;
  std::uint64_t saved_lines_ = 0;
  std::atomic<std::uint64_t> skipped_lines_{0}, checksum_lines_{0}, kept_lines_{0};
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
