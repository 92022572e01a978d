// The interconnect between cores and the banks of the shared cache: a latency one way, and ports
// that carry a line in a time of their own, one after the other.
#pragma once

#include <sim/config.h>
#include <sim/time.h>

#include <algorithm>
#include <vector>

namespace stele::sim {

// Something that serves one after the other.
class serial_resource {
 public:
  // Returns when service that was asked for at `from` and lasts `time` ends.
  picoseconds occupy(picoseconds from, picoseconds time) noexcept {
    free_at_ = std::max(free_at_, from) + time;
    return free_at_;
  }

 private:
  picoseconds free_at_ = 0;
};

class crossbar {
 public:
  crossbar(const crossbar_config& c, unsigned cores)
      : latency_(from_ns(c.latency_ns)),
        line_(from_ns(64 / c.bytes_per_ns)),
        to_cores_(cores),
        from_cores_(cores) {}

  picoseconds latency() const noexcept { return latency_; }
  // A request without data.
  picoseconds send_request(picoseconds now) const noexcept { return now + latency_; }
  // A line arrives at the core, or leaves it; the answer is when it is there.
  picoseconds line_to_core(unsigned core, picoseconds now) noexcept {
    return to_cores_[core].occupy(now, line_) + latency_;
  }
  picoseconds line_from_core(unsigned core, picoseconds now) noexcept {
    return from_cores_[core].occupy(now, line_) + latency_;
  }

 private:
  picoseconds latency_, line_;
  std::vector<serial_resource> to_cores_, from_cores_;
};

}  // namespace stele::sim
