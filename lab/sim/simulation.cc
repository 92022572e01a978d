// Assembles a machine from its configuration, and runs its events.
#include <base/check.h>
#include <sim/design/logs.h>
#include <sim/feed/write_trace.h>
#include <sim/simulation.h>

#include <algorithm>

namespace stele::sim {

namespace {

result<isolation_kind> isolation_named(const std::string& name) {
  if (name == "none") return isolation_kind::none;
  if (name == "mutex") return isolation_kind::mutex;
  if (name == "htm") return isolation_kind::htm;
  return base::fail(errc::invalid_argument,
                    "there is no isolation \"" + name + "\"; choose one of none, mutex, htm");
}

// A memory keeps a time for each line of its logs.
constexpr std::uint64_t max_timed_bytes = std::uint64_t{1} << 30;

// The lines that are logs': those of the tape's pool, and a software log that the design writes,
// which phase-change memory writes with the retention of logs.
result<std::vector<log_range>> logs_of(const machine_config& machine, const feed& tape) {
  auto logs = log_ranges_of(tape.header());
  const design_config& d = machine.design;
  if (!logs || !tells_logs_from_data(machine.nonvolatile_memory) || !d.name.ends_with("log"))
    return logs;
  if (d.log_bytes > max_timed_bytes / tape.threads())
    return base::fail(errc::invalid_argument,
                      "design.log_bytes is " + std::to_string(d.log_bytes) + ", and the logs of " +
                          std::to_string(tape.threads()) +
                          " threads in pcm have at most a gigabyte in all, because the age of "
                          "each of their lines is kept; give shorter logs");
  const std::uint64_t end =
      (logs_at + tape.threads() * d.log_bytes + line_bytes - 1) / line_bytes * line_bytes;
  logs->push_back({.records_begin = logs_at, .records_end = end});
  return logs;
}

}  // namespace

result<std::unique_ptr<simulation>> simulation::make(const machine_config& machine, feed tape,
                                                     options o) {
  std::unique_ptr<simulation> s(new simulation(machine, std::move(tape)));
  if (auto together = s->assemble(std::move(o)); !together)
    return std::unexpected(together.error());
  return s;
}

result<> simulation::check(const machine_config& machine, feed& tape) {
  if (auto fits = tape.set_space(
          {machine.nonvolatile_memory.capacity_bytes, machine.volatile_memory.capacity_bytes});
      !fits)
    return fits;
  auto logs = logs_of(machine, tape);
  if (!logs) return std::unexpected(logs.error());
  return {};
}

result<> simulation::assemble(options o) {
  if (auto fits = check(machine, tape); !fits) return fits;
  auto nonvolatile = make_memory(events, machine.nonvolatile_memory),
       other = make_memory(events, machine.volatile_memory);
  if (!nonvolatile) return std::unexpected(nonvolatile.error());
  if (!other) return std::unexpected(other.error());
  memories = std::make_unique<hybrid_memory>(std::move(*nonvolatile), std::move(*other));
  if (auto named = memories->nonvolatile->set_ranges(*logs_of(machine, tape)); !named) return named;
  auto made = hierarchy::make(events, *memories, machine, o.seed);
  if (!made) return std::unexpected(made.error());
  caches = std::move(*made);
  if (o.track_values) caches->track_values();

  const auto kind = isolation_named(machine.design.isolation);
  if (!kind) return std::unexpected(kind.error());
  const picoseconds handoff =
      2 * caches->interconnect().latency() + from_ns(machine.l3.read_latency_ns);
  isolation = std::make_unique<isolation_control>(*kind, machine.cores.count,
                                                  machine.design.htm_retries, handoff);
  if (*kind == isolation_kind::htm) caches->set_observer(isolation.get());

  const unsigned count = tape.threads();
  const auto named = design_named(machine.design.name);
  if (!named) return std::unexpected(named.error());
  auto design_made = (*named)->make({events, *caches, machine, count, o.mutant});
  if (!design_made) return std::unexpected(design_made.error());
  if (*design_made == nullptr)
    return base::fail(errc::invalid_argument, "the plug-in " +
                                                  designs().plugin_of(machine.design.name) +
                                                  " makes no design \"" + machine.design.name +
                                                  "\"; let its make return one");
  persistence = std::move(*design_made);
  kiln_design = dynamic_cast<kiln*>(persistence.get());

  for (unsigned core = 0; machine.tlb.l1_entries != 0 && core < machine.cores.count; ++core) {
    auto buffers = tlb::make(events, *caches, machine.tlb, core);
    if (!buffers) return std::unexpected(buffers.error());
    tlbs.push_back(std::move(*buffers));
  }
  environment_.reset(new hardware_thread::environment{events, *caches, *isolation, *persistence,
                                                      tape, machine, o.observer,
                                                      std::move(o.committed), tlbs});
  for (unsigned t = 0; t < count; ++t)
    threads.push_back(std::make_unique<hardware_thread>(*environment_, t));
  for (auto& t : threads) t->start();
  return {};
}

bool simulation::advance(std::size_t max_events, picoseconds until) {
  until = std::min(until, latest);
  while (max_events-- != 0) {
    if (events.next() > until || events.empty()) return false;
    events.step(until);
  }
  return true;
}

bool simulation::all_finished() const noexcept {
  for (const auto& t : threads)
    if (!t->finished()) return false;
  return true;
}

result<> simulation::finish() {
  if (!tape.status()) return std::unexpected(tape.status().error());
  const auto outlasts = [&] { return !events.empty() && events.next() > latest; };
  const auto too_long = base::fail(errc::invalid_argument,
                                   "the run goes beyond 53 days of simulated time; give the "
                                   "machine shorter latencies, or record a shorter tape");
  if (outlasts()) return too_long;
  if (std::ranges::any_of(threads, [](const auto& t) { return t->has_outrun_time(); }))
    return base::fail(errc::invalid_argument,
                      "a thread of the tape computes beyond 53 days of simulated time; record or "
                      "convert the tape with shorter pauses");
  if (!all_finished())
    return base::fail(errc::invalid_argument,
                      "the threads of the tape wait for each other at " +
                          std::to_string(events.now() / 1000) +
                          " ns: a transaction needs more of the machine than it has, or waits for "
                          "another's lines; give it larger "
                          "caches, or keep transactions apart (design.isolation)");
  persistence->finish(events.now());
  while (advance(1 << 20)) {
  }
  if (outlasts()) return too_long;
  if (kiln_design != nullptr && kiln_design->uncommitted() != 0)
    return base::fail(errc::invalid_argument,
                      std::to_string(kiln_design->uncommitted()) +
                          " transactions wait for each other's lines and never commit: they share "
                          "lines and nothing "
                          "keeps them apart; give design.isolation = \"htm\" or \"mutex\"");
  return {};
}

}  // namespace stele::sim
