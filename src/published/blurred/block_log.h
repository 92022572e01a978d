// The writing side of a block log: a running transaction stores its records in place in its ring
// (execution in log). Page: docs/format/blocks.md. Source: Lu, Shu and Sun, "Blurred Persistence"
// (2016), sections 3.2 and 4.2.1; runs are ours.
//
// A transaction begins on a fresh line and its last line is padded, so a line belongs to one
// transaction and every word of a lap is written. A record may be stored many times before the
// commit. Nothing is flushed before the commit. Lines of an aborted transaction stay in the cache;
// those not evicted are missing on media (an aborted range). Only the owner thread calls these
// functions.
#pragma once

#include <base/assert.h>
#include <base/checksum.h>
#include <format/log_block.h>
#include <published/blurred/block_records.h>
#include <published/mutant.h>
#include <tx/log/ring.h>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

namespace stele::detail {

template <class Media>
class alignas(64) block_log {  // used by one thread
 public:
  block_log(Media& media, ring<Media>& r, std::uint64_t pool_id)
      : media_(media), ring_(r), pool_id_(pool_id) {}

  // runs: adjacent words share a record. abort_interval: blocks, a multiple of blocks_per_line, at
  // most max_abort_interval. Between transactions.
  void configure(bool runs, std::uint64_t abort_interval) noexcept {
    runs_ = runs;
    abort_interval_ = abort_interval;
  }

  // Begins a transaction: its first record goes to the line after the last transaction.
  void begin() noexcept {
    first_line_ = ring_.tail();
    next_ = first_line_ * format::blocks_per_line;
    first_ = at_ = block(next_);
    first_sense_ = sense_ = (first_line_ / ring_.capacity_lines() & 1) == 0;
    run_ = nullptr;
    // xil.md, E1: the torn bits of the first line are those of its lap.
    STELE_ASSERT(block_in_line(first_) == 0 && sense_ == (next_ / ring_blocks() % 2 == 0));
  }
  bool has_records() const noexcept { return blocks() != 0; }
  // Of the running transaction.
  std::uint64_t blocks() const noexcept { return next_ - first_line_ * format::blocks_per_line; }
  std::uint64_t lines_used() const noexcept {
    return (next_ + format::blocks_per_line - 1) / format::blocks_per_line - first_line_;
  }
  // Whether `more` records fit and leave a line for the records that end the transaction.
  bool has_room(std::uint64_t more = 1) const noexcept {
    return (next_ + more - 1) / format::blocks_per_line - ring_.tail() + 1 < ring_.free_lines();
  }

  // Appends a record to the log. Precondition: has_room().
  format::log_block* append(const format::block_record& r) {
    end_run();
    return append_block(r);
  }
  // Appends a data record, or its word to the run before it. Precondition: has_room().
  format::log_place append_word(const format::block_record& r) {
    format::log_place at = 0;
    if (r.mask == 0xFF)
      append_words(r.address, {&r.data, 1}, &at);
    else
      at = format::place_of(append(r));
    return at;
  }
  // The same for whole words from an address on. `places` get where they are. Precondition:
  // has_room(words.size()).
  void append_words(std::uint64_t address, std::span<const std::uint64_t> words,
                    format::log_place* places) {
    while (!words.empty()) {
      std::uint64_t taken = run_ != nullptr && address == run_end_
                                ? std::min<std::uint64_t>(run_room(), words.size())
                                : 0;
      if (taken != 0) {
        STELE_ASSERT(runs_);
        extend_run(words.first(taken), places);
      } else {
        format::log_block* const at = append({format::block_kind::data, 0xFF, words[0], address});
        *places = format::place_of(at);
        taken = 1;
        if (runs_) run_ = at, run_end_ = address + 8, further_ = 0;
      }
      words = words.subspan(taken);
      places += taken;
      address += 8 * taken;
    }
  }
  // Stores a word of the running transaction again. Its mask may have gained bytes.
  void rewrite(format::log_place where, const format::block_record& r) {
    const format::placed_word w(where);
    STELE_ASSERT(r.kind == format::block_kind::data && is_own(w.head));
    const bool sense = sense_of(w.head);
    if (!format::is_run(w.head->metadata) ||
        planted<Media>(published::mutant::xil_run_head_rewritten))
      return rewrite_record(w.head, r, sense);
    // xil.md, E3r: the words of a run are whole, and the head counts this one.
    STELE_ASSERT(r.mask == 0xFF && w.number <= format::further_words(w.head->metadata));
    std::uint64_t metadata = w.head->metadata;
    const std::uint64_t displaced = w.number == 0 ? 2 : format::displaced_mask(w.number);
    metadata = (metadata & ~displaced) | (format::displaced_bit(r.data, w.place) ? displaced : 0);
    if (metadata != w.head->metadata) store_word(&w.head->metadata, metadata);
    store_word(w.word, format::seal_further(r.data, w.place, sense));
  }

  // Ends the transaction with its commit record and flushes all log lines that recovery needs to
  // find it. Durable after the next fence; then the ring is published.
  void commit(std::uint64_t txid) {
    STELE_ASSERT(txid != 0 && checked_room());
    end_run();
    const bool columns = blocks() > format::blocks_for_columns;
    append_block({columns ? format::block_kind::commit_by_columns : format::block_kind::commit, 0,
                  txid, checksum(columns) >> 16});
    pad_line();
    const std::uint64_t end = next_ / format::blocks_per_line;
    // The page's flush is of whole lines, which are this transaction's alone.
    STELE_ASSERT(end * format::blocks_per_line == next_ && end > first_line_ &&
                 end - first_line_ <= ring_.capacity_lines());
    ring_.set_appended_end(end);
    const std::byte* at = reinterpret_cast<const std::byte*>(first_);
    for (std::uint64_t left = end - first_line_; left != 0; --left, at = after_line(at))
      media_.flush(at, line_size);
    for (std::uint64_t line : unflushed_abort_lines_) flush(line);
    unflushed_abort_lines_.clear();
  }

  // Ends the transaction with abort records: one at the end, and one at the begin of a line in each
  // abort_interval blocks, where no run hides it. They are not flushed here: the next commit or a
  // truncation does that. Returns the line after the transaction.
  std::uint64_t abort() noexcept {
    const format::block_record r{format::block_kind::abort, 0, ring_.appended_end(), 0};
    STELE_ASSERT(abort_interval_ >= format::blocks_per_line &&
                 abort_interval_ <= max_abort_interval &&
                 abort_interval_ % format::blocks_per_line == 0);
    end_run();
    for (std::uint64_t b = abort_interval_ - format::blocks_per_line; b < blocks();
         b += abort_interval_) {
      const std::uint64_t number = first_line_ * format::blocks_per_line + b;
      format::log_block* const at = block(number);
      STELE_ASSERT(block_in_line(at) == 0 && is_own(at));  // no head of a run precedes it
      store(at, r, sense_of(at));
      remember_abort(number / format::blocks_per_line);
    }
    append_block(r);
    pad_line();
    remember_abort(next_ / format::blocks_per_line - 1);
    STELE_ASSERT(next_ % format::blocks_per_line == 0);  // a line belongs to one transaction
    ring_.set_tail(next_ / format::blocks_per_line);
    return ring_.tail();
  }

  std::uint64_t first_line() const noexcept { return first_line_; }

 private:
  format::log_block* block(std::uint64_t number) const noexcept {
    return ring_begin() + number % ring_blocks();
  }
  format::log_block* ring_begin() const noexcept {
    return reinterpret_cast<format::log_block*>(ring_.bytes());
  }
  std::uint64_t ring_blocks() const noexcept {
    return ring_.capacity_lines() * format::blocks_per_line;
  }
  // Whether a block is one of the running transaction's. Only for assertions.
  [[maybe_unused]] bool is_own(const format::log_block* at) const noexcept {
    if (at < ring_begin() || at >= ring_begin() + ring_blocks()) return false;
    const auto from_first =
        static_cast<std::uint64_t>(at - first_ + (at < first_ ? ring_blocks() : 0));
    return from_first < blocks();
  }
  // Whether the record that ends the transaction still fits. Only for assertions.
  [[maybe_unused]] bool checked_room() const noexcept {
    return next_ / format::blocks_per_line - first_line_ < ring_.capacity_lines();
  }
  // xil.md, E3: the same word's record, whose mask gains bytes.
  void rewrite_record(format::log_block* at, const format::block_record& r, bool sense) {
    STELE_ASSERT(base::holds(at->metadata >> 16 == r.address));
    STELE_ASSERT(base::holds((at->metadata >> 2 & 0xFF & ~std::uint64_t{r.mask}) == 0));
    store(at, r, sense);
  }
  // The torn bits of a block of the running transaction, which is shorter than a lap.
  bool sense_of(const format::log_block* at) const noexcept {
    return (at >= first_) == first_sense_ || planted<Media>(published::mutant::xil_torn_sense);
  }

  format::log_block* append_block(const format::block_record& r) {
    format::log_block* const at = at_;
    // The running transaction is shorter than a lap; the torn bit is inverted with each.
    STELE_ASSERT(blocks() < ring_blocks() && at == block(next_));
    STELE_ASSERT(sense_ == (next_ / ring_blocks() % 2 == 0));
    store(at, r, sense_ || planted<Media>(published::mutant::xil_torn_sense));
    advance();
    return at;
  }
  void advance() noexcept {
    ++next_;
    if (++at_ != ring_begin() + ring_blocks()) return;
    at_ = ring_begin();
    sense_ = !sense_;
  }
  void store(format::log_block* at, const format::block_record& r, bool sense) {
    format::log_block packed = format::pack(r, sense);
    if (planted<Media>(published::mutant::xil_tail_bit)) packed.metadata &= ~std::uint64_t{2};
    store_word(&at->data, packed.data);
    store_word(&at->metadata, packed.metadata);
  }
  void store_word(std::uint64_t* at, std::uint64_t word) { media_.store(at, &word, 8); }

  // --- the open run: the last record, if it is a whole word or a run of them ---

  // How many further words it can take: those that fit its line.
  std::uint64_t run_room() const noexcept {
    return format::words_per_line - 2 * block_in_line(run_) - 2 - further_;
  }
  // The head first, so that a word on media is one that the head counts.
  void extend_run(std::span<const std::uint64_t> words, format::log_place* places) {
    using published::mutant;
    STELE_ASSERT(run_ != nullptr && is_own(run_));
    STELE_ASSERT(!words.empty() && words.size() <= run_room());  // no run crosses its line's end
    STELE_ASSERT(base::holds(further_ == format::further_words(run_->metadata)));
    const std::uint64_t head = block_in_line(run_);
    const bool sense = sense_of(run_);
    auto* const to = &run_->data + 2 + further_;
    const std::uint64_t place = 2 * head + 2 + further_;
    std::uint64_t metadata = format::with_further_words(run_->metadata, words.size()),
                  displaced = 0;
    for (std::uint64_t i = 0; i < words.size(); ++i)
      if (format::displaced_bit(words[i], place + i))
        displaced |= format::displaced_mask(further_ + 1 + i);
    if (!planted<Media>(mutant::xil_run_bits)) metadata |= displaced;
    if (planted<Media>(mutant::xil_run_short)) metadata -= 1u << 16;
    store_word(&run_->metadata, metadata);
    for (std::uint64_t i = 0; i < words.size(); ++i) {
      store_word(to + i, format::seal_further(words[i], place + i,
                                              sense || planted<Media>(mutant::xil_run_torn)));
      places[i] = format::place_of(to + i, head);
    }
    for (const std::uint64_t end = next_ + format::further_blocks(further_ + words.size()) -
                                   format::further_blocks(further_);
         next_ != end;)
      advance();
    further_ += words.size();
    STELE_ASSERT(further_ <= format::max_further_words);
    // The next block is the one behind the run's last word.
    STELE_ASSERT(at_ == ring_begin() || at_ == run_ + 1 + format::further_blocks(further_));
    run_end_ += 8 * words.size();
  }
  // Fills the half of a block that the run leaves.
  void end_run() {
    if (run_ == nullptr) return;
    if (further_ % 2 == 1 && !planted<Media>(published::mutant::xil_run_unpadded))
      store_word(&run_->data + 2 + further_, sense_of(run_) ? 1 : 0);
    run_ = nullptr;
  }
  static std::uint64_t block_in_line(const format::log_block* at) noexcept {
    return reinterpret_cast<std::uintptr_t>(at) / sizeof(format::log_block) %
           format::blocks_per_line;
  }

  // Of the running transaction's blocks, as they are.
  std::uint64_t checksum(bool columns) const noexcept {
    const auto* at = reinterpret_cast<const std::byte*>(first_);
    return format::blocks_checksum(
               base::checksum(pool_id_ ^ first_line_), columns, blocks(),
               [&](std::uint64_t) {
                 return reinterpret_cast<const std::uint64_t*>(std::exchange(at, after_line(at)));
               })
        .value();
  }
  const std::byte* after_line(const std::byte* line) const noexcept {
    line += line_size;
    return line == ring_.bytes() + ring_.capacity_lines() * line_size ? ring_.bytes() : line;
  }
  void pad_line() {
    while (next_ % format::blocks_per_line != 0) {
      if (planted<Media>(published::mutant::xil_no_filler))
        advance();
      else
        append_block({});
    }
  }
  // Without memory to remember the line, flushes it now; the next fence covers it too.
  void remember_abort(std::uint64_t line) noexcept {
    try {
      unflushed_abort_lines_.push_back(line);
    } catch (const std::bad_alloc&) {
      flush(line);
    }
  }
  void flush(std::uint64_t line) {
    media_.flush(ring_.bytes() + line % ring_.capacity_lines() * line_size, line_size);
  }

  Media& media_;
  ring<Media>& ring_;
  const std::uint64_t pool_id_;
  bool runs_ = false;
  std::uint64_t abort_interval_ = default_abort_interval;
  std::uint64_t first_line_ = 0;  // line of the running transaction's first block
  std::uint64_t next_ = 0;        // number of the next block
  // The transaction's first block, and its next one; the senses of their laps.
  format::log_block *first_ = nullptr, *at_ = nullptr;
  bool first_sense_ = true, sense_ = true;
  format::log_block* run_ = nullptr;  // null: the last record takes no further words
  std::uint64_t further_ = 0;         // words of the open run after its first
  std::uint64_t run_end_ = 0;         // the address that continues it
  // Lines with abort records that no fence has covered yet.
  std::vector<std::uint64_t> unflushed_abort_lines_;
};

}  // namespace stele::detail
