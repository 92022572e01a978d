// Which lines of home are dirty, and what becomes of them: flushed, or skipped and covered by checksums.
// docs/protocol/archapt.md, T3. Source: Wu, Ren and Li, "Architecture-Aware, High Performance Transaction for Persistent Memory" (2019),
// sections III-B and III-C.
//
// Commits ask what is covered, and the epoch, between enter() and leave() of the gate; everything else is the truncation's, which one
// thread at a time does.
#pragma once

#include <base/mutant.h>
#include <stele/archapt_options.h>
#include <tx/commit_gate.h>
#include <tx/parity/area.h>
#include <tx/parity/residence.h>

#include <algorithm>
#include <span>
#include <unordered_map>
#include <vector>

namespace stele::detail {

template <class Media>
class covers {
  using mutant = base::mutant;
  static bool planted(mutant m) noexcept { return base::planted<Media>(m); }

 public:
  covers(const storage::pool_file& file, Media& media, commit_gate& gate)
      : area(file), file_(file), media_(media), gate_(gate), state_(area.matrices()), used_(1) {}

  void set_up(const archapt_options& options) {
    skip_ = area.present() && Media::whole_cache != media::whole_cache::best ? options.skip : skipping::never;
    const std::size_t cache = options.cache_bytes != 0 ? options.cache_bytes : media::cpu::last_level_cache_bytes();
    const std::size_t bytes = std::min<std::uint64_t>(cache, area.home_size() + format::matrix_side * line_size);  // no more is ever queued
    used_ = residence(bytes / (format::matrix_side * line_size) / (planted(mutant::archapt_short_queue) ? 16 : 1));
  }

  const parity_area area;

  // --- for commits, inside the gate ---

  bool ever() const noexcept { return skip_ != skipping::never; }
  bool covered(std::uint64_t matrix) const noexcept { return (state_[matrix].load(std::memory_order_relaxed) & is_covered) != 0; }
  std::uint64_t epoch() const noexcept { return epoch_; }
  // So many lines' old values went to a log for their being covered.
  void kept(std::uint64_t lines) noexcept { kept_lines_.fetch_add(lines, std::memory_order_relaxed); }

  // --- for the truncation ---

  void begin(std::uint64_t epoch) noexcept { epoch_ = epoch; }

  // A commit has stored to a line.
  void stored(std::uint64_t offset) {
    dirty_[area.matrix_of(offset)] |= std::uint64_t{1} << area.line_of(offset);
    if (ever()) used_.use(area.column_of(offset));
  }

  // T3: every line stored to is flushed or covered after the medium's next fence. `gather_rest()` is called with the gate closed and
  // tells of what has been stored meanwhile.
  template <class Gather>
  void settle(Gather&& gather_rest) {
    for (std::uint64_t m : carried_) dirty_.try_emplace(m, 0);
    carried_.clear();
    if (ever()) cover_cold(gather_rest);
    for (const auto& [matrix, lines] : dirty_) {
      flush(matrix, lines);
      if (ever() && covered(matrix)) carried_.push_back(matrix);
    }
    dirty_.clear();
  }

  // T3a: matrices are covered no more. What was skipped is flushed, then a block says so; durable on return.
  void uncover(std::span<const std::uint64_t> matrices) {
    if (matrices.empty()) return;
    for (std::uint64_t m : matrices) flush(m, skipped_.at(m));
    if (!planted(mutant::archapt_ended_first)) media_.fence();  // home is durable before a block says that it is
    gate_.close();
    ++epoch_;
    gate_.open();
    for (std::uint64_t m : matrices) write_end(m);
    checksum_lines_.fetch_add(matrices.size(), std::memory_order_relaxed);
    media_.fence();  // nothing is covered before stores go without old values
    for (std::uint64_t m : matrices) {
      skipped_.erase(m);
      state_[m].store(next_place(m) * second_place, std::memory_order_relaxed);
    }
  }

  // What has been skipped, at the end of a session. The blocks still count.
  void flush_skipped() {
    for (const auto& [m, lines] : skipped_) flush(m, lines);
  }
  void flush(std::uint64_t matrix, std::uint64_t lines) {
    for (; lines != 0; lines &= lines - 1) media_.flush(file_.at(area.offset_of(matrix, first_of(lines))), line_size);
  }

  std::uint64_t skipped_lines() const noexcept { return skipped_lines_.load(std::memory_order_relaxed); }
  std::uint64_t checksum_lines() const noexcept { return checksum_lines_.load(std::memory_order_relaxed); }
  std::uint64_t kept_lines() const noexcept { return kept_lines_.load(std::memory_order_relaxed); }

 private:
  struct new_block {
    std::uint64_t matrix, flushes;
    unsigned which;
    format::parity_block block;
  };
  static constexpr std::size_t batch = 32;  // matrices that are summed up while commits wait
  static constexpr std::uint8_t is_covered = 1, second_place = 2;  // in state_: the block that counts is the second

  static unsigned first_of(std::uint64_t lines) noexcept { return static_cast<unsigned>(std::countr_zero(lines)); }
  // Where the next block of a matrix goes: not over the one that counts, also if that says that nothing is covered.
  std::uint8_t next_place(std::uint64_t m) const noexcept { return (state_[m].load(std::memory_order_relaxed) & second_place) != 0 ? 0 : 1; }

  // The lines of a matrix that a block may leave unflushed.
  std::uint64_t candidates(std::uint64_t m, std::uint64_t dirty) const noexcept {
    std::uint64_t cold = 0;
    for (std::uint64_t left = dirty; left != 0; left &= left - 1)
      if (!used_.holds(area.column_of(m, first_of(left)))) cold |= left & -left;
    return cold | (covered(m) ? skipped_.at(m) & ~dirty : 0);
  }
  bool worth_a_block(std::uint64_t lines) const noexcept {
    if (skip_ == skipping::always) return lines != 0;
    const bool paid_off = kept_lines() <= saved_lines_;  // what was saved has not gone into old values since
    return paid_off && static_cast<unsigned>(std::popcount(lines)) > area.block_lines();
  }

  // Matrices that were stored to: those with enough cold lines get a block, others are covered no more.
  template <class Gather>
  void cover_cold(Gather&& gather_rest) {
    std::vector<std::uint64_t> chosen, ended;
    for (const auto& [m, lines] : dirty_) {
      if (worth_a_block(candidates(m, lines)))
        chosen.push_back(m);
      else if (covered(m) && !planted(mutant::archapt_touched_left))
        ended.push_back(m);
    }
    std::ranges::sort(chosen);  // not as the table has them: a run follows from its plan
    std::ranges::sort(ended);
    uncover(ended);
    for (std::size_t from = 0; from < chosen.size(); from += batch) cover(std::span(chosen).subspan(from, std::min(batch, chosen.size() - from)), gather_rest);
  }

  // T3b.
  template <class Gather>
  void cover(std::span<const std::uint64_t> matrices, Gather&& gather_rest) {
    std::vector<new_block> blocks;
    gate_.close();
    gather_rest();
    ++epoch_;
    for (std::uint64_t m : matrices) blocks.push_back(sum_up_matrix(m));
    gate_.open();
    if (planted(mutant::archapt_blocks_first)) write(blocks);
    for (const new_block& b : blocks) flush(b.matrix, b.flushes);
    if (!planted(mutant::archapt_no_data_fence)) media_.fence();  // the lines that are not skipped before a block says so
    write(blocks);
  }
  new_block sum_up_matrix(std::uint64_t m) {
    const std::uint64_t dirty = dirty_[m], skipped = candidates(m, dirty), saved = static_cast<std::uint64_t>(std::popcount(skipped & dirty));
    new_block b{.matrix = m, .flushes = planted(mutant::archapt_hot_unflushed) ? 0 : dirty & ~skipped, .which = next_place(m), .block = {}};
    if (covered(m) ? planted(mutant::archapt_in_place) : planted(mutant::archapt_over_end)) b.which = 1 - b.which;
    area.read(m, content_);
    sum_up(content_, area.halves(), b.block);
    b.block.epoch = epoch_;
    b.block.kind = format::parity_kind::covers;
    b.block.skipped = skipped;
    b.block.checksum = area.checksum_for(b.block, m, b.which);
    dirty_.erase(m);
    skipped_[m] = skipped;
    state_[m].store(static_cast<std::uint8_t>(is_covered | (b.which != 0 ? second_place : 0)), std::memory_order_relaxed);
    skipped_lines_.fetch_add(saved, std::memory_order_relaxed);
    saved_lines_ += saved;
    return b;
  }

  void write(std::span<const new_block> blocks) {
    const std::size_t size = area.block_size() - (planted(mutant::archapt_block_unflushed) ? line_size : 0);
    for (const new_block& b : blocks) {
      std::byte* const to = file_.base() + area.block_offset(b.matrix, b.which);
      media_.store(to, &b.block, area.block_size());
      media_.flush(to, size);
    }
    checksum_lines_.fetch_add(blocks.size() * area.block_lines(), std::memory_order_relaxed);
  }
  void write_end(std::uint64_t m) {
    const unsigned which = next_place(m);
    format::parity_block end{};
    end.epoch = epoch_;
    end.kind = format::parity_kind::ended;
    end.checksum = area.checksum_for(end, m, which);
    std::byte* const to = file_.base() + area.block_offset(m, which);
    media_.store(to, &end, line_size);
    media_.flush(to, line_size);
  }

  const storage::pool_file& file_;
  Media& media_;
  commit_gate& gate_;
  skipping skip_ = skipping::never;
  std::uint64_t epoch_ = 0;  // changes while the gate is closed
  std::vector<std::atomic<std::uint8_t>> state_;  // of each matrix: is it covered, and which of its blocks counts
  residence used_;
  std::unordered_map<std::uint64_t, std::uint64_t> dirty_;    // matrices with stores that were told: which lines
  std::unordered_map<std::uint64_t, std::uint64_t> skipped_;  // matrices that are covered: which lines were skipped
  std::vector<std::uint64_t> carried_;  // of those, the ones stored to after they were summed up: the log has their old values until the next time
  matrix content_;
  std::uint64_t saved_lines_ = 0;
  std::atomic<std::uint64_t> skipped_lines_{0}, checksum_lines_{0}, kept_lines_{0};
};

}  // namespace stele::detail
