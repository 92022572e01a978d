// A torn-bit log: a ring of lines that records are streamed to, whole on media exactly when every
// word of theirs is. Page: docs/format/log.md. Source: Volos, Tack and Swift, "Mnemosyne:
// Lightweight Persistent Memory" (2011), section 4.4.
//
// Positions count lines since the ring was made and never decrease. Lines [head, tail) hold
// records; `head` is on media in the control line, `tail` is not: a reader goes on from the head
// while lines are whole. Invariants: a line is not written again before a head beyond it is durable
// (`limit`); every word beyond the tail carries the sense of the lap before.
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

// Writes payload words as sealed lines. Words are gathered first and sealed many at a time, from
// registers to the ring: there is no line in between to be stored and read again
// (docs/decisions/7-tried.md: stores are what there may be few of).
enum class store_mode : bool { non_temporal, cached };
template <class Media, store_mode mode = store_mode::non_temporal>
class line_writer {
 public:
  line_writer(Media& media, std::byte* ring, std::uint64_t lines, std::uint64_t position,
              std::uint64_t pool_id, format::record_kind kind, format::record_kind spilled_kind)
      : media_(media),
        ring_(ring),
        lines_(lines),
        position_(position),
        checksum_(pool_id ^ position),
        index_(position % lines),
        header_(format::line_header{0, true, false, 0, kind, spilled_kind}.pack()),
        torn_(torn_bit_at(position)) {}

  void append_word(std::uint64_t value) { *(buffer_end_ = reserve(buffer_end_, 1))++ = value; }

  // The same without a call for each word: room for `words` (16 at most) from the place that is
  // returned, which is `end` or, when what is before it has been written out, nearer to the begin;
  // the place after the last word goes back to set_end().
  std::uint64_t* end() noexcept { return buffer_end_; }
  [[gnu::always_inline]] std::uint64_t* reserve(std::uint64_t* end, unsigned words) {
    if (buffer_ + std::size(buffer_) - end < words) [[unlikely]]
      return drain(end);
    return end;
  }
  void set_end(std::uint64_t* end) noexcept { buffer_end_ = end; }

  static constexpr std::uint64_t min_contiguous_words =
      88;  // words, at least, between two writings out that reserve() asks for

  // Writes the last lines. Returns the position after the record.
  [[gnu::always_inline]] std::uint64_t finish() {
    std::uint64_t* last = buffer_;
    if (buffer_end_ - last > format::payload_words) [[unlikely]]
      last = write_full_lines(buffer_end_);
    const auto count = static_cast<unsigned>(buffer_end_ - last);
    base::checksum sum = checksum_;
    for (unsigned i = 0; i < count; ++i) sum.add(last[i]);
    for (unsigned i = count; i < format::payload_words; ++i) last[i] = 0;
    if (!base::planted<Media>(base::mutant::log_last_line))
      write(last, count, format::line_header{0, false, true, sum.value32()}.pack());
    return position_ + 1;
  }

 private:
  [[gnu::always_inline]] std::uint64_t torn_bit_at(std::uint64_t position) const {
    return (position / lines_ & 1) != 0 && !base::planted<Media>(base::mutant::log_torn_sense)
               ? 0
               : format::torn_bit;
  }
  [[gnu::noinline]] std::uint64_t* drain(std::uint64_t* end) {
    return std::copy(write_full_lines(end), end, buffer_);
  }
  // Writes full lines. Returns where what is left begins, at least one word: which line is the last
  // is not known yet.
  [[gnu::always_inline]] std::uint64_t* write_full_lines(std::uint64_t* end) {
    std::uint64_t* from = buffer_;
    base::checksum sum = checksum_;
    for (; end - from > format::payload_words; from += format::payload_words) {
      for (unsigned i = 0; i < format::payload_words; ++i) sum.add(from[i]);
      write(from, format::payload_words, 0);
      header_ &= ~first_line_flag;
      ++position_;
      if (++index_ == lines_) [[unlikely]]
        index_ = 0, torn_ = torn_bit_at(position_);
    }
    checksum_ = sum;
    return from;
  }
  [[gnu::always_inline]] void write(const std::uint64_t* from, unsigned count,
                                    std::uint64_t end) const {
    format::log_line line;
    std::uint64_t top_bits = 0;
#pragma GCC unroll 8
    for (unsigned i = 0; i < format::payload_words; ++i) {
      const std::uint64_t word = __atomic_load_n(
          from + i, __ATOMIC_RELAXED);  // by itself, as it was stored: see media/cpu.h, stream_line
      top_bits |= word >> 63 << i;
      line.words[i + 1] = (word & ~format::torn_bit) | torn_;
    }
    if (base::planted<Media>(base::mutant::log_top_bits)) top_bits = 0;
    line.words[0] = header_ | end | std::uint64_t{count} << 7 | top_bits | torn_;
    std::byte* const to = ring_ + index_ * line_size;
    if (mode == store_mode::cached ||
        (base::planted<Media>(base::mutant::log_first_stored) && (header_ & first_line_flag) != 0))
      media_.store(to, &line, line_size);
    else
      media_.stream(to, &line, line_size);
  }
  static constexpr std::uint64_t first_line_flag = format::line_header{0, true, false, 0}.pack();

  Media& media_;
  std::byte* const ring_;
  const std::uint64_t lines_;
  std::uint64_t position_;
  base::checksum checksum_;
  std::uint64_t index_;  // of the position in the ring; not beside it: the two would be added to as
                         // a pair, by a wide load
  std::uint64_t header_, torn_;  // of the line's header word: what all lines of the record share
  std::uint64_t buffer_[16 * format::payload_words];
  std::uint64_t* buffer_end_ = buffer_;  // of the words that wait here
};

template <class Media>
class ring {
 public:
  ring(Media& media, const storage::pool_file& file, unsigned log)
      : media_(media),
        file_(file),
        offset_(file.header().log_offset + log * file.header().log_size),
        lines_((file.header().log_size - format::log_control_size) / line_size) {}

  std::uint64_t capacity_lines() const noexcept { return lines_; }
  std::uint64_t head() const noexcept { return head_; }
  std::uint64_t tail() const noexcept { return tail_.load(std::memory_order_acquire); }
  // Lines that may be written now. The owner's.
  std::uint64_t free_lines() const noexcept {
    return limit_.load(std::memory_order_acquire) - tail_.load(std::memory_order_relaxed);
  }

  // Takes over a ring whose content is known to end at its head (a clean close, or recovery).
  void reset(std::uint64_t head) noexcept {
    head_ = head;
    tail_.store(head, std::memory_order_relaxed);
    limit_.store(head + lines_, std::memory_order_release);
  }

  // Streams a record: the TxID, then what `fill(writer)` adds with append_word(). Durable after the
  // next fence; published (for readers of other threads) by publish(). What goes through the cache
  // any thread may make durable, by flush and fence.
  template <store_mode mode = store_mode::non_temporal, class Fill>
  void append(format::record_kind kind, std::uint64_t txid, Fill&& fill,
              format::record_kind spilled_kind = format::record_kind::none) {
    line_writer<Media, mode> out(media_, bytes(), lines_, tail_.load(std::memory_order_relaxed),
                                 file_.header().id, kind, spilled_kind);
    out.append_word(txid);
    fill(out);
    appended_end_ = out.finish();
  }
  std::uint64_t appended_end() const noexcept {
    return appended_end_;
  }  // the tail, once the record that was appended last is published
  void publish() noexcept { tail_.store(appended_end_, std::memory_order_release); }
  // The same for records that were stored some other way.
  void set_tail(std::uint64_t to) noexcept { tail_.store(to, std::memory_order_release); }

  // The two halves of cutting the ring: the head word goes to media, and once that is durable its
  // lines may be reused.
  void write_head(std::uint64_t position, std::uint64_t flags = 0) {
    head_ = position;
    const std::uint64_t word = format::guard(position | flags, file_.header().id, offset_);
    media_.store(file_.base() + offset_, &word, 8);
    if (!base::planted<Media>(base::mutant::redo_head_unflushed))
      media_.flush(file_.base() + offset_, 8);
  }
  // The same for a ring whose owner may be running, when its head is on media already.
  void truncate(std::uint64_t head) noexcept {
    head_ = head;
    release_truncated();
  }
  void release_truncated() noexcept { limit_.store(head_ + lines_, std::memory_order_release); }

  // The head word, checked. Errors: corrupt.
  [[nodiscard]] result<std::uint64_t> read_head() const { return read_log_head(file_, offset_); }

  // Reads the record at `position`, which moves past it; false when the lines there are not whole.
  // Errors: corrupt, for whole lines that make no sense.
  [[nodiscard]] result<bool> read(std::uint64_t& position, log_record& record) const {
    return read_record(file_, view(), position, record);
  }
  ring_view view() const noexcept { return {bytes(), lines_, offset_}; }

  std::byte* bytes() const noexcept { return file_.base() + offset_ + format::log_control_size; }

 private:
  Media& media_;
  const storage::pool_file& file_;
  std::uint64_t offset_;
  std::uint64_t lines_;
  std::uint64_t head_ = 0;
  std::uint64_t appended_end_ = 0;  // tail after the record that is being committed
  std::atomic<std::uint64_t> tail_{0};
  std::atomic<std::uint64_t> limit_{0};  // the first position whose line may not be written yet
};

}  // namespace stele::detail
