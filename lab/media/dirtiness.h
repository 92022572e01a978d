// Dirtiness: how much of each line that is written back was stored to, read off a tape.
//
// After Wu, Ren and Li, "Architecture-Aware, High Performance Transaction for Persistent Memory"
// (2019), section I: of a line the bytes that are dirty, over all. Dirty are those stored to since
// the line was last written back, however often. A line is written back by a flush, also when
// nothing was stored to it (it counts as clean); by a bulk persist, which names ranges, if
// something was; and by streamed stores, which count once for all that a thread streams to the line
// up to its fence. What a cache evicts by itself is not on a tape, and what was dirty when the tape
// began is not known.
//
// Memory goes with the lines that are dirty at a time, not with the tape.
#pragma once

#include <media/tape.h>

#include <array>
#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

namespace stele::media {

// Lines written back, by the number of their dirty bytes.
struct dirtiness {
  std::array<std::uint64_t, line_size + 1> lines{};

  std::uint64_t total() const noexcept;
  double mean() const noexcept;  // 0 to 1; of no lines 0
  // Clean ones, then those of 1 to 8 bytes, 9 to 16, ...
  std::array<std::uint64_t, 9> eighths() const noexcept;
  dirtiness& operator+=(const dirtiness& other) noexcept;
};

// Home has the heap's own tables and states too; control is what belongs to neither: the pool's
// header, heads of logs.
struct dirtiness_by_part {
  dirtiness home, log, control;

  dirtiness all() const noexcept;
};

// Takes a tape's events in their order.
class dirtiness_meter {
 public:
  void take(const tape_event& e);
  const dirtiness_by_part& totals() const noexcept { return sums_; }

 private:
  using masks = std::unordered_map<std::uint64_t, std::uint64_t>;  // of lines: their dirty bytes
  struct streamed_line {
    std::uint64_t mask = 0;
    tape_tag tag = tape_tag::none;
  };

  dirtiness& sum_of(tape_tag tag) noexcept;
  void write_back(const tape_event& e, bool clean_too);
  void write_back_long(const tape_event& e, std::uint64_t lines, bool clean_too);

  masks stored_;
  std::vector<std::unordered_map<std::uint64_t, streamed_line>> streamed_;  // by thread
  dirtiness_by_part sums_;
};

// From where the reader is to the end, or until `cancelled`. Errors: those of the reader.
[[nodiscard]] result<dirtiness_by_part> dirtiness_of(
    tape_reader& tape, const std::function<bool()>& cancelled = [] { return false; });

}  // namespace stele::media
