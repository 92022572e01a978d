// Which lines of home are dirty, and what is done with them: flushed, or skipped and covered by
// checksums. docs/protocol/archapt.md, T3. Source: Wu, Ren and Li, "Architecture-Aware, High
// Performance Transaction for Persistent Memory" (2019), sections III-B and III-C.
//
// Commits ask what is covered, and the epoch, between enter() and leave() of the commit gate. All
// else belongs to truncation, which one thread at a time runs.
#pragma once

#include <base/assert.h>
#include <published/archapt/column_lru.h>
#include <published/archapt/parity_area.h>
#include <published/archapt/skip_ledger.h>
#include <published/mutant.h>
#include <stele/archapt_options.h>
#include <stele/pool.h>
#include <tx/commit_gate.h>

#include <algorithm>
#include <span>
#include <vector>

namespace stele::detail {

template <class Media>
class parity_tracker {
  using mutant = published::mutant;

 public:
  parity_tracker(const storage::pool_file& file, Media& media, commit_gate& gate)
      : area(file),
        file_(file),
        media_(media),
        gate_(gate),
        state_(area.matrices()),
        dirty_(format::matrix_count(area.home_size())),
        skipped_(area.matrices()),
        overpaid_lines_(area.matrices()),
        recent_columns_(1) {}

  // `keeps_old_values`: the log gets the old value of each store to a covered line.
  void set_up(const archapt_options& options, bool keeps_old_values) {
    keeps_old_values_ = keeps_old_values;
    skip_policy_ = area.present() && Media::whole_cache != media::whole_cache::preferred
                       ? options.skip
                       : skipping::never;
    const std::size_t cache =
        options.cache_bytes != 0 ? options.cache_bytes : media::cpu::last_level_cache_bytes();
    const std::uint64_t columns = cache / (format::matrix_side * line_size) /
                                  (planted<Media>(mutant::archapt_short_queue) ? 16 : 1);
    if (columns * (format::matrix_side * line_size) >= area.home_size())
      skip_policy_ = skipping::never;  // no column ever leaves the queue
    if (enabled()) recent_columns_ = column_lru(columns);
    STELE_ASSERT_ALWAYS(!enabled() || area.present());  // blocks have a place
    reserve();
  }

  const parity_area area;

  // --- for commits, inside the gate ---

  bool enabled() const noexcept { return skip_policy_ != skipping::never; }
  bool always_skips() const noexcept { return skip_policy_ == skipping::always; }
  // Whether anything may be covered. Changes only while the gate is closed.
  bool any_covered() const noexcept { return any_covered_; }
  bool covered(std::uint64_t matrix) const noexcept {
    return (state_[matrix].load(std::memory_order_relaxed) & is_covered) != 0;
  }
  std::uint64_t epoch() const noexcept { return epoch_; }
  // Counts lines whose old values went to a log because they are covered.
  void count_old_lines(std::uint64_t lines) noexcept {
    kept_lines_.fetch_add(lines, std::memory_order_relaxed);
  }

  // --- for the truncation ---

  void begin(std::uint64_t epoch) noexcept { epoch_ = epoch; }

  // Notes that a commit has stored to a line.
  void record_store(std::uint64_t offset) {
    const std::uint64_t m = area.matrix_of(offset);
    STELE_ASSERT(m < dirty_.size());
    add_to_list(m);
    dirty_[m] |= std::uint64_t{1} << area.line_of(offset);
    record_load(offset);
  }
  // Notes that the cache has the line. Offsets below home are ignored.
  void record_load(std::uint64_t offset) {
    if (enabled() && area.in_home(offset)) recent_columns_.touch(area.column_of(offset));
  }

  // T3: every line stored to is flushed or covered after the medium's next fence. Calls
  // `gather_rest()` with the gate closed, to be told what was stored meanwhile. Calls
  // `checkpoint()` before anything is covered; if it returns true, it has made one: then all is
  // flushed already, and nothing is covered this time.
  template <class Gather, class Checkpoint>
  void flush_or_cover(Gather&& gather_rest, Checkpoint&& checkpoint) {
    for (std::uint64_t m : carried_) add_to_list(m);
    carried_.clear();
    if (enabled() && !cover_cold(gather_rest, checkpoint)) {
      STELE_ASSERT_WHOLE(is_clean());  // archapt.md, C2: the checkpoint flushed all
      return;
    }
    for (std::uint64_t m : listed_) {
      if ((dirty_[m] & is_listed) == 0) continue;  // it got a block, or is listed twice
      flush(m, dirty_[m] & format::full_matrix_mask);
      dirty_[m] = 0;
      if (!enabled() || !covered(m)) continue;
      STELE_ASSERT(carried_.size() < carried_.capacity());
      carried_.push_back(m);
    }
    listed_.clear();
    STELE_ASSERT_WHOLE(is_clean());  // archapt.md, T3
  }

  // Called with the gate closed. Flushes everything stored so far, noted or skipped. From the
  // returned epoch on no matrix is covered.
  std::uint64_t end_all() {
    for (std::uint64_t m : listed_) flush(m, dirty_[m] & format::full_matrix_mask), dirty_[m] = 0;
    listed_.clear();
    carried_.clear();
    flush_skipped();
    for (std::uint64_t m = 0; m < state_.size(); ++m) {
      skipped_[m] = 0;
      state_[m].store(state_[m].load(std::memory_order_relaxed) & second_slot,
                      std::memory_order_relaxed);
    }
    any_covered_ = false;
    STELE_ASSERT_WHOLE(is_clean());  // archapt.md, C2: every line stored to was flushed
    return ++epoch_;
  }

  // T3a: uncovers matrices. Flushes what was skipped, then writes a block that says so; durable on
  // return.
  void uncover(std::span<const std::uint64_t> matrices) {
    if (matrices.empty()) return;
    for (std::uint64_t m : matrices) {
      STELE_ASSERT((skipped_[m] & ~format::full_matrix_mask) == 0);
      flush(m, skipped_[m]);
      ledger_.charge(count(skipped_[m] & ~dirty_[m]) + 1);
      dirty_[m] &= ~skipped_[m];
    }
    media_.fence();  // home is durable before a block says that it is
    gate_.close();
    ++epoch_;
    gate_.open();
    for (std::uint64_t m : matrices) write_end(m);
    checksum_lines_.fetch_add(matrices.size(), std::memory_order_relaxed);
    media_.fence();  // nothing is covered on media before stores go without old values
    for (std::uint64_t m : matrices) {
      skipped_[m] = 0;
      state_[m].store(next_slot(m) * second_slot, std::memory_order_relaxed);
    }
  }

  // Flushes what was skipped, at the end of a session. The blocks still count.
  void flush_skipped() {
    for (std::uint64_t m = 0; m < skipped_.size(); ++m) flush(m, skipped_[m]);
  }
  void flush(std::uint64_t matrix, std::uint64_t lines) {
    area.for_each_line(matrix, lines, [this](std::byte* at) { media_.flush(at, line_size); });
  }

  void add_counters_to(mechanism_counters& to) const {
    to.add("skipped_lines", skipped_lines_.load(std::memory_order_relaxed));
    to.add("checksum_lines", checksum_lines_.load(std::memory_order_relaxed));
    to.add("undo_logged_lines", kept_lines_.load(std::memory_order_relaxed));
  }

 private:
  struct new_block {
    std::uint64_t matrix, flushes;
    unsigned which;
    format::parity_block block;
  };
  static constexpr unsigned words_per_old_line = 9;
  static constexpr std::size_t batch = 32;  // matrices that get a block while commits wait
  static constexpr std::uint64_t is_listed = std::uint64_t{1} << 63;  // in dirty_
  static constexpr std::uint8_t is_covered = 1,
                                second_slot = 2;  // in state_: the block that counts is the second

  // Whether no line is noted as stored to. Only for assertions.
  [[maybe_unused]] bool is_clean() const noexcept {
    return listed_.empty() && std::ranges::all_of(dirty_, [](std::uint64_t d) { return d == 0; });
  }
  // The slot for a matrix's next block: never that of the block that counts, even if it says that
  // nothing is covered.
  std::uint8_t next_slot(std::uint64_t m) const noexcept {
    return (state_[m].load(std::memory_order_relaxed) & second_slot) != 0 ? 0 : 1;
  }

  // The lines of a matrix that a block may leave unflushed.
  std::uint64_t candidates(std::uint64_t m, std::uint64_t dirty) const noexcept {
    std::uint64_t cold = 0;
    for (unsigned column = 0; column < format::matrix_side; ++column) {
      const std::uint64_t lines = dirty & format::first_column_mask << column * format::matrix_side;
      if (lines != 0 && !recent_columns_.contains(m * format::matrix_side + column)) cold |= lines;
    }
    return cold | (skipped_[m] & ~dirty);
  }
  // When it pays: of the matrices where a block is less than its lines, one in sixteen, to learn
  // what comes later, and the others where the ledger expects a gain. A covered matrix stays
  // covered until that has cost as much as flushing the skipped lines would: from then on covering
  // is no better than not covering, and may be much worse.
  bool worth_a_block(std::uint64_t m) noexcept {
    const std::uint64_t dirty = dirty_[m] & format::full_matrix_mask, cold = candidates(m, dirty);
    if (always_skips()) return cold != 0;
    if (!covered(m))
      return skip_ledger::is_less(count(cold), area.block_lines()) &&
             (is_tried(m) || ledger_.pays(count(cold), area.block_lines()));
    if (count(cold) <= area.block_lines()) return false;
    const unsigned saved = std::min(count(cold & dirty), area.block_lines());
    const unsigned cost =
        area.block_lines() - saved + (keeps_old_values_ ? old_lines(count(dirty)) : 0);
    overpaid_lines_[m] =
        static_cast<std::uint8_t>(std::min<unsigned>(overpaid_lines_[m] + cost, UINT8_MAX));
    return overpaid_lines_[m] <= count(skipped_[m]);
  }
  static bool is_tried(std::uint64_t m) noexcept { return m * 0x9E3779B97F4A7C15u >> 60 == 0; }
  // Log lines for the old values of so many lines.
  static constexpr unsigned old_lines(unsigned lines) noexcept {
    return lines * words_per_old_line / format::payload_words;
  }
  static unsigned count(std::uint64_t lines) noexcept {
    return static_cast<unsigned>(std::popcount(lines));
  }
  void charge_old_values() noexcept {
    const std::uint64_t kept = kept_lines_.load(std::memory_order_relaxed);
    STELE_ASSERT(kept >= charged_lines_);  // what logs keep is charged once
    ledger_.charge(old_lines(static_cast<unsigned>(kept - charged_lines_)));
    charged_lines_ = kept;
  }

  // Truncation allocates no memory after this: with undo, a commit must not fail once its record is
  // durable.
  void reserve() {
    const std::uint64_t all = dirty_.size();  // also of a pool without parity blocks
    listed_.reserve(2 * all);                 // a matrix that got a block may be stored to again
    for (auto* list : {&carried_, &to_cover_, &to_uncover_}) list->reserve(enabled() ? all : 0);
    blocks_.reserve(batch);
  }

  void add_to_list(std::uint64_t m) {
    if ((dirty_[m] & is_listed) != 0) return;
    dirty_[m] |= is_listed;
    STELE_ASSERT(listed_.size() < listed_.capacity());  // a truncation allocates no memory
    listed_.push_back(m);
  }

  // Of the matrices that were stored to, those with enough cold lines get a block; the others are
  // uncovered. False: a checkpoint was made instead.
  template <class Gather, class Checkpoint>
  bool cover_cold(Gather&& gather_rest, Checkpoint&& checkpoint) {
    ledger_.begin_truncation();
    charge_old_values();
    to_cover_.clear(), to_uncover_.clear();
    for (const std::uint64_t m : listed_) {
      if (worth_a_block(m))
        to_cover_.push_back(m);
      else if (covered(m) && !planted<Media>(mutant::archapt_touched_left))
        to_uncover_.push_back(m);
    }
    // Each matrix is listed once until its block is made.
    STELE_ASSERT(to_cover_.size() + to_uncover_.size() <= area.matrices());
    if (!to_cover_.empty() && checkpoint()) return false;
    std::ranges::sort(to_cover_);
    std::ranges::sort(to_uncover_);
    uncover(to_uncover_);
    for (std::size_t from = 0; from < to_cover_.size(); from += batch)
      cover(std::span(to_cover_).subspan(from, std::min(batch, to_cover_.size() - from)),
            gather_rest);
    return true;
  }

  // T3b: covers matrices.
  template <class Gather>
  void cover(std::span<const std::uint64_t> matrices, Gather&& gather_rest) {
    STELE_ASSERT(!matrices.empty() && matrices.size() <= blocks_.capacity());
    blocks_.clear();
    for (std::uint64_t m : matrices)  // prefetched: commits wait while they are read
      area.for_each_line(m, area.lines_in_home(m), [](std::byte* at) { __builtin_prefetch(at); });
    gate_.close();
    gather_rest();
    ++epoch_;
    for (std::uint64_t m : matrices) blocks_.push_back(make_block(m));
    // archapt.md: every block describes its matrix as it was at one epoch, when the gate was
    // closed.
    STELE_ASSERT(std::ranges::all_of(
        blocks_, [this](const new_block& b) { return b.block.epoch == epoch_; }));
    gate_.open();
    if (planted<Media>(mutant::archapt_blocks_first)) write(blocks_);
    for (const new_block& b : blocks_) flush(b.matrix, b.flushes);
    media_.fence();  // lines that are not skipped are durable before a block says so
    write(blocks_);
  }
  new_block make_block(std::uint64_t m) {
    const std::uint64_t dirty = dirty_[m] & format::full_matrix_mask,
                        skipped = candidates(m, dirty),
                        saved = static_cast<std::uint64_t>(std::popcount(skipped & dirty));
    new_block b{.matrix = m,
                .flushes = planted<Media>(mutant::archapt_hot_unflushed) ? 0 : dirty & ~skipped,
                .which = next_slot(m),
                .block = {}};
    // archapt.md, T3b: a dirty line is either skipped, and covered, or flushed before the block.
    STELE_ASSERT(
        base::holds((b.flushes & skipped) == 0 && ((b.flushes | skipped) & dirty) == dirty));
    STELE_ASSERT((skipped & ~area.lines_in_home(m)) == 0 && saved <= count(skipped));
    note_block(m, count(skipped), static_cast<unsigned>(saved));
    if (covered(m) ? planted<Media>(mutant::archapt_in_place)
                   : planted<Media>(mutant::archapt_over_end))
      b.which = 1 - b.which;
    area.read(m, content_);
    compute_checksums(content_, area.halves(), b.block);
    b.block.epoch = epoch_;
    b.block.kind = format::parity_kind::active;
    b.block.skipped = skipped;
    b.block.checksum = area.checksum_for(b.block, m, b.which);
    dirty_[m] = 0;
    any_covered_ = true;
    skipped_[m] = skipped;
    state_[m].store(static_cast<std::uint8_t>(is_covered | (b.which != 0 ? second_slot : 0)),
                    std::memory_order_relaxed);
    skipped_lines_.fetch_add(saved, std::memory_order_relaxed);
    return b;
  }
  void note_block(std::uint64_t m, unsigned skipped, unsigned saved) noexcept {
    if (covered(m))
      return ledger_.charge(std::int64_t{area.block_lines() + skip_ledger::summing_lines} - saved);
    STELE_ASSERT(skipped <= format::matrix_lines && saved <= skipped);
    overpaid_lines_[m] = 0;
    ledger_.skip(skipped);
  }

  void write(std::span<const new_block> blocks) {
    for (const new_block& b : blocks) {
      STELE_ASSERT(b.which < format::parity_blocks && b.block.kind == format::parity_kind::active &&
                   b.block.epoch <= epoch_);
      std::byte* const to = file_.base() + area.block_offset(b.matrix, b.which);
      media_.stream(to, &b.block, area.block_size());
    }
    checksum_lines_.fetch_add(blocks.size() * area.block_lines(), std::memory_order_relaxed);
  }
  void write_end(std::uint64_t m) {
    const unsigned which = next_slot(m);
    format::parity_block end{};
    end.epoch = epoch_;
    end.kind = format::parity_kind::ended;
    end.checksum = area.checksum_for(end, m, which);
    media_.stream(file_.base() + area.block_offset(m, which), &end, line_size);
  }

  const storage::pool_file& file_;
  Media& media_;
  commit_gate& gate_;
  skipping skip_policy_ = skipping::never;
  std::uint64_t epoch_ = 0;  // changes only while the gate is closed
  // For each matrix: whether it is covered, and which of its blocks counts.
  std::vector<std::atomic<std::uint8_t>> state_;
  // For each matrix: lines with noted stores, a bit each, and whether it is listed.
  std::vector<std::uint64_t> dirty_;
  // For each matrix: skipped lines; none unless it is covered.
  std::vector<std::uint64_t> skipped_;
  // For each covered matrix, in lines: what not covering it would have saved.
  std::vector<std::uint8_t> overpaid_lines_;
  std::vector<std::uint64_t> listed_;  // matrices that were stored to, or carried
  // Matrices stored to after they got a block: the log has their old values until the next time.
  std::vector<std::uint64_t> carried_;
  std::vector<std::uint64_t> to_cover_, to_uncover_;  // used by cover_cold()
  std::vector<new_block> blocks_;                     // used by cover()
  column_lru recent_columns_;
  matrix content_;
  bool keeps_old_values_ = false;
  skip_ledger ledger_;
  std::uint64_t charged_lines_ = 0;  // old values that the ledger has
  bool any_covered_ = false;         // since the last end_all()
  std::atomic<std::uint64_t> skipped_lines_{0}, checksum_lines_{0}, kept_lines_{0};
};

}  // namespace stele::detail
