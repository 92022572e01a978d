// xil, blurred, adaptive: execution in log, alone, with volatile checkpoint and bulk persistence,
// and by choice. Pages: docs/protocol/{xil,blurred,adaptive}.md. Source: Lu, Shu and Sun, "Blurred
// Persistence" (2016).
//
// - xil: stores go to block records in the cache. Commit: one fence for the log, one for home.
// - blurred: xil's log with the checkpoint of vcbp (redo_async.h); one fence.
// - adaptive: blurred or vcbp, as the mode choice says. A log changes its format while it is empty.
//
// There is no background thread: the commit that finds its log full does the bulk persistence, as
// in the paper.
#pragma once

#include <base/assert.h>
#include <published/blurred/block_log.h>
#include <published/blurred/mode_choice.h>
#include <published/mutant.h>
#include <stele/adaptive_options.h>
#include <stele/blurred_options.h>
#include <tx/bulk_write_back.h>
#include <tx/log/recovery.h>
#include <tx/mechanism_engine.h>

#include <optional>

namespace stele::detail {

struct blurred_variant {
  bool volatile_checkpoint, adaptive;
};

template <class Media, blurred_variant variant>
class execution_in_log {
 public:
  using medium = Media;
  static constexpr log_kind kind = log_kind::lines_or_blocks;
  static constexpr auto upkeep = checksum_upkeep::at_truncation;
  static constexpr const record_form* other_form = &block_form;

  execution_in_log(pool_medium<Media>& m, home_checksums<Media>& sums, const engine_tuning& tuning)
      : medium_(m),
        file_(m.state.file),
        sums_(sums),
        logs(m, sums),
        home(file_),
        truncation(m, logs, no_background_, [this] { return write_back.truncate(); }),
        write_back(m, sums, logs, truncation, tuning.bulk,
                   variant.volatile_checkpoint ? dirty_lines::in_queue : dirty_lines::flushed),
        options_(tuning.of_mechanism.get<blurred_options>()),
        commit_counts_(logs.size()) {
    blocks_.reserve(logs.size());
    for (lane& l : logs) {
      blocks_.emplace_back(l.media, l.log, file_.header().id);
      blocks_.back().configure(options_.runs, options_.abort_interval);
    }
    if (variant.adaptive)
      mode_choice_.emplace(tuning.of_mechanism.get<adaptive_options>(), tuning.media_latency_ns,
                           Media::under_exploration);
  }

  [[nodiscard]] result<> attach(log_kind were) {
    if (auto right = check_options(); !right) return right;
    return logs.attach(were == kind,
                       !mode_choice_ || mode_choice_->wants_blocks() ? &block_form : nullptr);
  }

  // --- a transaction ---

  bool begin(transaction& t) {
    lane& l = logs.of(t);
    if (mode_choice_ && mode_choice_->wants_blocks() != has_blocks(l)) [[unlikely]]
      switch_log_format(l);
    if (!has_blocks(l) || t.exceeds_log) return false;
    blocks_of(l).begin();
    return true;
  }

  // The words of the write set are places in the log. A word that has one keeps it; new whole words
  // that follow each other go to the log at once.
  void store(transaction& t, written_line& line, const written_line& stored) {
    lane& l = logs.of(t);
    STELE_ASSERT(has_blocks(l) && line.offset == stored.offset);
    for (unsigned w = next_word(stored.mask, 0); w < 8; w = next_word(stored.mask, w + 1)) {
      unsigned end = w;
      while (end < 8 && stored.word_mask(end) == 0xFF && line.word_mask(end) == 0) ++end;
      if (end == w) {
        store_part(l, t, line, stored, w);
        continue;
      }
      wait_for_blocks(l, t, end - w);
      blocks_of(l).append_words(line.offset + 8 * w, std::span(stored.words).subspan(w, end - w),
                                &line.words[w]);
      line.mask |= byte_range(8 * w, 8 * (end - w));
      w = end - 1;
    }
  }
  std::uint64_t word(const written_line& line, unsigned word) const noexcept {
    return format::word_at(line.words[word]);
  }

  void abort(transaction& t) noexcept {
    lane& l = logs.of(t);
    lane_blocks& of = blocks_of(l);
    if (!of.has_records()) return;
    // A truncation that sees the moved tail also sees the aborted range.
    const std::lock_guard hold(l.spills_mutex);
    const aborted_range aborted{of.first_line(), of.first_line() + of.lines_used() + 1};
    const bool noted = record_aborted_range(l, aborted);
    [[maybe_unused]] const std::uint64_t end = of.abort();
    // xil.md, Abort: a truncation flushes every line of it.
    STELE_ASSERT(end > aborted.from && end <= aborted.to);
    if (noted) return;
    logs.flush_lines(l.media, l, aborted.from, aborted.to);  // no memory to leave it to truncation
    (void)medium_.fence_ok(l.media);
  }

  [[nodiscard]] result<> reserve_log(transaction& t) {
    lane& l = logs.of(t);
    if (t.observed()) return {};  // each block left room for the records that end the transaction
    return exclude_wait(
        [&] { return has_blocks(l) ? prepare_blocks(l, t) : truncation.reserve(l, t); });
  }

  // Steps 1 to 4 of docs/protocol/blurred.md; xil adds 5 and 6.
  bool commit(transaction& t, std::uint64_t txid) {
    lane& l = logs.of(t);
    append_record(l, t, txid);  // 1, 2
    if (variant.volatile_checkpoint) logs.queue_dirty_lines(l, t, txid);
    // 3: the log is durable before home changes
    if (!medium_.fence_ok(l.media)) return false;
    t.begin_home_stores();
    store_home(l, t, flushes_home);  // 4, 5
    // 6: home is durable before the log may be truncated
    if (flushes_home && !medium_.fence_ok(l.media)) return false;
    STELE_ASSERT(l.log.appended_end() > l.log.tail());  // the tail rises past the record
    l.log.publish();
    if (mode_choice_) count_commit(t);
    return true;
  }

  [[nodiscard]] result<> recover() {
    return log_recovery<Media>(medium_, sums_, logs, &block_form).run();
  }

  void add_totals(engine_totals& t) const noexcept {
    if (!mode_choice_) return;
    t.of_mechanism.add("mode_switches", switches_.load(std::memory_order_relaxed));
    t.mode = mode_choice_->wants_blocks() ? "blurred" : "vcbp";
  }

 private:
  struct alignas(64) count {
    std::uint64_t commits = 0;
  };

  [[nodiscard]] result<> check_options() const {
    const std::uint64_t blocks = options_.abort_interval;
    if (blocks >= format::blocks_per_line && blocks <= max_abort_interval &&
        blocks % format::blocks_per_line == 0)
      return {};
    return base::fail(
        errc::invalid_argument,
        fmt::format("{}: an abort record in every {} blocks is not possible; set "
                    "blurred_options::abort_interval to a multiple of {} up to {}",
                    file_.path(), blocks, format::blocks_per_line, max_abort_interval));
  }

  using mutant = published::mutant;
  using lane = typename log_lanes<Media>::lane;
  using lane_blocks = block_log<Media>;
  using aborted_range = typename log_lanes<Media>::aborted_range;
  using new_word = typename home_writer<Media>::new_word;
  static constexpr bool flushes_home = !variant.volatile_checkpoint;

  static bool has_blocks(const lane& l) noexcept { return l.form != nullptr; }
  lane_blocks& blocks_of(const lane& l) noexcept { return blocks_[l.number]; }
  const lane_blocks& blocks_of(const lane& l) const noexcept { return blocks_[l.number]; }

  // Bytes of a word; those that it has already stay.
  void store_part(lane& l, transaction& t, written_line& line, const written_line& stored,
                  unsigned w) {
    const std::uint8_t old = line.word_mask(w), mask = old | stored.word_mask(w);
    const std::uint64_t bits = expand_mask(stored.word_mask(w)),
                        kept = old != 0 ? word(line, w) : 0,
                        merged = (kept & ~bits) | (stored.words[w] & bits);
    const format::block_record r{format::block_kind::data, mask, merged, line.offset + 8 * w};
    if (old != 0) {
      blocks_of(l).rewrite(line.words[w], r);
    } else {
      wait_for_blocks(l, t, 1);
      line.words[w] = blocks_of(l).append_word(r);
    }
    line.mask |= std::uint64_t{mask} << (8 * w);
  }

  static bool record_aborted_range(lane& l, const aborted_range& h) noexcept {
    try {
      l.aborted_ranges.push_back(h);
      return true;
    } catch (const std::bad_alloc&) {
      return false;
    }
  }

  // Adds what the log does not have yet of t's record, and the commit record.
  void append_record(lane& l, transaction& t, std::uint64_t txid) {
    if (!has_blocks(l)) {
      logs.append(l, format::record_kind::redo, txid, t, new_word{});
      return;
    }
    if (t.observed()) {
      append_checksum_deltas(l, t);
      // Before the log is flushed: a load from a line that is being written back waits for it.
      t.take_observed_words();
    } else {
      append_all(l, t);
    }
    if (planted<Media>(mutant::xil_home_first)) store_home(l, t, false);
    blocks_of(l).commit(txid);
  }
  void store_home(lane& l, const transaction& t, bool flushes) {
    for (const written_line& line : t.lines()) {
      home.store(l.media, line);
      if (flushes) l.media.flush(file_.at(line.offset), line_size);
    }
  }
  void count_commit(const transaction& t) {
    if (++commit_counts_[t.log()].commits != mode_choice_->batch()) [[likely]]
      return;
    commit_counts_[t.log()].commits = 0;
    mode_choice_->committed(mode_choice_->batch());
  }

  // The next functions serve a transaction that ran in the write set: it outgrew the log once, or
  // the format of its log has changed.
  static std::uint64_t words_stored(const transaction& t) {
    std::uint64_t words = 0;
    for (const written_line& line : t.lines())
      words += static_cast<unsigned>(std::popcount(stored_words(line.mask)));
    return words;
  }
  [[nodiscard]] result<> prepare_blocks(lane& l, transaction& t) {
    logs.release_reserved(l);
    std::uint64_t lines =
        (words_stored(t) + (sums_.logged() ? sums_.delta_count(t) : 0)) / format::blocks_per_line +
        2;
    if (lines >= l.log.capacity_lines()) {
      if (auto made = truncation.reserve_spill(l, t, l.media); !made) return made;
      lines = 2;
    }
    return truncation.wait_for_space(l, lines + 1);
  }
  void append_all(lane& l, const transaction& t) {
    lane_blocks& of = blocks_of(l);
    of.begin();
    STELE_ASSERT(of.has_room());
    if (l.reserved_bytes != 0) {
      const spilled_payload where = logs.stream_spill(l, l, t, new_word{});
      of.append({format::block_kind::spill, 0, where.words, where.offset});
      of.append({format::block_kind::spill_checksum, 0, where.checksum, 0});
      return;
    }
    for (const written_line& line : t.lines())
      for (unsigned w = next_word(line.mask, 0); w < 8; w = next_word(line.mask, w + 1))
        of.append_word({format::block_kind::data, line.word_mask(w),
                        line.words[w] & expand_mask(line.word_mask(w)), line.offset + 8 * w});
    append_checksum_deltas(l, t);
  }
  void append_checksum_deltas(lane& l, const transaction& t) {
    if (!sums_.logged()) return;
    const bool zero_deltas = planted<Media>(mutant::sums_blocks_weightless);
    sums_.for_each_delta(t, [&](std::uint64_t block, std::uint64_t weight) {
      blocks_of(l).append({format::block_kind::checksum_delta, 0, zero_deltas ? 0 : weight, block});
    });
  }
  // How many blocks must fit when the running transaction stores so many more words: their own
  // blocks, and at most one checksum delta for each block.
  std::uint64_t blocks_needed(const lane& l, std::uint64_t words) const noexcept {
    return words + (sums_.logged() && !planted<Media>(mutant::sums_weights_crowded)
                        ? blocks_of(l).blocks() + words
                        : 0);
  }

  void wait_for_blocks(lane& l, transaction& t, std::uint64_t words) {
    if (!blocks_of(l).has_room(blocks_needed(l, words))) [[unlikely]]
      wait_for_block_space(l, t, words);
  }
  void wait_for_block_space(lane& l, transaction& t, std::uint64_t words) {
    const lane_blocks& of = blocks_of(l);
    STELE_ASSERT(words != 0 && words <= 8);
    const std::uint64_t most = of.blocks() + blocks_needed(l, words);  // with an empty ring
    if (of.lines_used() >= l.log.capacity_lines() / 2 ||
        (most - 1) / format::blocks_per_line + 1 >= l.log.capacity_lines()) {
      t.exceeds_log = true;
      lose_attempt();
    }
    const auto made = exclude_wait([&]() -> result<> {
      while (!of.has_room(blocks_needed(l, words))) {
        truncation.truncate();
        if (medium_.state.poisoned.load()) return medium_.check();
        if (!of.has_room(blocks_needed(l, words))) medium_.state.await_announced(l.number);
      }
      return {};
    });
    if (!made) throw failure(made.error());
  }

  // Waiting for log space says nothing about the mode, so the choice does not count it.
  template <class Work>
  [[nodiscard]] result<> exclude_wait(Work&& work) {
    return mode_choice_ ? mode_choice_->exclude_time(work) : work();
  }

  // Steps S1 to S3 of docs/protocol/adaptive.md. Called by the log's owner between two
  // transactions.
  void switch_log_format(lane& l) {
    const auto is_empty = [&] {
      const auto alone = truncation.lock();  // other threads truncate too
      return l.log.head() == l.log.tail();
    };
    // S1: nothing above the watermark is left in the log
    while (!is_empty() && !planted<Media>(mutant::switch_no_truncate)) {
      truncation.truncate();
      if (medium_.state.poisoned.load()) return;
      if (!is_empty()) medium_.state.await_announced(l.number);
    }
    const auto alone = truncation.lock();
    STELE_ASSERT(base::holds(l.log.head() == l.log.tail()));  // S1
    const std::uint64_t old_form = l.flags();
    l.form = has_blocks(l) ? nullptr : &block_form;
    const std::uint64_t form = planted<Media>(mutant::switch_old_form) ? old_form : l.flags();
    if (planted<Media>(mutant::switch_head_first))
      logs.write_head(l, 0, form), medium_.control.fence();
    if (!planted<Media>(mutant::switch_no_zero))
      logs.zero(l, planted<Media>(mutant::switch_half_zeroed) ? l.log.capacity_lines() / 2
                                                              : l.log.capacity_lines());  // S2
    // S2: old content of one form could look as if it had been written in the other.
    STELE_ASSERT_WHOLE(base::holds(is_zero(l)));
    medium_.control.fence();      // zeroes are durable before the head that names the new format
    logs.write_head(l, 0, form);  // S3
    medium_.control.fence();      // the head is durable before the first record of the new format
    switches_.fetch_add(1, std::memory_order_relaxed);
  }

  [[maybe_unused]] static bool is_zero(const lane& l) {
    const std::span ring(l.log.bytes(), l.log.capacity_lines() * line_size);
    return std::ranges::all_of(ring, [](std::byte b) { return b == std::byte{0}; });
  }

  pool_medium<Media>& medium_;
  const storage::pool_file& file_;
  home_checksums<Media>& sums_;
  background_thread no_background_;  // never started

 public:
  log_lanes<Media> logs;
  home_writer<Media> home;
  log_truncation<Media> truncation;
  bulk_write_back<Media> write_back;

 private:
  const blurred_options options_;
  std::vector<lane_blocks> blocks_;  // of each lane
  std::optional<mode_choice> mode_choice_;
  std::vector<count> commit_counts_;
  std::atomic<std::uint64_t> switches_{0};
};

template <class Media>
using xil =
    execution_in_log<Media, blurred_variant{.volatile_checkpoint = false, .adaptive = false}>;
template <class Media>
using blurred =
    execution_in_log<Media, blurred_variant{.volatile_checkpoint = true, .adaptive = false}>;
template <class Media>
using adaptive =
    execution_in_log<Media, blurred_variant{.volatile_checkpoint = true, .adaptive = true}>;

}  // namespace stele::detail
