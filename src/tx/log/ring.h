// A torn-bit log: a ring of lines that records are streamed to, whole on media exactly when every word of theirs is.
// Page: docs/format/log.md. Source: Volos, Tack and Swift, "Mnemosyne: Lightweight Persistent Memory" (2011), section 4.4.
//
// Positions count lines since the ring was made and never decrease. Lines [head, tail) hold records; `head` is on media in
// the control line, `tail` is not: a reader goes on from the head while lines are whole. Invariants: a line is not written
// again before a head beyond it is durable (`limit`); every word beyond the tail carries the sense of the lap before.
#pragma once

#include <base/checksum.h>
#include <base/mutant.h>
#include <format/log_line.h>
#include <format/pool_layout.h>
#include <media/media.h>
#include <tx/log/record.h>
#include <tx/write_set.h>

#include <atomic>
#include <bit>
#include <vector>

namespace stele::detail {

// Streams payload words as sealed lines.
template <class Media>
class line_writer {
 public:
  line_writer(Media& media, std::byte* ring, std::uint64_t lines, std::uint64_t position, std::uint64_t pool_id, format::record_kind kind,
              format::record_kind spilled_kind, bool streams = true)
      : media_(&media), ring_(ring), lines_(lines), position_(position), index_(position % lines), streams_(streams), sum_(pool_id ^ position),
        head_(format::line_header{0, true, false, 0, kind, spilled_kind}.pack()), torn_(torn_at(position)) {}

  // Sealed as it comes: each word is stored once. (Stores are what there may be few of: docs/decisions/7-tried.md.)
  [[gnu::always_inline]] void word(std::uint64_t value) {
    if (words_ == format::payload_words) [[unlikely]]
      emit(0);
    sum_.add(value);
    tops_ |= value >> 63 << words_;
    line_.words[++words_] = (value & ~format::torn_bit) | torn_;
  }

  // Streams the last line. Returns the position after the record.
  [[gnu::always_inline]] std::uint64_t finish() {
    for (unsigned i = words_ + 1; i <= format::payload_words; ++i) line_.words[i] = torn_;
    if (base::planted<Media>(base::mutant::log_last_line)) return position_ + 1;
    emit(format::line_header{0, false, true, sum_.value32()}.pack());
    return position_;
  }

 private:
  [[gnu::always_inline]] std::uint64_t torn_at(std::uint64_t position) const {
    return (position / lines_ & 1) != 0 && !base::planted<Media>(base::mutant::log_torn_sense) ? 0 : format::torn_bit;
  }
  [[gnu::always_inline]] void emit(std::uint64_t end) {
    if (base::planted<Media>(base::mutant::log_top_bits)) tops_ = 0;
    line_.words[0] = head_ | end | std::uint64_t{words_} << 7 | tops_ | torn_;
    std::byte* const to = ring_ + index_ * line_size;
    if (!streams_ || (base::planted<Media>(base::mutant::log_first_stored) && (head_ & first_line) != 0))
      media_->store(to, &line_, line_size);
    else
      media_->stream(to, &line_, line_size);
    head_ &= ~first_line;
    words_ = 0, tops_ = 0;
    ++position_;
    if (++index_ == lines_) [[unlikely]]
      index_ = 0, torn_ = torn_at(position_);
  }
  static constexpr std::uint64_t first_line = format::line_header{0, true, false, 0}.pack();

  Media* media_;
  std::byte* ring_;
  std::uint64_t lines_;
  std::uint64_t position_, index_;
  bool streams_;
  base::checksum sum_;
  std::uint64_t head_, torn_, tops_ = 0;  // of the line's header word: what all lines of the record share; the payload words' top bits
  unsigned words_ = 0;                    // in the line
  format::log_line line_;
};

template <class Media>
class ring {
 public:
  ring(Media& media, const storage::pool_file& file, unsigned log)
      : media_(media), file_(file), offset_(file.header().log_offset + log * file.header().log_size), lines_((file.header().log_size - format::log_control_size) / line_size) {}

  std::uint64_t lines() const noexcept { return lines_; }
  std::uint64_t head() const noexcept { return head_; }
  std::uint64_t tail() const noexcept { return tail_.load(std::memory_order_acquire); }
  // Lines that may be written now. The owner's.
  std::uint64_t room() const noexcept { return limit_.load(std::memory_order_acquire) - tail_.load(std::memory_order_relaxed); }

  // Takes over a ring whose content is known to end at its head (a clean close, or recovery).
  void start(std::uint64_t head) noexcept {
    head_ = head;
    tail_.store(head, std::memory_order_relaxed);
    limit_.store(head + lines_, std::memory_order_release);
  }

  // Streams a record: the TxID, then what `fill(writer)` adds with word(). Durable after the next fence; published (for
  // readers of other threads) by publish().
  template <class Fill>
  void append(format::record_kind kind, std::uint64_t txid, Fill&& fill, format::record_kind spilled_kind = format::record_kind::none) {
    line_writer<Media> out(media_, bytes(), lines_, tail_.load(std::memory_order_relaxed), file_.header().id, kind, spilled_kind);
    out.word(txid);
    fill(out);
    next_ = out.finish();
  }
  // The same by ordinary stores: any thread may make it durable, by flush and fence.
  template <class Fill>
  void append_stored(format::record_kind kind, std::uint64_t txid, Fill&& fill) {
    line_writer<Media> out(media_, bytes(), lines_, tail_.load(std::memory_order_relaxed), file_.header().id, kind, format::record_kind::none, false);
    out.word(txid);
    fill(out);
    next_ = out.finish();
  }
  void publish() noexcept { tail_.store(next_, std::memory_order_release); }
  // The same for records that were stored some other way.
  void move_tail(std::uint64_t to) noexcept { tail_.store(to, std::memory_order_release); }

  // The two halves of cutting the ring: the head word goes to media, and once that is durable its lines may be reused.
  void write_head(std::uint64_t position, std::uint64_t flags = 0) {
    head_ = position;
    const std::uint64_t word = format::guard(position | flags, file_.header().id, offset_);
    media_.store(file_.base() + offset_, &word, 8);
    if (!base::planted<Media>(base::mutant::redo_head_unflushed)) media_.flush(file_.base() + offset_, 8);
  }
  // The same for a ring whose owner may be running, when its head is on media already.
  void cut(std::uint64_t head) noexcept {
    head_ = head;
    reuse();
  }
  void reuse() noexcept { limit_.store(head_ + lines_, std::memory_order_release); }

  // The head word, checked. Errors: corrupt.
  result<std::uint64_t> stored_head() const { return read_log_head(file_, offset_); }

  // Reads the record at `position`, which moves past it; false when the lines there are not whole. Errors: corrupt, for whole
  // lines that make no sense.
  result<bool> read(std::uint64_t& position, log_record& record) const { return read_record(file_, view(), position, record); }
  ring_view view() const noexcept { return {bytes(), lines_, offset_}; }

  std::byte* bytes() const noexcept { return file_.base() + offset_ + format::log_control_size; }

 private:
  Media& media_;
  const storage::pool_file& file_;
  std::uint64_t offset_;
  std::uint64_t lines_;
  std::uint64_t head_ = 0;
  std::uint64_t next_ = 0;                 // tail after the record that is being committed
  std::atomic<std::uint64_t> tail_{0};
  std::atomic<std::uint64_t> limit_{0};    // the first position whose line may not be written yet
};

}  // namespace stele::detail
