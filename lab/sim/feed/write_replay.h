// Replays a write trace into a memory at full speed, and reports when each write became persistent.
//
// Write-intensive, as in Sun, Lu and Shu, "DP2" (2015), section 4.2.1: the next write is available
// before the controller can take it. Only the controller's own order makes a write wait for another
// to be persistent.
#pragma once

#include <sim/controller/memory.h>
#include <sim/feed/write_trace.h>

namespace stele::sim {

class persist_observer {
 public:
  // A step was given to the memory; marks and barriers are reported too.
  virtual void submitted(const trace_step&) {}
  // A write is persistent. Returning false ends the replay there.
  virtual bool persisted(const trace_step& s, picoseconds when) = 0;

 protected:
  ~persist_observer() = default;
};

struct replay_result {
  std::uint64_t writes = 0, barriers = 0;
  picoseconds finished = 0;  // when all writes were persistent
  bool stopped = false;
  // Persisted bytes over the time since the beginning.
  double bytes_per_s() const noexcept {
    return finished == 0
               ? 0
               : static_cast<double>(writes * line_bytes) / (static_cast<double>(finished) * 1e-12);
  }
};

// At most `max_outstanding` writes are in the memory at a time; this should be more than its queues
// hold. Errors: those of reading the tape.
[[nodiscard]] result<replay_result> replay_writes(write_trace& trace, event_queue& time, memory& to,
                                                  persist_observer* watcher = nullptr,
                                                  std::size_t max_outstanding = 4096);

}  // namespace stele::sim
