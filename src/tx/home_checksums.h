// The block checksums of home in an open pool: who keeps them true, and when. Page:
// docs/protocol/sums.md, steps S1 to S7.
//
// A mechanism that stores home in its commits adds the deltas there (in_commit); one with a
// volatile checkpoint logs the terms of the old words, and its truncation adds the deltas
// (at_truncation); any other leaves checksums that do not count until the pool is closed (none).
#pragma once

#include <base/assert.h>
#include <base/check.h>
#include <base/mutant.h>
#include <pool/block_checksums.h>
#include <tx/log/checksum_deltas.h>
#include <tx/log/line_set.h>
#include <tx/pool_medium.h>
#include <tx/transaction.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <source_location>
#include <span>
#include <utility>

namespace stele::detail {

enum class checksum_upkeep : std::uint8_t { none, in_commit, at_truncation };

template <class Media>
class home_checksums {
 public:
  using state = format::block_checksum_state;
  using mutant = base::mutant;

  home_checksums(pool_medium<Media>& medium, checksum_upkeep upkeep)
      : medium_(medium),
        blocks_(medium.state.file),
        logged_(blocks_.present() && upkeep == checksum_upkeep::at_truncation),
        in_commit_(blocks_.present() && upkeep == checksum_upkeep::in_commit) {}

  bool logged() const noexcept { return logged_; }  // records hold the terms of the old words
  bool kept() const noexcept { return (logged_ || in_commit_) && !abandoned_; }
  const storage::block_checksums& blocks() const noexcept { return blocks_; }

  // --- of a session ---

  // S1: checksums that are not valid are recomputed, if this mechanism keeps them. S2: otherwise
  // they do not count in this session. fresh: the pool has never been open. home_changes: the
  // session begins with stores to home that are not in the checksums. `change_home` makes them.
  template <class ChangeHome>
  [[nodiscard]] result<> begin_session(bool never_open, bool home_changes,
                                       ChangeHome&& change_home) {
    const auto now = blocks_.state();
    if (!now) return std::unexpected(now.error());
    const bool stay = *now == state::valid && kept() && !home_changes;
    if (blocks_.present() && *now != state::none && !stay) {
      write_state(state::none);
      medium_.control.fence();  // checksums are durably `none` before home changes without them
    }
    STELE_ASSERT_ALWAYS(!kept() || blocks_.present());
    if (stay) forget_wrong_checksums();  // S1
    if (medium_.control.failed()) return medium_.check();
    if (home_changes) change_home();
    return kept() && !stay ? compute_all(*now == state::legacy && never_open) : result<>{};
  }
  // S5. Precondition: home is durable and no thread changes it any more.
  [[nodiscard]] result<> end_session() {
    return blocks_.present() && !kept() ? compute_all(false) : result<>{};
  }
  // Without memory for the deltas, this session's checksums do not count; the end of the session
  // recomputes them.
  void abandon() {
    STELE_ASSERT(logged_ || in_commit_);
    if (std::exchange(abandoned_, true)) return;
    write_state(state::none);
    medium_.control.fence();  // the state is durable before home changes without checksums
  }

  // --- at truncation and in recovery ---

  void write_state(state s) {
    medium_.write_word(format::block_checksum_state_offset, static_cast<std::uint64_t>(s));
  }
  // Until the state is `valid` again, a block that a record above the watermark names may have its
  // checksum from before the record or from after it.
  void mark_moving(const std::source_location& at = std::source_location::current()) {
    STELE_ASSERT(blocks_.present() && !abandoned_);  // S3, S4
    if (base::planted_at<Media>(at)) return;
    write_state(state::updating);
    medium_.control.fence();  // the state word is durable before the first checksum changes
  }
  // S3, S4: applies the deltas of records; durable after the control medium's next fence.
  // Precondition: mark_moving(). at_rest: no thread stores to home.
  void apply(const checksum_deltas& changes, bool at_rest = false) {
    STELE_ASSERT(blocks_.present());
    std::size_t left = blocks_left_out();
    changes.for_each([&](std::uint64_t block, checksum_deltas::delta c) {
      STELE_ASSERT(block == blocks_.block_of(block) && block < medium_.state.file.header().size);
      if (left != 0) return void(--left);
      base::check(c.known || at_rest, "a log record of this session does not say what it changes");
      const bool has_delta =
          c.known && !(at_rest && blocks_.stored(block) == format::block_checksum_unknown);
      // A block is recomputed only while no thread stores to it.
      has_delta ? blocks_.apply_delta(medium_.control, block, c.amount)
                : blocks_.recompute(medium_.control, block);
    });
  }
  // Computes an unknown checksum, unless a commit may be storing to the block meanwhile. `through`:
  // all commits up to this TxID have stored home.
  void compute_unknown(std::uint64_t block, std::uint64_t through) {
    STELE_ASSERT(through <= medium_.state.clock.load(std::memory_order_relaxed));
    if (blocks_.stored(block) != format::block_checksum_unknown ||
        medium_.state.clock.load() != through)
      return;
    const std::uint64_t sum = blocks_.compute(block);
    if (medium_.state.clock.load() == through) blocks_.set(medium_.control, block, sum);
  }
  // S3, S4 for records without deltas: recomputes the checksums of the blocks of these lines;
  // durable after the control medium's next fence. Without memory for the set of blocks, a block
  // may be recomputed more than once.
  void recompute(std::span<const std::uint64_t> lines, state now) noexcept {
    if (!blocks_.present() || now == state::none) return;
    const auto renew = [&](std::uint64_t block) {
      now == state::legacy ? blocks_.recompute_legacy(medium_.control, block)
                           : blocks_.recompute(medium_.control, block);
    };
    line_set done;
    for (std::uint64_t line : lines)
      if (!done.try_add(blocks_.block_of(line))) renew(blocks_.block_of(line));
    const auto all = done.all();
    for (std::uint64_t block : all.first(all.size() - std::min(all.size(), blocks_left_out())))
      renew(block);
  }

  // --- in commits ---

  // S7. `old` and `now` return the words of a line. A line lock does not cover the checksum:
  // commits to other lines of the block add to it too, so a mutex does.
  class commit_sum {
   public:
    commit_sum(home_checksums& sums, Media& media, const transaction& t)
        : sums_(sums), media_(media), t_(t) {}
    // Called for each line of t, in order, before the line is stored home.
    void before_store(const written_line& line) {
      if (!sums_.in_commit_) return;
      STELE_ASSERT(line.offset >= sums_.medium_.state.file.header().home_offset);
      by_ += delta_of(line, word_of_line{}) - delta_of(line, sums_.home_words(t_));
    }
    // next: the line after it; null: this is the last one.
    void after_store(const written_line& line, const written_line* next) {
      if (sums_.in_commit_ && (next == nullptr || block_of(*next) != block_of(line)))
        sums_.add(media_, block_of(line), std::exchange(by_, 0));
    }

   private:
    home_checksums& sums_;
    Media& media_;
    const transaction& t_;
    std::uint64_t by_ = 0;
  };

  // Written after the runs of a record: for each segment of them in one block, the checksum terms
  // of the old words.
  template <class Writer>
  [[gnu::noinline]] void write_deltas(const transaction& t, Writer& out) const {
    // left: words that have no head yet; to_come: words that the last head announces.
    std::uint64_t left = delta_count(t), to_come = 0;
    for_each_delta(t, [&](std::uint64_t, std::uint64_t terms) {
      if (to_come == 0) {
        to_come = std::min<std::uint64_t>(left, format::max_run_words);
        left -= to_come;
        out.append_word(format::run_header{0, 0, static_cast<std::uint32_t>(to_come)}.pack());
      }
      out.append_word(terms);
      --to_come;
    });
    STELE_ASSERT(left == 0 && to_come == 0);  // format/log.md: as many words as the heads say
  }
  // The number of segments: neighbours in the list of t's lines that lie in one block.
  static std::uint64_t delta_count(const transaction& t) {
    const auto lines = t.lines();
    std::uint64_t segments = 0;
    for (std::size_t i = 0; i < lines.size(); ++i)
      segments += i == 0 || block_of(lines[i]) != block_of(lines[i - 1]) ? 1 : 0;
    return segments;
  }
  // Calls each(block, sum of the checksum terms of the old words) for each segment.
  template <class Each>
  void for_each_delta(const transaction& t, Each&& each) const {
    const auto lines = t.lines();
    std::uint64_t terms = 0;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      terms += delta_of(lines[i], home_words(t));
      if (i + 1 == lines.size() || block_of(lines[i + 1]) != block_of(lines[i]))
        each(block_of(lines[i]), std::exchange(terms, 0));
    }
  }

  // --- of chunks that hold a spilled record ---

  // S6: before the record is written to free chunks, their checksums become `unknown`, and durably
  // so. When the chunks are free again, recompute_unknown(). False: the medium failed.
  bool invalidate(Media& media, std::uint64_t offset, std::uint64_t bytes) {
    STELE_ASSERT(bytes != 0 && offset >= medium_.state.file.header().chunks_offset);
    if ((!logged_ && !in_commit_) || planted<Media>(mutant::sums_spill_kept)) return true;
    blocks_.invalidate(media, offset, bytes);
    return medium_.fence_ok(media);
  }
  void recompute_unknown(Media& media, std::uint64_t offset, std::uint64_t bytes) {
    if (!logged_ && !in_commit_) return;
    STELE_ASSERT(bytes != 0 && offset == blocks_.block_of(offset));
    for (std::uint64_t block = blocks_.block_of(offset); block < offset + bytes;
         block += format::checksum_block_size)
      if (blocks_.stored(block) == format::block_checksum_unknown)
        // Others are valid and stay: records above the watermark may name their blocks.
        blocks_.recompute(media, block);
  }

 private:
  // Of the blocks to renew, how many a mutant leaves out.
  static std::size_t blocks_left_out() noexcept {
    if (planted<Media>(mutant::sums_not_renewed)) return ~std::size_t{0};
    return planted<Media>(mutant::sums_last_block) ? 1 : 0;
  }
  static std::uint64_t block_of(const written_line& line) noexcept {
    return line.offset / format::checksum_block_size * format::checksum_block_size;
  }
  struct word_of_line {
    std::uint64_t operator()(const written_line& line, unsigned w) const noexcept {
      return line.words[w];
    }
  };
  // The words that the transaction replaces, with the values of deferred commits before it.
  auto home_words(const transaction& t) const {
    return [&file = medium_.state.file, &t](const written_line& line, unsigned w) {
      const std::uint64_t offset = line.offset + 8 * w;
      return t.read_through_overlay(
          offset, __atomic_load_n(reinterpret_cast<const std::uint64_t*>(file.at(offset)),
                                  __ATOMIC_RELAXED));
    };
  }
  template <class WordOf>
  static std::uint64_t delta_of(const written_line& line, WordOf&& word_of) {
    std::uint64_t sum = 0;
    for (unsigned left = stored_words(line.mask); left != 0; left &= left - 1) {
      const auto w = static_cast<unsigned>(std::countr_zero(left));
      sum += format::checksum_term(word_of(line, w) & expand_mask(line.word_mask(w)),
                                   line.offset + 8 * w);
    }
    return sum;
  }
  void add(Media& media, std::uint64_t block, std::uint64_t by) {
    if (by == 0 || planted<Media>(mutant::sums_not_counted)) return;
    STELE_ASSERT(in_commit_ && blocks_.has_checksum(block));  // S7
    const std::lock_guard one(mutexes_[block / format::checksum_block_size % std::size(mutexes_)]);
    blocks_.apply_delta(media, block, by);
  }
  // In a pool that has grown twice by an older program, free blocks of the first tail may hold a
  // former table and count as never written. They become `unknown` before they are in use again.
  void forget_wrong_checksums() {
    const auto tail = blocks_.first_tail();
    const auto& h = medium_.state.file.header();
    bool changed = false;
    for (std::uint64_t block = tail.first; block < tail.end; block += format::checksum_block_size) {
      const auto chunk = medium_.state.heap.descriptor((block - h.chunks_offset) >> h.chunk_shift);
      if (!chunk || chunk->kind != format::chunk_kind::free ||
          blocks_.stored(block) != format::block_checksum_never_written ||
          blocks_.compute(block) == format::zero_block_checksum(h.id, block))
        continue;
      blocks_.set(medium_.control, block, format::block_checksum_unknown);
      changed = true;
    }
    if (changed) medium_.control.fence();  // they are unknown before a commit stores there
  }
  // In a fresh pool free space is zero, as its checksums say: they stay.
  [[nodiscard]] result<> compute_all(bool fresh) {
    const bool stay = fresh || planted(mutant::sums_free_stay);
    if (auto made = blocks_.recompute_all(medium_.control, medium_.state.heap, stay); !made)
      return made;
    medium_.control.fence();  // checksums are durable before they count
    write_state(state::valid);
    return {};
  }

  pool_medium<Media>& medium_;
  storage::block_checksums blocks_;
  const bool logged_, in_commit_;
  bool abandoned_ = false;  // under the truncation's mutex
  std::array<std::mutex, 16> mutexes_;
};

}  // namespace stele::detail
