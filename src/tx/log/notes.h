// What the records of a log change, noted beside it in ordinary memory for the truncation: the log need not be read back.
//
// Reading brings the log's lines into a cache, and streaming over a line that some cache holds costs a third more (measured:
// docs/decisions/8-notes-beside-the-log.md). One writer, the log's owner; one reader, the truncation. As large as the ring
// allows, so it is never full while the ring has room: a log line names at most four lines of home.
#pragma once

#include <stele/access.h>

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

namespace stele::detail {

class home_notes {
 public:
  struct note {
    std::uint64_t txid;
    std::uint64_t next;   // position in the log after the record
    std::uint64_t lines;  // of home, this record's; 0: look in the log (the record has more than can be noted)
  };

  void size_for(std::uint64_t log_lines) {
    notes_.resize(log_lines);
    lines_.resize(log_lines * 4);
  }

  // The owner's: a record and the lines that it changes (things with an offset), or none of them: see note::lines.
  template <class Written>
  void record(std::uint64_t txid, std::uint64_t next, std::span<const Written> lines) noexcept {
    std::uint64_t at = line_at_;
    for (const Written& w : lines) {
      lines_[at] = w.offset;
      if (++at == lines_.size()) at = 0;
    }
    line_at_ = at;
    notes_[note_at_] = {txid, next, lines.size()};
    if (++note_at_ == notes_.size()) note_at_ = 0;
    written_.store(written_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }

  // The reader's: the next note, if it is there; then its lines, each once; then it is gone.
  const note* peek() const noexcept { return read_ != written_.load(std::memory_order_acquire) ? &notes_[read_at_] : nullptr; }
  template <class Line>
  void take(Line&& line) {
    for (std::uint64_t left = notes_[read_at_].lines; left != 0; --left) {
      line(lines_[line_read_at_]);
      if (++line_read_at_ == lines_.size()) line_read_at_ = 0;
    }
    ++read_;
    if (++read_at_ == notes_.size()) read_at_ = 0;
  }

 private:
  std::vector<note> notes_;
  std::vector<std::uint64_t> lines_;
  std::uint64_t note_at_ = 0, line_at_ = 0;
  std::atomic<std::uint64_t> written_{0};
  alignas(64) std::uint64_t read_ = 0, read_at_ = 0, line_read_at_ = 0;
};

}  // namespace stele::detail
