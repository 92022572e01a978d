// A torn-bit log: a ring of lines that records are streamed to, and the encoder of records, which
// other logs with runs use too. A record is whole on media exactly when every word of its lines is.
// Page: docs/format/log.md. Source: Volos, Tack and Swift, "Mnemosyne: Lightweight Persistent
// Memory" (2011), section 4.4.
//
// Positions count lines since the ring was created and never decrease. Lines [head, tail) hold
// records. `head` is on media in the control line; `tail` is not: a reader starts at the head and
// goes on while lines are whole. Invariants: a line is written again only after a head beyond it is
// durable (`limit`); every word beyond the tail has the torn bit of the lap before.
#pragma once

#include <base/assert.h>
#include <base/checksum.h>
#include <base/mutant.h>
#include <format/log_line.h>
#include <format/pool_layout.h>
#include <media/media.h>
#include <tx/log/record.h>
#include <tx/write_set.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <span>
#include <utility>
#include <vector>

namespace stele::detail {

// Appends the runs of `lines` to a writer; word_of(offset, new value) returns what the record holds
// for a word. Consecutive words make one run, also across a line boundary, unless the writer has
// drained the head of that run. A writer has end(), reserve() and set_end(end): see word_buffer.
template <class Writer, class WordOf>
[[gnu::always_inline]] inline void encode_runs(std::span<const written_line> lines, Writer& out,
                                               WordOf&& word_of) {
  std::uint64_t* to = out.end();
  // The head of the last run, which a word at offset `goes_on` continues; null: drained.
  std::uint64_t* run = nullptr;
  std::uint64_t goes_on = 0;
  for (const written_line& line : lines) {
    STELE_ASSERT(line.offset % line_size == 0 && line.mask != 0);
    if constexpr (Writer::keeps_open_run) {
      if (line.offset != goes_on) run = nullptr;
      to = out.reserve(to, 2 * 8, run);
    } else {
      std::uint64_t* const room = out.reserve(to, 2 * 8);
      if (room != to || line.offset != goes_on) [[likely]]
        run = nullptr;
      to = room;
    }
    if (const unsigned w = single_whole_word(line.mask); w != 8 && run == nullptr) [[likely]] {
      *(run = to++) = format::run_header{line.offset + 8 * w, 0xFF, 1}.pack();
      *to++ = word_of(line.offset + 8 * w, line.words[w]);
      goes_on = line.offset + 8 * w + 8;
      continue;
    }
    if (line.mask == ~std::uint64_t{0}) {
      STELE_ASSERT(run == nullptr ||
                   format::run_header::unpack(*run).count + 8 <= format::max_run_words);
      if (run != nullptr)
        *run += format::run_header{0, 0, 8}.pack();
      else
        *(run = to++) = format::run_header{line.offset, 0xFF, 8}.pack();
#pragma GCC unroll 8
      for (unsigned k = 0; k < 8; ++k) to[k] = word_of(line.offset + 8 * k, line.words[k]);
      to += 8;
      goes_on = line.offset + line_size;
      continue;
    }
    unsigned whole = 0, left = 0;
    if (all_words_whole(line.mask, whole)) [[likely]]
      left = whole;
    else
      whole = whole_words(line.mask), left = stored_words(line.mask);
    while (left != 0) {
      const auto w = static_cast<unsigned>(std::countr_zero(left));
      const std::uint64_t offset = line.offset + 8 * w;
      if ((whole >> w & 1) == 0) [[unlikely]] {
        const std::uint8_t mask = line.word_mask(w);
        *to++ = format::run_header{offset, mask, 1}.pack();
        // Bytes outside the mask are unspecified memory and must not reach the pool file.
        *to++ = word_of(offset, line.words[w] & expand_mask(mask));
        left &= left - 1;
        run = nullptr;
        continue;
      }
      const auto count = static_cast<unsigned>(std::countr_one(whole >> w));
      STELE_ASSERT(count != 0 && w + count <= 8);
      STELE_ASSERT(run == nullptr ||
                   format::run_header::unpack(*run).count + count <= format::max_run_words);
      if (run != nullptr && w == 0) [[unlikely]]
        *run += format::run_header{0, 0, count}.pack();
      else
        *(run = to++) = format::run_header{offset, 0xFF, count}.pack();
      for (unsigned k = 0; k < count; ++k) *to++ = word_of(offset + 8 * k, line.words[w + k]);
      goes_on = offset + 8 * count;
      left &= ~((1u << (w + count)) - 1);
    }
  }
  out.set_end(to);
}

// A writer for records that are not torn-bit lines: buffers words and passes them on, many at a
// time, as sink(span). A run is as long as the format allows. Two passes over the same lines write
// the same words.
template <class Sink>
class word_buffer {
 public:
  explicit word_buffer(Sink sink) : sink_(std::move(sink)) {}
  word_buffer(const word_buffer&) = delete;
  word_buffer& operator=(const word_buffer&) = delete;

  void append_word(std::uint64_t value) {
    std::uint64_t* none = nullptr;
    *(end_ = reserve(end_, 1, none))++ = value;
  }
  std::uint64_t* end() noexcept { return end_; }
  // Makes room for `words`, 16 at most. Returns where they go; the caller passes the place after
  // its last word to set_end(). run: the head of the last run, if it may grow by a line; null on
  // return: it may not.
  static constexpr bool keeps_open_run = true;
  std::uint64_t* reserve(std::uint64_t* end, unsigned words, std::uint64_t*& run) {
    STELE_ASSERT(words <= 16 && is_inside(end));
    STELE_ASSERT(run == nullptr || (is_inside(run) && run < end));
    if (run != nullptr && end - run + 7 > format::max_run_words) run = nullptr;
    if (words_ + std::size(words_) - end >= words) return end;
    std::uint64_t* const kept = run != nullptr ? run : end;
    sink_(std::span<const std::uint64_t>(words_, kept));
    if (run != nullptr) run = words_;
    std::uint64_t* const to = std::copy(kept, end, words_);
    STELE_ASSERT(words_ + std::size(words_) - to >= words);
    return to;
  }
  void set_end(std::uint64_t* end) noexcept {
    STELE_ASSERT(is_inside(end));
    end_ = end;
  }
  // Passes the last words on.
  void finish() {
    sink_(std::span<const std::uint64_t>(words_, end_));
    end_ = words_;
  }

 private:
  // For assertions.
  [[maybe_unused]] bool is_inside(const std::uint64_t* at) const noexcept {
    return at >= words_ && at <= words_ + std::size(words_);
  }

  Sink sink_;
  std::uint64_t words_[1 + format::max_run_words + 16];
  std::uint64_t* end_ = words_;
};

// How a line of a log of `lines` lines is sealed and written.
enum class store_mode : bool { non_temporal, cached };
template <class Media, store_mode mode>
struct line_seal {
  // Of the words of a line in this lap.
  [[gnu::always_inline]] static std::uint64_t torn_bit_at(std::uint64_t position,
                                                          std::uint64_t lines) {
    return (position / lines & 1) != 0 && !planted<Media>(base::mutant::log_torn_sense)
               ? 0
               : format::torn_bit;
  }
  // Writes payload words with their header, which lacks their top bits.
  [[gnu::always_inline]] static void write(Media& media, std::byte* to, std::uint64_t header,
                                           const std::uint64_t* payload, std::uint64_t torn) {
    STELE_ASSERT((header & format::torn_bit) == 0 && header % (1u << format::payload_words) == 0);
    STELE_ASSERT(torn == 0 || torn == format::torn_bit);
    STELE_ASSERT(reinterpret_cast<std::uintptr_t>(to) % line_size == 0);
    format::log_line line;
    std::uint64_t top_bits = 0;
#pragma GCC unroll 8
    for (unsigned i = 0; i < format::payload_words; ++i) {
      top_bits |= payload[i] >> 63 << i;
      line.words[i + 1] = (payload[i] & ~format::torn_bit) | torn;
    }
    if (planted<Media>(base::mutant::log_top_bits)) top_bits = 0;
    line.words[0] = header | top_bits | torn;
    if (mode == store_mode::cached || (planted<Media>(base::mutant::log_first_stored) &&
                                       format::line_header::unpack(header).first))
      media.store(to, &line, line_size);
    else
      media.stream(to, &line, line_size);
  }
};

// Writes payload words as sealed lines. Words are buffered first and sealed many at a time, from
// registers to the ring: no line is stored and read again in between (docs/decisions/7-tried.md:
// every store counts).
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
        torn_(seal::torn_bit_at(position, lines)) {
    STELE_ASSERT(kind != format::record_kind::none);
    STELE_ASSERT((kind == format::record_kind::spilled) ==
                 (spilled_kind != format::record_kind::none));
  }

  void append_word(std::uint64_t value) { *(buffer_end_ = reserve(buffer_end_, 1))++ = value; }

  // The same without a call for each word. reserve() makes room for `words` (16 at most) and
  // returns where they go: `end`, or a place nearer to the buffer's begin when it has written full
  // lines out, the head of the last run with them. The caller passes the place after its last word
  // to set_end().
  static constexpr bool keeps_open_run = false;
  std::uint64_t* end() noexcept { return buffer_end_; }
  [[gnu::always_inline]] std::uint64_t* reserve(std::uint64_t* end, unsigned words) {
    STELE_ASSERT(words <= 16 && end >= buffer_ && end <= buffer_ + std::size(buffer_));
    if (buffer_ + std::size(buffer_) - end < words) [[unlikely]]
      return drain(end);
    return end;
  }
  void set_end(std::uint64_t* end) noexcept {
    STELE_ASSERT(end >= buffer_ && end <= buffer_ + std::size(buffer_));
    buffer_end_ = end;
  }

  // reserve() does not write lines out twice within this many words.
  static constexpr std::uint64_t min_contiguous_words = 88;

  // Writes the last lines. Returns the position after the record.
  [[gnu::always_inline]] std::uint64_t finish() {
    std::uint64_t* last = buffer_;
    const auto words = static_cast<std::uint64_t>(buffer_end_ - last);
    bool columns = has_columns();
    if (words > format::payload_words) [[unlikely]] {
      columns = columns || words > words_for_columns;
      last = columns ? write_columns(buffer_end_) : write_full_lines(buffer_end_);
    }
    const auto count = static_cast<unsigned>(buffer_end_ - last);
    STELE_ASSERT(count >= 1 && count <= format::payload_words);
    base::checksum sum = checksum_;
    for (unsigned i = 0; i < count; ++i) sum.add(last[i]);
    if (columns) columns_.add_to(sum);
    for (unsigned i = count; i < format::payload_words; ++i) last[i] = 0;
    write(last, count, format::line_header{0, false, true, sum.value32()}.pack());
    return position_ + 1;
  }

 private:
  using seal = line_seal<Media, mode>;
  static constexpr std::uint64_t words_for_columns = 6 * format::payload_words;
  std::uint64_t* drain(std::uint64_t* end) { return std::copy(write_columns(end), end, buffer_); }
  // Writes full lines. Returns where the remaining words begin. At least one word remains, because
  // the last line is not known yet.
  [[gnu::always_inline]] std::uint64_t* write_full_lines(std::uint64_t* end) {
    std::uint64_t* from = buffer_;
    base::checksum sum = checksum_;
    for (; end - from > format::payload_words; from += format::payload_words) {
      for (unsigned i = 0; i < format::payload_words; ++i) sum.add(from[i]);
      write_full_line(from, 0);
    }
    checksum_ = sum;
    return from;
  }
  // The same, summed by columns, which pays for many lines.
  [[gnu::noinline]] std::uint64_t* write_columns(std::uint64_t* end) {
    std::uint64_t* from = buffer_;
    format::column_sums columns = has_columns() ? columns_ : format::column_sums(checksum_);
    for (; end - from > format::payload_words; from += format::payload_words) {
      columns.add(from);
      write_full_line(from, format::line_header{.in_columns = true}.pack());
    }
    columns_ = columns;
    return from;
  }
  // Whether a full line has been written, which before finish() is one in columns.
  bool has_columns() const noexcept { return (header_ & first_line_flag) == 0; }
  [[gnu::always_inline]] void write_full_line(const std::uint64_t* from, std::uint64_t flags) {
    write(from, format::payload_words, flags);
    header_ &= ~first_line_flag;
    STELE_ASSERT(index_ == position_ % lines_);
    ++position_;
    if (++index_ == lines_) [[unlikely]]
      index_ = 0, torn_ = seal::torn_bit_at(position_, lines_);
  }
  [[gnu::always_inline]] void write(const std::uint64_t* from, unsigned count,
                                    std::uint64_t end) const {
    std::uint64_t payload[format::payload_words];
#pragma GCC unroll 8
    for (unsigned i = 0; i < format::payload_words; ++i)
      // Loaded as a single word, as it was stored: see media/cpu.h, stream_line.
      payload[i] = __atomic_load_n(from + i, __ATOMIC_RELAXED);
    seal::write(media_, ring_ + index_ * line_size, header_ | end | std::uint64_t{count} << 7,
                payload, torn_);
  }
  static constexpr std::uint64_t first_line_flag = format::line_header{0, true, false, 0}.pack();

  Media& media_;
  std::byte* const ring_;
  const std::uint64_t lines_;
  std::uint64_t position_;
  base::checksum checksum_;
  format::column_sums columns_;  // if has_columns()
  // Index of position_ in the ring. Declared apart from it: otherwise the compiler adds to both as
  // a pair, with a wide load.
  std::uint64_t index_;
  std::uint64_t header_, torn_;  // the part of the header word, and the torn bit, that lines share
  std::uint64_t buffer_[16 * format::payload_words];
  std::uint64_t* buffer_end_ = buffer_;  // after the buffered words
};

template <class Media>
class ring {
 public:
  ring(Media& media, const storage::pool_file& file, unsigned log)
      : media_(media),
        file_(file),
        offset_(file.header().log_offset + log * file.header().log_size),
        lines_((file.header().log_size - format::log_control_size) / line_size) {
    STELE_ASSERT_ALWAYS(log < file.header().log_count && lines_ != 0);
  }

  std::uint64_t capacity_lines() const noexcept { return lines_; }
  std::uint64_t head() const noexcept { return head_; }
  std::uint64_t tail() const noexcept { return tail_.load(std::memory_order_acquire); }
  // Lines that may be written now. Only for the ring's owner.
  std::uint64_t free_lines() const noexcept {
    const std::uint64_t limit = limit_.load(std::memory_order_acquire),
                        tail = tail_.load(std::memory_order_relaxed);
    STELE_ASSERT(tail <= limit);
    return limit - tail;
  }
  // The same for other threads: as it was a moment ago. The tail is loaded first, since it may pass
  // a limit that was loaded before it. Between two stores of reset() the limit may be the lower
  // one.
  std::uint64_t free_lines_seen() const noexcept {
    const std::uint64_t tail = tail_.load(std::memory_order_acquire),
                        limit = limit_.load(std::memory_order_acquire);
    return limit < tail ? 0 : std::min(limit - tail, lines_);
  }

  // Takes over a ring that is known to hold nothing beyond `head` (a clean close, or recovery).
  void reset(std::uint64_t head) noexcept {
    STELE_ASSERT(head <= format::log_position_mask);
    head_ = appended_end_ = head;
    tail_.store(head, std::memory_order_relaxed);
    limit_.store(head + lines_, std::memory_order_release);
  }

  // Writes a record: the TxID, then what `fill(writer)` adds with append_word(). A streamed record
  // is durable after the next fence. A cached one can be made durable by any thread, by flush and
  // fence. Other threads read the record after publish().
  template <store_mode mode = store_mode::non_temporal, class Fill>
  void append(format::record_kind kind, std::uint64_t txid, Fill&& fill,
              format::record_kind spilled_kind = format::record_kind::none) {
    line_writer<Media, mode> out(media_, bytes(), lines_, tail_.load(std::memory_order_relaxed),
                                 file_.header().id, kind, spilled_kind);
    out.append_word(txid);
    fill(out);
    appended_end_ = out.finish();
    // bulk.md, reuse of a log's line: a durable head lies beyond each line that was written
    STELE_ASSERT(appended_end_ <= limit_.load(std::memory_order_relaxed));
  }
  // The same for the record of a small commit: one to three whole words, each a run of its own.
  // The line is sealed in registers: the buffer of line_writer would take as many stores again as
  // the line. False: `lines` are no such record, and nothing is written.
  template <class WordOf>
  [[gnu::always_inline]] bool append_few(format::record_kind kind, std::uint64_t txid,
                                         std::span<const written_line> lines, WordOf&& word_of) {
    STELE_ASSERT(kind != format::record_kind::none && !format::has_prefix_word(kind));
    switch (lines.size()) {
      case 1:
        return append_words<1>(kind, txid, lines.data(), word_of);
      case 2:
        return append_words<2>(kind, txid, lines.data(), word_of);
      case 3:
        return append_words<3>(kind, txid, lines.data(), word_of);
      default:
        return false;
    }
  }
  // The tail, once the record that was appended last is published.
  std::uint64_t appended_end() const noexcept { return appended_end_; }
  void publish() noexcept { set_tail(appended_end_); }
  // The same for records that append() did not write, and for what was aborted.
  void set_appended_end(std::uint64_t to) noexcept {
    STELE_ASSERT(to >= tail_.load(std::memory_order_relaxed));
    appended_end_ = to;
  }
  void set_tail(std::uint64_t to) noexcept {
    STELE_ASSERT(to >= tail_.load(std::memory_order_relaxed));
    tail_.store(to, std::memory_order_release);
  }

  // The two halves of truncation: write_head() puts the head word on media; once it is durable,
  // release_truncated() lets the lines be reused.
  void write_head(std::uint64_t position, std::uint64_t flags = 0) {
    STELE_ASSERT(position >= head_ && position <= tail_.load(std::memory_order_relaxed));
    STELE_ASSERT(position <= format::log_position_mask);
    head_ = position;
    const std::uint64_t word = format::guard(position | flags, file_.header().id, offset_);
    media_.store(file_.base() + offset_, &word, 8);
    media_.flush(file_.base() + offset_, 8);
  }
  // The second half for a ring whose owner may be running; its head is on media already.
  void truncate(std::uint64_t head) noexcept {
    STELE_ASSERT(head >= head_);
    head_ = head;
    release_truncated();
  }
  void release_truncated() noexcept {
    STELE_ASSERT(head_ + lines_ >= limit_.load(std::memory_order_relaxed));
    limit_.store(head_ + lines_, std::memory_order_release);
  }

  // Reads and checks the head word. Errors: corrupt.
  [[nodiscard]] result<std::uint64_t> read_head() const { return read_log_head(file_, offset_); }

  // Reads the record at `position` and moves `position` past it. False: the lines there are not
  // whole. Errors: corrupt, for whole lines that make no sense.
  [[nodiscard]] result<bool> read(std::uint64_t& position, log_record& record) const {
    return read_record(file_, view(), position, record);
  }
  ring_view view() const noexcept { return {bytes(), lines_, offset_}; }

  std::byte* bytes() const noexcept { return file_.base() + offset_ + format::log_control_size; }

 private:
  template <unsigned count, class WordOf>
  [[gnu::always_inline]] bool append_words(format::record_kind kind, std::uint64_t txid,
                                           const written_line* lines, WordOf&& word_of) {
    std::uint64_t payload[format::payload_words] = {txid};
    std::uint64_t goes_on = 0;
#pragma GCC unroll 3
    for (unsigned i = 0; i < count; ++i) {
      const unsigned w = single_whole_word(lines[i].mask);
      const std::uint64_t offset = lines[i].offset + 8 * w;
      if (w == 8 || (i != 0 && offset == goes_on)) return false;
      goes_on = offset + 8;
      payload[1 + 2 * i] = format::run_header{offset, 0xFF, 1}.pack();
      payload[2 + 2 * i] = word_of(offset, lines[i].words[w]);
    }
    constexpr unsigned words = 1 + 2 * count;
    const std::uint64_t position = tail_.load(std::memory_order_relaxed);
    STELE_ASSERT(position < limit_.load(std::memory_order_relaxed));  // as in append()
    base::checksum sum(file_.header().id ^ position);
#pragma GCC unroll 8
    for (unsigned i = 0; i < words; ++i) sum.add(payload[i]);
    using seal = line_seal<Media, store_mode::non_temporal>;
    seal::write(media_, bytes() + position % lines_ * line_size,
                format::line_header{words, true, true, sum.value32(), kind}.pack(), payload,
                seal::torn_bit_at(position, lines_));
    appended_end_ = position + 1;
    return true;
  }

  Media& media_;
  const storage::pool_file& file_;
  std::uint64_t offset_;
  std::uint64_t lines_;
  std::uint64_t head_ = 0;
  std::uint64_t appended_end_ = 0;  // tail after the record that was appended last
  std::atomic<std::uint64_t> tail_{0};
  std::atomic<std::uint64_t> limit_{0};  // the first position whose line may not be written yet
};

}  // namespace stele::detail
