// The interconnect between cores and the banks of the shared cache: a fixed latency each way, and
// ports that transfer one line at a time.
#pragma once

#include <sim/archive.h>
#include <sim/config.h>
#include <sim/time.h>

#include <algorithm>
#include <vector>

namespace stele::sim {

// A resource that serves one request at a time.
class serial_resource {
 public:
  // Returns the end of a service that is requested at `from` and takes `time`.
  picoseconds occupy(picoseconds from, picoseconds time) noexcept {
    free_at_ = std::max(free_at_, from) + time;
    return free_at_;
  }
  void visit_state(archive& a) { a(free_at_); }

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
  // The arrival time of a request without data.
  picoseconds send_request(picoseconds now) const noexcept { return now + latency_; }
  // A line is sent to the core, or by the core. Returns when it arrives.
  picoseconds line_to_core(unsigned core, picoseconds now) noexcept {
    return to_cores_[core].occupy(now, line_) + latency_;
  }
  picoseconds line_from_core(unsigned core, picoseconds now) noexcept {
    return from_cores_[core].occupy(now, line_) + latency_;
  }
  void visit_state(archive& a) { a.fixed(to_cores_), a.fixed(from_cores_); }

 private:
  picoseconds latency_, line_;
  std::vector<serial_resource> to_cores_, from_cores_;
};

}  // namespace stele::sim
