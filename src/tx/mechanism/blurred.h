// xil, vcbp, blurred, adaptive: execution in log, volatile checkpoint with bulk persistence, both,
// and whichever is better. Pages: docs/protocol/{xil,vcbp,blurred,adaptive}.md. Source: Lu, Shu and
// Sun, "Blurred Persistence" (2016).
//
// - xil: stores go to block records in the cache. Commit: one fence for the log, one for home.
// - vcbp: stores go to the write set. Commit: a streamed record of lines and one fence. Home is
//   volatile until bulk persistence.
// - blurred: xil's log with vcbp's checkpoint; one fence.
// - adaptive: blurred or vcbp, as the mode choice says. A log changes its format while it is empty.
//
// There is no background thread: the commit that finds its log full does the bulk persistence, as
// in the paper.
#pragma once

#include <stele/adaptive_options.h>
#include <tx/mechanism/bulk.h>
#include <tx/mechanism/mode_choice.h>

namespace stele::detail {

struct blurred_variant {
  bool in_log, volatile_checkpoint, adaptive;
};

template <class Media>
class blurred_engine : public bulk_engine<Media> {
 public:
  using typename lane_engine<Media>::lane;

  blurred_engine(pool_state& state, std::unique_ptr<typename Media::shared> shared,
                 blurred_variant variant)
      : bulk_engine<Media>(state, std::move(shared),
                           variant.in_log ? log_kind::lines_or_blocks : log_kind::torn_bit),
        variant_(variant),
        commit_counts_(this->lanes_.size()) {}

  void set_up(const engine_tuning& tuning) override {
    bulk_engine<Media>::set_up(tuning);
    if (variant_.adaptive)
      mode_choice_.emplace(tuning.of_mechanism.get<adaptive_options>(), tuning.media_latency_ns,
                           Media::under_exploration);
  }

  bool may_execute_in_log() const noexcept override { return variant_.in_log; }

  bool begin(transaction& t) override {
    lane& l = this->lanes_[t.log()];
    if (mode_choice_ && mode_choice_->wants_blocks() != l.has_blocks) [[unlikely]]
      switch_log_format(l);
    if (!l.has_blocks || t.exceeds_log) return false;
    l.blocks.begin();
    return true;
  }

  format::log_block* store_in_log(transaction& t, format::log_block* at, std::uint64_t offset,
                                  std::uint64_t value, std::uint8_t mask) override {
    lane& l = this->lanes_[t.log()];
    const format::block_record r{format::block_kind::data, mask, value, offset};
    if (at != nullptr) {
      l.blocks.rewrite(at, r);
      return at;
    }
    if (!l.blocks.has_room(blocks_needed(l))) [[unlikely]]
      wait_for_block_space(l, t);
    return l.blocks.append(r);
  }

  void abort(transaction& t) noexcept override {
    lane& l = this->lanes_[t.log()];
    if (!l.blocks.has_records()) return;
    // A truncation that sees the moved tail also sees the aborted range.
    const std::lock_guard hold(l.spills_mutex);
    const typename lane_engine<Media>::aborted_range aborted{
        l.blocks.first_line(), l.blocks.first_line() + l.blocks.lines_used() + 1};
    const bool noted = record_aborted_range(l, aborted);
    l.blocks.abort();
    if (noted) return;
    this->flush_log_lines(l.media, l, aborted);  // no memory to leave it to truncation
    (void)this->fence_ok(l);
  }

  [[nodiscard]] result<> reserve_log(transaction& t) override {
    lane& l = this->lanes_[t.log()];
    if (t.in_log()) return {};  // each block left room for the records that end the transaction
    return exclude_wait(
        [&] { return l.has_blocks ? prepare_blocks(l, t) : this->prepare_lines(l, t); });
  }

  bool commit(transaction& t, std::uint64_t txid) override {
    lane& l = this->lanes_[t.log()];
    const bool kept =
        l.has_blocks ? commit_blocks(l, t, txid) : this->commit_lines(l, t, txid, [] {});
    if (mode_choice_ && ++commit_counts_[t.log()].commits == mode_choice_->batch()) [[unlikely]] {
      commit_counts_[t.log()].commits = 0;
      mode_choice_->committed(mode_choice_->batch());
    }
    return kept;
  }

  engine_totals totals() const noexcept override {
    engine_totals t = bulk_engine<Media>::totals();
    if (mode_choice_)
      t.of_mechanism.add("mode_switches", switches_.load(std::memory_order_relaxed));
    if (mode_choice_) t.mode = mode_choice_->wants_blocks() ? "blurred" : "vcbp";
    return t;
  }

 private:
  struct alignas(64) count {
    std::uint64_t commits = 0;
  };

  bool begins_with_blocks() const noexcept override {
    return variant_.in_log && (!mode_choice_ || mode_choice_->wants_blocks());
  }
  bool commits_flush_home() const noexcept override { return !variant_.volatile_checkpoint; }

  static bool record_aborted_range(lane& l,
                                   const typename lane_engine<Media>::aborted_range& h) noexcept {
    try {
      l.aborted_ranges.push_back(h);
      return true;
    } catch (const std::bad_alloc&) {
      return false;
    }
  }

  // The commit of docs/protocol/blurred.md; xil adds steps 5 and 6.
  bool commit_blocks(lane& l, transaction& t, std::uint64_t txid) {
    using base::mutant;
    using base::planted;
    t.in_log() ? append_checksum_deltas(l, t) : append_all(l, t);
    if (planted<Media>(mutant::xil_home_first)) store_home_of(l, t, false);
    l.blocks.commit(txid);  // 1, 2
    if (!planted<Media>(mutant::xil_no_log_fence) && !this->fence_ok(l))
      return false;  // 3: the log is durable before home changes
    t.begin_home_stores();
    store_home_of(l, t, !variant_.volatile_checkpoint);  // 4, 5
    if (!variant_.volatile_checkpoint && !planted<Media>(mutant::xil_no_data_fence) &&
        !this->fence_ok(l))
      return false;  // 6: home is durable before the log may be truncated
    l.blocks.publish();
    return true;
  }

  void store_home_of(lane& l, const transaction& t, bool flushes) {
    const auto lines = t.lines();
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (!t.in_log()) {
        this->store_home(l.media, this->state_.file, lines[i]);
      } else {
        std::byte* const home = this->state_.file.at(lines[i].offset);
        for (unsigned w = next_word(lines[i].mask, 0); w < 8; w = next_word(lines[i].mask, w + 1)) {
          const std::uint64_t word = t.value(lines[i], w);
          this->store_word_home(l.media, home + 8 * w, &word, lines[i].word_mask(w));
        }
      }
      if (flushes &&
          !(i + 1 == lines.size() && base::planted<Media>(base::mutant::xil_last_home_line)))
        l.media.flush(this->state_.file.at(lines[i].offset), line_size);
    }
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
    this->release_reserved(l);
    std::uint64_t lines =
        (words_stored(t) + (this->logs_checksum_deltas_ ? this->checksum_delta_count(t) : 0)) /
            format::blocks_per_line +
        2;
    if (lines >= l.log.capacity_lines()) {
      if (auto made = this->reserve_spill_chunks(l, t, l.media); !made) return made;
      lines = 2;
    }
    return this->wait_for_log_space(l, lines + 1);
  }
  void append_all(lane& l, const transaction& t) {
    l.blocks.begin();
    if (l.reserved_bytes != 0) {
      const spilled_payload where = this->stream_spill(l, l, t, this->new_value);
      l.blocks.append({format::block_kind::spill, 0, where.words, where.offset});
      l.blocks.append({format::block_kind::spill_checksum, 0, where.checksum, 0});
      return;
    }
    for (const written_line& line : t.lines())
      for (unsigned w = next_word(line.mask, 0); w < 8; w = next_word(line.mask, w + 1))
        l.blocks.append({format::block_kind::data, line.word_mask(w),
                         line.words[w] & expand_mask(line.word_mask(w)), line.offset + 8 * w});
    append_checksum_deltas(l, t);
  }
  void append_checksum_deltas(lane& l, const transaction& t) {
    if (!this->logs_checksum_deltas_) return;
    const bool zero_deltas = base::planted<Media>(base::mutant::sums_blocks_weightless);
    this->for_each_checksum_delta(t, [&](std::uint64_t block, std::uint64_t weight) {
      l.blocks.append({format::block_kind::checksum_delta, 0, zero_deltas ? 0 : weight, block});
    });
  }
  // How many blocks must fit when the running transaction stores one more word: the word's own
  // block, and at most one checksum delta for each block.
  std::uint64_t blocks_needed(const lane& l) const noexcept {
    return 1 +
           (this->logs_checksum_deltas_ && !base::planted<Media>(base::mutant::sums_weights_crowded)
                ? l.blocks.records() + 1
                : 0);
  }

  void wait_for_block_space(lane& l, transaction& t) {
    if (l.blocks.lines_used() >= l.log.capacity_lines() / 2) {
      t.exceeds_log = true;
      throw restart{};
    }
    const auto made = exclude_wait([&]() -> result<> {
      while (!l.blocks.has_room(blocks_needed(l))) {
        this->truncate();
        if (this->state_.poisoned.load()) return this->check_medium();
        if (!l.blocks.has_room(blocks_needed(l))) this->state_.await_announced(l.number);
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
    using base::mutant;
    using base::planted;
    const auto is_empty = [&] {
      const auto alone = this->lock_truncation();  // other threads truncate too
      return l.log.head() == l.log.tail();
    };
    // S1: nothing above the watermark is left in the log
    while (!is_empty() && !planted<Media>(mutant::switch_no_truncate)) {
      this->truncate();
      if (this->state_.poisoned.load()) return;
      if (!is_empty()) this->state_.await_announced(l.number);
    }
    const auto alone = this->lock_truncation();
    const std::uint64_t old_form = l.flags();
    l.has_blocks = !l.has_blocks;
    const std::uint64_t form = planted<Media>(mutant::switch_old_form) ? old_form : l.flags();
    if (planted<Media>(mutant::switch_head_first))
      this->write_head(l, 0, form), this->control_.fence();
    if (!planted<Media>(mutant::switch_no_zero))
      this->zero_log(l, planted<Media>(mutant::switch_half_zeroed) ? l.log.capacity_lines() / 2
                                                                   : l.log.capacity_lines());  // S2
    if (!planted<Media>(mutant::switch_no_zero_fence))
      this->control_.fence();      // zeroes are durable before the head that names the new format
    this->write_head(l, 0, form);  // S3
    if (!planted<Media>(mutant::switch_no_head_fence))
      this->control_.fence();  // the head is durable before the first record of the new format
    switches_.fetch_add(1, std::memory_order_relaxed);
  }

  const blurred_variant variant_;
  std::optional<mode_choice> mode_choice_;
  std::vector<count> commit_counts_;
  std::atomic<std::uint64_t> switches_{0};
};

template <class Media, blurred_variant variant>
struct blurred_as final : blurred_engine<Media> {
  blurred_as(pool_state& state, std::unique_ptr<typename Media::shared> shared)
      : blurred_engine<Media>(state, std::move(shared), variant) {}
};
template <class Media>
using xil = blurred_as<Media, blurred_variant{
                                  .in_log = true, .volatile_checkpoint = false, .adaptive = false}>;
template <class Media>
using vcbp =
    blurred_as<Media,
               blurred_variant{.in_log = false, .volatile_checkpoint = true, .adaptive = false}>;
template <class Media>
using blurred =
    blurred_as<Media,
               blurred_variant{.in_log = true, .volatile_checkpoint = true, .adaptive = false}>;
template <class Media>
using adaptive =
    blurred_as<Media,
               blurred_variant{.in_log = true, .volatile_checkpoint = true, .adaptive = true}>;

}  // namespace stele::detail
