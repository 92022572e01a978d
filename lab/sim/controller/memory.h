// The memory interface for caches: lines are read and written, and the requester is called when the
// request is complete.
//
// A write completes when it is persistent (in the cells of a nonvolatile device, or in a volatile
// device). A read completes when its data is back. Every submitted request completes if the event
// queue is run until it is empty: a controller with work keeps an event in the queue, an idle
// controller keeps none.
#pragma once

#include <lab_media/tape.h>
#include <sim/event_queue.h>

#include <cstddef>

namespace stele::sim {

inline constexpr std::uint64_t line_bytes = 64;
// Physical addresses: nonvolatile memory begins at 0, volatile memory here.
inline constexpr std::uint64_t volatile_memory_at = media::tape_volatile_at;
constexpr bool is_volatile_line(std::uint64_t line) noexcept {
  return line >= volatile_memory_at / line_bytes;
}

enum class access : std::uint8_t { read, write };

struct request {
  std::uint64_t address = 0;  // of the line's first byte
  access kind = access::read;
  media::tape_tag tag = media::tape_tag::data;
  std::uint16_t source = 0;           // the hardware thread
  event_handler* reply_to = nullptr;  // called as handle(time, token); may be null
  std::uint64_t token = 0;

  void visit_state(archive& a) {
    a(address, source);
    a.choice(kind, 2), a.choice(tag, 6);
    a.link(reply_to, token, true);
  }
};

class memory {
 public:
  virtual ~memory() = default;

  // Never refuses: requests that do not fit into the controller's queues wait in front of them.
  // `now` must be the event queue's now.
  virtual void submit(picoseconds now, const request& r) = 0;
  // A persist barrier. The scheduler decides how it orders the writes submitted before it and those
  // submitted after it.
  virtual void barrier(picoseconds now, std::uint16_t source) = 0;
  // Requests that are submitted and not complete.
  virtual std::size_t outstanding() const noexcept = 0;
};

}  // namespace stele::sim
