// Plays a write trace into a memory as fast as that takes it, and says when each write became
// persistent.
//
// Write-intensive, as in Sun, Lu and Shu, "DP2" (2015), section 4.2.1: the next write is there
// before the controller can take it; nothing waits for a write to be persistent but by the
// controller's own order.
#pragma once

#include <sim/controller/memory.h>
#include <sim/feed/write_trace.h>

namespace stele::sim {

class persist_observer {
 public:
  // A step was given to the memory; of marks and barriers too.
  virtual void submitted(const trace_step&) {}
  // A write is persistent. False ends the replay there.
  virtual bool persisted(const trace_step& s, picoseconds when) = 0;

 protected:
  ~persist_observer() = default;
};

struct replay_result {
  std::uint64_t writes = 0, barriers = 0;
  picoseconds finished = 0;  // all writes persistent
  bool stopped = false;
  // Of the writes persisted, over the time since the beginning.
  double bytes_per_s() const noexcept {
    return finished == 0
               ? 0
               : static_cast<double>(writes * line_bytes) / (static_cast<double>(finished) * 1e-12);
  }
};

// Not more than `max_outstanding` writes are with the memory at a time; it should be more than its
// queues hold. Errors: those of reading the tape.
[[nodiscard]] result<replay_result> replay_writes(write_trace& trace, event_queue& time, memory& to,
                                                  persist_observer* watcher = nullptr,
                                                  std::size_t max_outstanding = 4096);

}  // namespace stele::sim
