// Whether covering cold lines is expected to pay, judged by what it cost later in the same run.
//
// All in lines written back. A block costs its own lines and the reading and summing of its matrix.
// What comes later is charged as it happens: skipped lines that are flushed after all because
// their matrix was stored to again, blocks made anew, old values in the log. A skipped line counts
// only from `delay` truncations later on: until then it may still cost its flush. So nothing pays
// at first, and whoever asks tries it on a few matrices.
#pragma once

#include <base/assert.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace stele::detail {

class skip_ledger {
 public:
  // Reading and summing a matrix takes as long as writing so many lines back
  // (docs/decisions/13-archapt.md).
  static constexpr unsigned summing_lines = 8;
  static constexpr unsigned delay = 4;

  // A block of so many lines, summing included, costs less than flushing the cold lines.
  static constexpr bool is_less(unsigned cold, unsigned block_lines) noexcept {
    return cold > block_lines + summing_lines;
  }
  // The same with what is expected to come later.
  bool pays(unsigned cold, unsigned block_lines) const noexcept {
    STELE_ASSERT(block_lines != 0 && skipped_ >= 0);
    const std::int64_t gain = std::max<std::int64_t>(skipped_ - later_, 0);
    return cold * gain > std::int64_t{block_lines + summing_lines} * (skipped_ + doubt);
  }

  // Lines that a new block lets stay unflushed.
  void skip(unsigned lines) noexcept { young_.front() += lines; }
  // What skipped lines cost later; negative: they saved once more.
  void charge(std::int64_t lines) noexcept { later_ += lines; }
  // A truncation begins. An eighth of the past is forgotten.
  void begin_truncation() noexcept {
    STELE_ASSERT(young_.back() >= 0);  // lines that were skipped `delay` truncations ago
    skipped_ += young_.back() - skipped_ / 8;
    later_ -= later_ / 8;
    std::ranges::rotate(young_, young_.end() - 1);
    young_.front() = 0;
  }

 private:
  static constexpr std::int64_t doubt = 256;  // lines: fewer say nothing
  std::array<std::int64_t, delay> young_{};   // skipped, the newest first
  std::int64_t skipped_ = 0, later_ = 0;
};

}  // namespace stele::detail
