// Memory as the caches see it: lines are read and written, and whoever asked is told when.
//
// A write is told when it is persistent (in the cells of a nonvolatile device, or in the device at
// all when it is volatile), a read when its data is back. Every request that was submitted is told,
// if the event queue is run until it is empty: a controller with work keeps an event in the queue,
// one without keeps none.
#pragma once

#include <media/tape.h>
#include <sim/event_queue.h>

#include <cstddef>

namespace stele::sim {

inline constexpr std::uint64_t line_bytes = 64;
// Physical addresses: nonvolatile memory from 0, volatile memory from here on.
inline constexpr std::uint64_t volatile_memory_at = std::uint64_t{1} << 40;

enum class access : std::uint8_t { read, write };

struct request {
  std::uint64_t address = 0;  // of the line's first byte
  access kind = access::read;
  media::tape_tag tag = media::tape_tag::data;
  std::uint16_t source = 0;           // the hardware thread
  event_handler* reply_to = nullptr;  // handle(time, token); null: nobody
  std::uint64_t token = 0;
};

class memory {
 public:
  virtual ~memory() = default;

  // Never refuses: what the controller's queues do not hold waits in front of them. `now` is the
  // queue's now.
  virtual void submit(picoseconds now, const request& r) = 0;
  // A persist barrier: writes submitted before it and after it are ordered by what the scheduler
  // makes of barriers.
  virtual void barrier(picoseconds now, std::uint16_t source) = 0;
  // Submitted and not yet told.
  virtual std::size_t outstanding() const noexcept = 0;
};

}  // namespace stele::sim
