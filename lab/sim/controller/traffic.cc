// Load generators: submit the next request when one completes, or when its time has come.
#include <base/rng.h>
#include <sim/controller/controller.h>
#include <sim/controller/traffic.h>

#include <chrono>

namespace stele::sim {
namespace {

class generator final : public event_handler {
 public:
  generator(event_queue& events, memory_system& m, const traffic_config& load)
      : events_(events),
        memory_(m),
        traffic_(load),
        random_(load.seed),
        lines_(m.config().capacity_bytes / line_bytes) {}

  void start() {
    if (traffic_.pattern == traffic_pattern::sparse) {
      events_.schedule(events_.now(), *this, timer);
      return;
    }
    for (unsigned i = 0; i < traffic_.outstanding; ++i) submit(events_.now());
  }

  void handle(picoseconds now, std::uint64_t what) override {
    if (traffic_.pattern == traffic_pattern::sparse) {
      if (what != timer) return;
      if (left() > 1) events_.schedule(now + from_ns(traffic_.gap_ns), *this, timer);
    }
    submit(now);
  }

 private:
  static constexpr std::uint64_t timer = 1;

  std::uint64_t left() const noexcept { return traffic_.requests - submitted_; }

  void submit(picoseconds now) {
    if (left() == 0) return;
    request r;
    r.address = (traffic_.pattern == traffic_pattern::stream ? submitted_ % lines_
                                                             : random_.below(lines_)) *
                line_bytes;
    r.kind = random_.below(1024) < static_cast<std::uint64_t>(traffic_.write_share * 1024)
                 ? access::write
                 : access::read;
    r.reply_to = this;
    ++submitted_;
    memory_.submit(now, r);
    if (r.kind == access::write && traffic_.writes_per_barrier &&
        ++writes_ % traffic_.writes_per_barrier == 0)
      memory_.barrier(now, 0);
  }

  event_queue& events_;
  memory_system& memory_;
  traffic_config traffic_;
  base::rng random_;
  std::uint64_t lines_, submitted_ = 0, writes_ = 0;
};

}  // namespace

result<traffic_result> run_traffic(const memory_config& c, const traffic_config& load) {
  event_queue events;
  const auto m = make_memory(events, c);
  if (!m) return std::unexpected(m.error());
  generator g(events, **m, load);
  const auto begin = std::chrono::steady_clock::now();
  g.start();
  while (!events.empty()) events.step(never);
  traffic_result r;
  r.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  r.requests_per_second = static_cast<double>(load.requests) / r.wall_s;
  r.simulated_ps = events.now();
  r.unfinished = (*m)->outstanding();
  r.done = (*m)->statistics(events.now());
  return r;
}

}  // namespace stele::sim
