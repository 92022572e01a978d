// What the records of a log change, noted beside it in ordinary memory for the truncation: the log
// need not be read back.
//
// Reading brings the log's lines into a cache, and streaming over a line that some cache holds
// costs a third more (measured: docs/decisions/8-notes-beside-the-log.md). One writer, the log's
// owner; one reader, the truncation. As large as the ring allows, so it is never full while the
// ring has room: a log line names at most four lines of home.
#pragma once

#include <media/cpu.h>
#include <stele/access.h>

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

namespace stele::detail {

class dirty_line_queue {
 public:
  struct entry {
    std::uint64_t txid;
    std::uint64_t next;   // position in the log after the record
    std::uint64_t lines;  // of home, this record's; 0: look in the log (the record has more than
                          // can be noted)
  };

  void resize_for_log(std::uint64_t log_lines) {
    size_ = log_lines * (2 + 4);
    words_.resize(size_ + prefetch_distance);
  }

  // The owner's: a record and the lines that it changes (things with an offset), or none of them:
  // see entry::lines.
  template <class Written>
  void push(std::uint64_t txid, std::uint64_t next, std::span<const Written> lines) noexcept {
    if (lines.size() > max_lines) [[unlikely]]
      lines = {};
    std::uint64_t at = write_at_;
    media::cpu::prefetch_for_write(
        &words_[at + prefetch_distance]);  // the reader's cache has had it since the last lap
    put(at, txid);
    put(at, next << count_bits | lines.size());
    for (const Written& w : lines) put(at, w.offset);
    write_at_ = at;
    written_.store(written_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }

  // The reader's: the next note, if it is there; then its lines, each once; then it is gone.
  bool peek(entry& n) noexcept {
    if (read_ == last_seen_written_)
      last_seen_written_ = written_.load(
          std::memory_order_acquire);  // not each time: the owner stores to it each commit
    if (read_ == last_seen_written_) return false;
    std::uint64_t at = read_at_;
    n.txid = get(at);
    const std::uint64_t packed = get(at);
    n.next = packed >> count_bits;
    n.lines = packed & max_lines;
    return true;
  }
  template <class Line>
  void pop(const entry& n, Line&& line) {
    (void)get(read_at_), (void)get(read_at_);
    for (std::uint64_t left = n.lines; left != 0; --left) line(get(read_at_));
    ++read_;
  }

 private:
  static constexpr unsigned count_bits = 18;  // positions have 46: format::log_position_mask
  static constexpr std::uint64_t max_lines = (std::uint64_t{1} << count_bits) - 1;
  static constexpr std::uint64_t prefetch_distance = 32;  // words

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
  std::atomic<std::uint64_t> written_{0};
  alignas(64) std::uint64_t read_ = 0, read_at_ = 0, last_seen_written_ = 0;
};

}  // namespace stele::detail
