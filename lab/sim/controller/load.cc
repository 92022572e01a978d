// Generators of load: actors that submit the next request when one is told, or when its time has come.
#include <base/rng.h>
#include <sim/controller/controller.h>
#include <sim/controller/load.h>

#include <chrono>

namespace stele::sim {
namespace {

class generator final : public actor {
 public:
  generator(event_queue& events, memory_system& m, const load_config& load)
      : events_(events), memory_(m), load_(load), random_(load.seed), lines_(m.config().capacity_bytes / line_bytes) {}

  void start() {
    if (load_.pattern == load_pattern::sparse) {
      events_.at(events_.now(), *this, timer);
      return;
    }
    for (unsigned i = 0; i < load_.outstanding; ++i) submit(events_.now());
  }

  void act(picoseconds now, std::uint64_t what) override {
    if (load_.pattern == load_pattern::sparse) {
      if (what != timer) return;
      if (left() > 1) events_.at(now + from_ns(load_.gap_ns), *this, timer);
    }
    submit(now);
  }

 private:
  static constexpr std::uint64_t timer = 1;

  std::uint64_t left() const noexcept { return load_.requests - asked_; }

  void submit(picoseconds now) {
    if (left() == 0) return;
    request r;
    r.address = (load_.pattern == load_pattern::stream ? asked_ % lines_ : random_.below(lines_)) * line_bytes;
    r.kind = random_.below(1024) < static_cast<std::uint64_t>(load_.write_share * 1024) ? access::write : access::read;
    r.told = this;
    ++asked_;
    memory_.submit(now, r);
    if (r.kind == access::write && load_.writes_per_barrier && ++writes_ % load_.writes_per_barrier == 0) memory_.barrier(now, 0);
  }

  event_queue& events_;
  memory_system& memory_;
  load_config load_;
  base::rng random_;
  std::uint64_t lines_, asked_ = 0, writes_ = 0;
};

}  // namespace

result<load_result> run_load(const memory_config& c, const load_config& load) {
  event_queue events;
  const auto m = make_memory(events, c);
  if (!m) return std::unexpected(m.error());
  generator g(events, **m, load);
  const auto begin = std::chrono::steady_clock::now();
  g.start();
  while (!events.empty()) events.step();
  load_result r;
  r.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  r.requests_per_second = static_cast<double>(load.requests) / r.wall_s;
  r.simulated_ps = events.now();
  r.unfinished = (*m)->unfinished();
  r.done = (*m)->statistics(events.now());
  return r;
}

}  // namespace stele::sim
