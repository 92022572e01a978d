// Dirtiness: which share of the bytes of each written-back line was dirty, measured on a tape.
//
// After Wu, Ren and Li, "Architecture-Aware, High Performance Transaction for Persistent Memory"
// (2019), section I: dirty bytes of a line divided by all its bytes. A byte is dirty if it was
// stored to, once or often, since the line was last written back. A flush writes a line back, even
// if nothing was stored to it (it then counts as clean). A bulk persist names ranges; it writes
// back their dirty lines. Streamed stores count once for all that a thread streams to a line before
// its fence. Evictions by the cache are not on a tape, and what was dirty when the tape began is
// not known.
//
// Memory use depends on the number of lines that are dirty at one time, not on the tape's length;
// and on the pool's size, where only changed bytes count.
#pragma once

#include <lab_media/tape.h>

#include <array>
#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

namespace stele::media {

// Counts of written-back lines by their number of dirty bytes.
struct dirtiness {
  std::array<std::uint64_t, line_size + 1> lines{};

  std::uint64_t total() const noexcept;
  double mean() const noexcept;  // 0 to 1; 0 if there are no lines
  // Clean lines, then lines with 1 to 8 dirty bytes, 9 to 16, ...
  std::array<std::uint64_t, 9> eighths() const noexcept;
  dirtiness& operator+=(const dirtiness& other) noexcept;
};

// Home includes the heap's own tables and states. Control is the rest: the pool's header and heads
// of logs.
struct dirtiness_by_part {
  dirtiness home, log, control;

  dirtiness all() const noexcept;
};

// Which bytes of a store make a line dirty: all, or those whose value changes. The latter is for
// programs that store whole lines or pages again; it takes a tape with bytes.
enum class dirty_bytes : std::uint8_t { stored, changed };

// Takes the events of a tape in order.
class dirtiness_meter {
 public:
  dirtiness_meter(dirty_bytes what, std::uint64_t pool_size)
      : content_(what == dirty_bytes::changed ? pool_size : 0) {}
  void take(const tape_event& e);
  const dirtiness_by_part& totals() const noexcept { return sums_; }

 private:
  using masks = std::unordered_map<std::uint64_t, std::uint64_t>;  // by line: its dirty bytes
  struct streamed_line {
    std::uint64_t mask = 0;
    tape_tag tag = tape_tag::none;
  };

  dirtiness& sum_of(tape_tag tag) noexcept;
  void store(const tape_event& e);
  std::uint64_t changed_bytes(const tape_event& e, std::uint64_t line, std::uint64_t mask) const;
  void write_back(const tape_event& e, bool clean_too);
  void write_back_long(const tape_event& e, std::uint64_t lines, bool clean_too);

  std::vector<std::byte> content_;  // of the pool; empty, where each store counts
  masks stored_;
  std::vector<std::unordered_map<std::uint64_t, streamed_line>> streamed_;  // by thread
  dirtiness_by_part sums_;
};

// Reads from the reader's place (for changed bytes: the tape's beginning) to the end, or until
// `cancelled`. Errors: those of the reader.
[[nodiscard]] result<dirtiness_by_part> dirtiness_of(
    tape_reader& tape, const std::function<bool()>& cancelled = [] { return false; },
    dirty_bytes what = dirty_bytes::stored);

}  // namespace stele::media
