// The writes of a tape as a memory controller receives them: lines, and persist barriers between
// them.
//
// A flushed or streamed line is a write; a fence with writes of its thread before it is a barrier.
// Operations that the tape marks (invoked, returned) may overlap: operations of different threads
// take turns barrier by barrier, as writes of parallel threads would arrive, unless they store to a
// common line of home. Then, and within a thread, the order of the tape holds. Operations begin in
// the order of the tape. Events outside of operations overlap with nothing. Loads are
// ignored: an operation that read a value that an overlapping one wrote is not delayed.
//
// Memory is bounded by the overlapping operations, one for each thread, whatever the tape's length.
#pragma once

#include <lab_media/tape.h>
#include <sim/controller/log_ranges.h>
#include <sim/feed/tape_order.h>

#include <deque>
#include <optional>
#include <vector>

namespace stele::sim {

struct trace_step {
  enum class kind : std::uint8_t { write, barrier, began, ended };
  kind what = kind::write;
  std::uint16_t source = 0;     // the thread
  std::uint64_t address = 0;    // for a write: of the line
  std::uint64_t number = 0;     // write: its number among writes; began, ended: the operation
  std::uint64_t operation = 0;  // that the step belongs to; or `outside`
  static constexpr std::uint64_t outside = ~std::uint64_t{0};
};

// The address ranges of records and commit lines of the logs in the tape's pool. A log with several
// commit lines has as many slots of equal size after them, which are used in turn. Each slot is a
// log to the controller, because a slot's records may be overwritten as soon as that slot is
// truncated. Logs without commit lines of their own have one range each. Empty when the pool has
// its data in its logs, which then must last as long as data. Errors: corrupt, when the header
// contradicts itself, or its logs have more than a gigabyte.
[[nodiscard]] result<std::vector<log_range>> log_ranges_of(const media::tape_header& h);
// The same, to tell lines apart by. Errors: also those of log_ranges::of.
[[nodiscard]] result<log_ranges> log_classes_of(const media::tape_header& h);

// The lines that an event writes to memory: [first, first + count).
struct written_lines {
  std::uint64_t first = 0, count = 0;
};
written_lines lines_written_by(const media::tape_event& e) noexcept;

class write_trace {
 public:
  explicit write_trace(media::tape_reader tape, bool overlap = true)
      : tape_(std::move(tape)), overlap_(overlap) {}

  const media::tape_header& header() const noexcept { return tape_.header(); }
  // Leaves out what empties a log after its commit: writes of a commit line in an operation that
  // has written no record of this log since the commit before, and barriers behind them alone. Such
  // a trace loses data when its log is used again; some evaluations have no others. Call before
  // next(). Errors: those of log_classes_of.
  [[nodiscard]] result<> leave_out_truncations();
  // The next step; empty at the end. Errors: those of reading the tape, and of tape_order.
  [[nodiscard]] result<std::optional<trace_step>> next();

 private:
  // An operation; or, outside of operations, the events up to a barrier.
  struct segment {
    std::uint64_t operation = trace_step::outside;
    std::uint16_t source = 0;
    std::vector<trace_step> steps;
    std::size_t at = 0;
    std::vector<std::uint64_t> home_lines;  // lines, sorted
    std::vector<unsigned> uncommitted;      // logs with records and no commit yet
    bool outside_operations() const noexcept { return operation == trace_step::outside; }
  };

  [[nodiscard]] result<bool> read_segment(segment& p);
  // Returns true when the event ends the segment.
  bool append_event(const media::tape_event& e, segment& p);
  bool is_truncation(std::uint64_t address, segment& p) const;
  void write(std::uint64_t line, unsigned source, segment& p);
  bool fence(unsigned source, segment& p);
  bool may_begin(const segment& p) const;
  [[nodiscard]] result<> admit();

  media::tape_reader tape_;
  tape_order order_;
  bool overlap_;
  std::optional<log_ranges> logs_without_truncations_;
  std::uint64_t writes_ = 0;
  std::vector<bool> unfenced_;           // by thread: whether it has written since its last fence
  std::optional<segment> next_segment_;  // the next on the tape
  bool ended_ = false;
  std::deque<segment> active_;
  std::size_t next_active_ = 0;
};

}  // namespace stele::sim
