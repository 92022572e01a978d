// The home lines that the records of a log dirty, queued beside the log in ordinary memory for
// truncation: the log need not be read back.
//
// Reading would bring the log's lines into a cache, and streaming over a line that some cache holds
// costs a third more (why a queue: docs/decisions/8-notes-beside-the-log.md). One writer, the log's
// owner; one reader, the truncation. It is sized after the ring and never full while the ring has
// room: a log line names at most four lines of home.
//
// The owner may write home lines back itself, in batches: it takes lines, flushes them, and says so
// after its fence (docs/protocol/bulk.md, B1 and B2).
#pragma once

#include <base/assert.h>
#include <media/cpu.h>
#include <stele/detail/access.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

namespace stele::detail {

class dirty_line_queue {
 public:
  struct entry {
    std::uint64_t txid;
    std::uint64_t next;  // position in the log after the record
    // How many home lines the record dirties. 0: read them from the log (spilled, or too many for
    // an entry), unless they are clean.
    std::uint64_t lines;
    bool clean;  // the commit itself has made its lines durable in home
  };

  void resize_for_log(std::uint64_t log_lines) {
    STELE_ASSERT_ALWAYS(log_lines != 0 && written_.load() == 0);
    size_ = log_lines * (2 + 4);
    words_.resize(size_ + prefetch_distance);
  }

  // For the owner: queues a record and the lines that it changes (elements with an offset). No
  // lines: see entry::lines.
  template <class Written>
  void push(std::uint64_t txid, std::uint64_t next, std::span<const Written> lines) noexcept {
    STELE_ASSERT(size_ != 0 && next >> (64 - count_bits) == 0);
    if (lines.size() >= clean_mark) [[unlikely]]
      lines = {};
    std::uint64_t at = write_at_;
    // The reader's cache has held this line since the last lap.
    media::cpu::prefetch_for_write(&words_[at + prefetch_distance]);
    const auto put_all = [&](auto&& put_word) {
      put_word(txid);
      put_word(next << count_bits | lines.size());
      for (const Written& w : lines) {
        STELE_ASSERT(w.offset % detail::line_size == 0);
        put_word(w.offset);
      }
    };
    if (size_ - at <= 2 + lines.size()) [[unlikely]] {
      put_all([&](std::uint64_t word) { put(at, word); });
      write_at_ = at;
    } else {
      std::uint64_t* to = &words_[at];
      put_all([&](std::uint64_t word) { *to++ = word; });
      write_at_ = at + 2 + lines.size();
    }
    STELE_ASSERT(has_room(2 + lines.size()) && write_at_ < size_);
    written_.store(written_.load(std::memory_order_relaxed) + 2 + lines.size(),
                   std::memory_order_release);
  }

  // For the owner: queues a record whose lines are durable in home before a reader may take it.
  void push_clean(std::uint64_t txid, std::uint64_t next) noexcept {
    STELE_ASSERT(size_ != 0 && next >> (64 - count_bits) == 0 && has_room(2));
    put(write_at_, txid);
    put(write_at_, next << count_bits | clean_mark);
    written_.store(written_.load(std::memory_order_relaxed) + 2, std::memory_order_release);
  }

  // For the owner: whether it has left so many words of entries.
  bool has_untaken(std::uint64_t words) const noexcept {
    return written_.load(std::memory_order_relaxed) - taken_ >= words;
  }
  // For the owner: takes the oldest entries that are left, of about so many words, and calls
  // line(offset) for each of their lines.
  template <class Line>
  void take(std::uint64_t words, Line&& line) {
    STELE_ASSERT(words != 0 && size_ != 0);
    // The words of entries that the reader has removed may be overwritten.
    taken_ = std::max(taken_, read_.load(std::memory_order_acquire));
    const std::uint64_t end = std::min(taken_ + words, written_.load(std::memory_order_relaxed));
    for (std::uint64_t at = taken_ % size_; taken_ < end;) {
      (void)get(at);
      const std::uint64_t lines = get(at) & count_mask;
      for (std::uint64_t left = lines; left != 0; --left) line(get(at));
      STELE_ASSERT(lines < clean_mark);
      taken_ += 2 + lines;
    }
    STELE_ASSERT(taken_ <= written_.load(std::memory_order_relaxed));  // whole entries
  }
  // For the owner: all lines that it took are durable in home.
  void set_flushed() noexcept {
    STELE_ASSERT(taken_ >= flushed_.load(std::memory_order_relaxed));
    flushed_.store(taken_, std::memory_order_release);
  }

  // For the reader: whether the owner has flushed the lines of the next entry.
  bool is_flushed() noexcept {
    const std::uint64_t read = read_.load(std::memory_order_relaxed);
    if (read >= last_seen_flushed_) last_seen_flushed_ = flushed_.load(std::memory_order_acquire);
    return read < last_seen_flushed_;
  }

  // For the reader: peek() gives the next entry, if there is one; pop() passes on each of its lines
  // and removes it.
  bool peek(entry& n) noexcept {
    const std::uint64_t read = read_.load(std::memory_order_relaxed);
    if (read == last_seen_written_)
      // Not loaded at each call: the owner stores to it at each commit.
      last_seen_written_ = written_.load(std::memory_order_acquire);
    if (read == last_seen_written_) return false;
    STELE_ASSERT(read < last_seen_written_ && read_at_ == read % size_);
    std::uint64_t at = read_at_;
    n.txid = get(at);
    const std::uint64_t packed = get(at);
    n.next = packed >> count_bits;
    n.clean = (packed & count_mask) == clean_mark;
    n.lines = n.clean ? 0 : packed & count_mask;
    STELE_ASSERT(read + 2 + n.lines <= last_seen_written_);
    return true;
  }
  template <class Line>
  void pop(const entry& n, Line&& line) {
    STELE_ASSERT(words_[read_at_] == n.txid);  // what peek() gave
    STELE_ASSERT(read_.load(std::memory_order_relaxed) + 2 + n.lines <= last_seen_written_);
    (void)get(read_at_), (void)get(read_at_);
    for (std::uint64_t left = n.lines; left != 0; --left) line(get(read_at_));
    read_.store(read_.load(std::memory_order_relaxed) + 2 + n.lines, std::memory_order_release);
  }

 private:
  static constexpr unsigned count_bits = 18;  // positions have 46 bits: format::log_position_mask
  static constexpr std::uint64_t count_mask = (std::uint64_t{1} << count_bits) - 1,
                                 clean_mark = count_mask;  // in place of a count
  static constexpr std::uint64_t prefetch_distance = 32;   // words

  // For assertions, of the owner: the reader has removed what this many words take the place of.
  [[maybe_unused]] bool has_room(std::uint64_t words) const noexcept {
    return written_.load(std::memory_order_relaxed) + words -
               read_.load(std::memory_order_relaxed) <=
           size_;
  }
  void put(std::uint64_t& at, std::uint64_t word) noexcept {
    words_[at] = word;
    if (++at == size_) at = 0;
  }
  std::uint64_t get(std::uint64_t& at) const noexcept {
    const std::uint64_t word = words_[at];
    if (++at == size_) at = 0;
    return word;
  }

  std::vector<std::uint64_t> words_;
  std::uint64_t size_ = 0, write_at_ = 0;
  // Words since the queue was created: pushed; taken by the owner; of these, flushed.
  std::atomic<std::uint64_t> written_{0};
  std::uint64_t taken_ = 0;
  std::atomic<std::uint64_t> flushed_{0};
  alignas(64) std::atomic<std::uint64_t> read_{0};  // words that the reader has removed
  std::uint64_t read_at_ = 0, last_seen_written_ = 0, last_seen_flushed_ = 0;
};

}  // namespace stele::detail
