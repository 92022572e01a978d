// xil, vcbp, blurred, adaptive: execution in log and volatile checkpoint with bulk persistence, each alone, both, and whichever
// is better. Pages: docs/protocol/{xil,vcbp,blurred,adaptive}.md. Source: Lu, Shu and Sun, "Blurred Persistence" (2016).
//
//   xil       stores go to block records in the cache; commit: one fence for the log, one for home
//   vcbp      stores go to the write set; commit: a streamed record of lines, one fence; home volatile until bulk persistence
//   blurred   xil's log with vcbp's checkpoint: one fence
//   adaptive  blurred or vcbp, as the mode choice says; a log goes from one form to the other while it is empty
// No thread of its own: bulk persistence is done by the commit that finds its log full, as in the paper.
#pragma once

#include <tx/mechanism/bulk.h>
#include <tx/mechanism/mode_choice.h>

namespace stele::detail {

struct blurred_style {
  bool in_log, volatile_checkpoint, adaptive;
};

template <class Media>
class blurred_engine : public bulk_engine<Media> {
 public:
  using typename engine_on<Media>::lane;

  blurred_engine(pool_state& state, std::unique_ptr<typename Media::shared> shared, blurred_style style)
      : bulk_engine<Media>(state, std::move(shared), style.in_log ? log_kind::by_head : log_kind::torn_bit), style_(style), counted_(this->lanes_.size()) {}

  void set_up(const engine_tuning& tuning) override {
    bulk_engine<Media>::set_up(tuning);
    if (style_.adaptive) choice_.emplace(tuning.adaptive, tuning.media_latency_ns, Media::explores);
  }

  bool may_execute_in_log() const noexcept override { return style_.in_log; }

  bool begin(transaction& t) override {
    lane& l = this->lanes_[t.log()];
    if (choice_ && choice_->wants_blocks() != l.has_blocks) [[unlikely]]
      switch_form(l);
    if (!l.has_blocks || t.outgrown) return false;
    l.blocks.begin();
    return true;
  }

  format::log_block* store_in_log(transaction& t, format::log_block* at, std::uint64_t offset, std::uint64_t value, std::uint8_t mask) override {
    lane& l = this->lanes_[t.log()];
    const format::block_record r{format::block_kind::data, mask, value, offset};
    if (at != nullptr) {
      l.blocks.rewrite(at, r);
      return at;
    }
    if (!l.blocks.has_room(to_come(l))) [[unlikely]]
      make_block_room(l, t);
    return l.blocks.put(r);
  }

  void abort(transaction& t) noexcept override {
    lane& l = this->lanes_[t.log()];
    if (!l.blocks.any()) return;
    const std::lock_guard hold(l.spills_mutex);  // a truncation that sees the tail moved sees the hole
    const typename engine_on<Media>::hole aborted{l.blocks.first_line(), l.blocks.first_line() + l.blocks.lines_used() + 1};
    const bool noted = note_hole(l, aborted);
    l.blocks.abort();
    if (noted) return;
    this->flush_log(l.media, l, aborted);  // without memory to remember it for the truncation
    (void)this->settled(l);
  }

  [[nodiscard]] result<> prepare(transaction& t) override {
    lane& l = this->lanes_[t.log()];
    if (t.in_log()) return {};  // every block left room for what ends the transaction
    return timed([&] { return l.has_blocks ? prepare_blocks(l, t) : this->prepare_lines(l, t); });
  }

  bool commit(transaction& t, std::uint64_t txid) override {
    lane& l = this->lanes_[t.log()];
    const bool kept = l.has_blocks ? commit_blocks(l, t, txid) : this->commit_lines(l, t, txid, [] {});
    if (choice_ && ++counted_[t.log()].commits == choice_->batch()) [[unlikely]] {
      counted_[t.log()].commits = 0;
      choice_->committed(choice_->batch());
    }
    return kept;
  }

  engine_totals totals() const noexcept override {
    engine_totals t = bulk_engine<Media>::totals();
    t.mode_switches = switches_.load(std::memory_order_relaxed);
    if (choice_) t.mode = choice_->wants_blocks() ? "blurred" : "vcbp";
    return t;
  }

 private:
  struct alignas(64) count {
    std::uint64_t commits = 0;
  };

  bool begins_with_blocks() const noexcept override { return style_.in_log && (!choice_ || choice_->wants_blocks()); }
  bool home_is_durable() const noexcept override { return !style_.volatile_checkpoint; }

  static bool note_hole(lane& l, const typename engine_on<Media>::hole& h) noexcept {
    try {
      l.holes.push_back(h);
      return true;
    } catch (const std::bad_alloc&) {
      return false;
    }
  }

  // The commit of docs/protocol/blurred.md; xil adds 5 and 6.
  bool commit_blocks(lane& l, transaction& t, std::uint64_t txid) {
    using base::mutant;
    using base::planted;
    t.in_log() ? put_weights(l, t) : put_all(l, t);
    if (planted<Media>(mutant::xil_home_first)) store_home_of(l, t, false);
    l.blocks.commit(txid);                                                                // 1, 2
    if (!planted<Media>(mutant::xil_no_log_fence) && !this->settled(l)) return false;     // 3: the log is durable before home changes
    t.begin_home();
    store_home_of(l, t, !style_.volatile_checkpoint);                                     // 4, 5
    if (!style_.volatile_checkpoint && !planted<Media>(mutant::xil_no_data_fence) && !this->settled(l)) return false;  // 6: home, before the log may be cut
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
      if (flushes && !(i + 1 == lines.size() && base::planted<Media>(base::mutant::xil_last_home_line))) l.media.flush(this->state_.file.at(lines[i].offset), line_size);
    }
  }

  // A transaction that ran in the write set: it outgrew the log once, or its log's form has changed.
  static std::uint64_t words_stored(const transaction& t) {
    std::uint64_t words = 0;
    for (const written_line& line : t.lines()) words += static_cast<unsigned>(std::popcount(stored_words(line.mask)));
    return words;
  }
  [[nodiscard]] result<> prepare_blocks(lane& l, transaction& t) {
    this->drop_reserved(l);
    std::uint64_t lines = (words_stored(t) + (this->weighs_ ? this->stretches_of(t) : 0)) / format::blocks_per_line + 2;
    if (lines >= l.log.lines()) {
      if (auto made = this->make_spill(l, t, l.media); !made) return made;
      lines = 2;
    }
    return this->make_room(l, lines + 1);
  }
  void put_all(lane& l, const transaction& t) {
    l.blocks.begin();
    if (l.reserved_bytes != 0) {
      const spilled_payload where = this->stream_spill(l, l, t, this->new_value);
      l.blocks.put({format::block_kind::spill, 0, where.words, where.offset});
      l.blocks.put({format::block_kind::spill_checksum, 0, where.checksum, 0});
      return;
    }
    for (const written_line& line : t.lines())
      for (unsigned w = next_word(line.mask, 0); w < 8; w = next_word(line.mask, w + 1))
        l.blocks.put({format::block_kind::data, line.word_mask(w), line.words[w] & spread(line.word_mask(w)), line.offset + 8 * w});
    put_weights(l, t);
  }
  void put_weights(lane& l, const transaction& t) {
    if (!this->weighs_) return;
    const bool weightless = base::planted<Media>(base::mutant::sums_blocks_weightless);
    this->for_each_weight(t, [&](std::uint64_t block, std::uint64_t weight) { l.blocks.put({format::block_kind::weight, 0, weightless ? 0 : weight, block}); });
  }
  // Records of the running transaction that need room when it stores one more word: that one, and a weight for each at most.
  std::uint64_t to_come(const lane& l) const noexcept {
    return 1 + (this->weighs_ && !base::planted<Media>(base::mutant::sums_weights_crowded) ? l.blocks.records() + 1 : 0);
  }

  void make_block_room(lane& l, transaction& t) {
    if (l.blocks.lines_used() >= l.log.lines() / 2) {
      t.outgrown = true;
      throw restart{};
    }
    const auto made = timed([&]() -> result<> {
      while (!l.blocks.has_room(to_come(l))) {
        this->truncate();
        if (this->state_.poisoned.load()) return this->check_medium();
        if (!l.blocks.has_room(to_come(l))) this->state_.await_announced(l.number);
      }
      return {};
    });
    if (!made) throw failure(made.error());
  }

  // Waiting for room is not the mode's fault: the choice does not count it.
  template <class Work>
  [[nodiscard]] result<> timed(Work&& work) {
    return choice_ ? choice_->leaving_out(work) : work();
  }

  // Steps S1 to S3 of docs/protocol/adaptive.md, by the log's owner between two transactions.
  void switch_form(lane& l) {
    using base::mutant;
    using base::planted;
    const auto is_empty = [&] {
      const auto alone = this->hold_truncation();  // others truncate too
      return l.log.head() == l.log.tail();
    };
    while (!is_empty() && !planted<Media>(mutant::switch_no_truncate)) {  // S1: nothing above the watermark is left in it
      this->truncate();
      if (this->state_.poisoned.load()) return;
      if (!is_empty()) this->state_.await_announced(l.number);
    }
    const auto alone = this->hold_truncation();
    const std::uint64_t old_form = l.flags();
    l.has_blocks = !l.has_blocks;
    const std::uint64_t form = planted<Media>(mutant::switch_old_form) ? old_form : l.flags();
    if (planted<Media>(mutant::switch_head_first)) this->write_head(l, 0, form), this->control_.fence();
    if (!planted<Media>(mutant::switch_no_zero)) this->zero(l, planted<Media>(mutant::switch_half_zeroed) ? l.log.lines() / 2 : l.log.lines());  // S2
    if (!planted<Media>(mutant::switch_no_zero_fence)) this->control_.fence();  // zeroes before the head that has them read in the new form
    this->write_head(l, 0, form);                                              // S3
    if (!planted<Media>(mutant::switch_no_head_fence)) this->control_.fence();  // the head before the first record of the new form
    switches_.fetch_add(1, std::memory_order_relaxed);
  }

  const blurred_style style_;
  std::optional<mode_choice> choice_;
  std::vector<count> counted_;
  std::atomic<std::uint64_t> switches_{0};
};

template <class Media, blurred_style style>
struct blurred_as final : blurred_engine<Media> {
  blurred_as(pool_state& state, std::unique_ptr<typename Media::shared> shared) : blurred_engine<Media>(state, std::move(shared), style) {}
};
template <class Media>
using xil = blurred_as<Media, blurred_style{.in_log = true, .volatile_checkpoint = false, .adaptive = false}>;
template <class Media>
using vcbp = blurred_as<Media, blurred_style{.in_log = false, .volatile_checkpoint = true, .adaptive = false}>;
template <class Media>
using blurred = blurred_as<Media, blurred_style{.in_log = true, .volatile_checkpoint = true, .adaptive = false}>;
template <class Media>
using adaptive = blurred_as<Media, blurred_style{.in_log = true, .volatile_checkpoint = true, .adaptive = true}>;

}  // namespace stele::detail
