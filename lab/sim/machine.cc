// Runs a machine, and collects its counts.
#include <sim/machine.h>
#include <sim/simulation.h>

#include <base/check.h>
#include <algorithm>
#include <filesystem>

namespace stele::sim {

namespace {

// The counts that add up over a run, with path and unit.
std::vector<quantity> totals_of(simulation& s) {
  thread_counts t;
  for (const auto& thread : s.threads) t += thread->counts;
  const hierarchy_counts& c = s.caches->counts;
  const auto n = [](std::uint64_t v) { return static_cast<double>(v); };
  std::vector<quantity> q = {
      {"run.transactions", n(t.commits), ""},
      {"run.operations", n(t.operations), ""},
      {"run.events", n(t.events), ""},
      {"run.instructions", n(t.instructions), ""},
      {"run.loads", n(t.loads), ""},
      {"run.stores", n(t.stores), ""},
      {"run.commit_time", n(t.commit_time) / 1000, "ns"},
      {"isolation.attempts_lost", n(t.aborts), ""},
      {"isolation.conflicts", n(s.isolation->counts.conflicts), ""},
      {"isolation.displacements", n(s.isolation->counts.capacity_aborts), ""},
      {"isolation.lock_taken", n(s.isolation->counts.lock_taken), ""},
      {"l1.hits", n(c.l1_hits), ""},
      {"l1.misses", n(c.l1_misses), ""},
      {"l2.hits", n(c.l2_hits), ""},
      {"l2.misses", n(c.l2_misses), ""},
      {"l3.hits", n(c.l3_hits), ""},
      {"l3.misses", n(c.l3_misses), ""},
      {"l3.reads", n(c.l3_reads), ""},
      {"l3.writes", n(c.l3_writes + c.l3_fills), ""},
      {"l3.written_back_to", n(c.l3_writes), "lines"},
      {"coherence.invalidations", n(c.invalidations), ""},
      {"coherence.transfers", n(c.transfers), ""},
      {"coherence.flushed", n(c.flushed_lines), "lines"},
      {"coherence.refusals", n(c.nacks), ""}};
  const auto add_memory = [&](const char* name, memory_system& m) {
    const memory_statistics d = m.statistics(s.events.now());
    const std::string at = std::string(name) + ".";
    for (const auto& [what, value] : {std::pair{"reads", d.reads},
                                      {"writes", d.writes},
                                      {"forwarded_reads", d.forwarded_reads},
                                      {"row_hits", d.row_hits},
                                      {"row_misses", d.row_misses},
                                      {"row_conflicts", d.row_conflicts},
                                      {"activates", d.activates},
                                      {"refreshes", d.refreshes}})
      q.push_back({at + what, n(value), ""});
    q.push_back({at + "bytes", n(d.bytes), "bytes"});
    q.push_back({at + "energy", m.energy(s.events.now()).total_pj() / 1000, "nJ"});
  };
  add_memory("nonvolatile_memory", *s.memories->nonvolatile);
  add_memory("volatile_memory", *s.memories->volatile_memory);
  if (s.kiln_design != nullptr) {
    const kiln_counts& k = s.kiln_design->counts;
    for (const auto& [what, value] : {std::pair{"transactions", k.transactions},
                                      {"lines", k.lines},
                                      {"arrived_before_end", k.arrived_before_end},
                                      {"queue_evictions", k.queue_evictions},
                                      {"superseded_kept", k.superseded_kept},
                                      {"superseded_written", k.superseded_written},
                                      {"overflows", k.overflows},
                                      {"overflowed_lines", k.overflowed_lines},
                                      {"overflowed_transactions", k.overflowed_transactions},
                                      {"overflow_aborts", k.overflow_aborts},
                                      {"waits_for_older", k.waits_for_older}})
      q.push_back({std::string("kiln.") + what, n(value), ""});
    q.push_back({"kiln.commit_latency", n(k.commit_latency) / 1000, "ns"});
  }
  return q;
}

double value_of(const std::vector<quantity>& q, std::string_view path) {
  const auto found = std::ranges::find(q, path, &quantity::path);
  return found == q.end() ? 0 : found->value;
}

// Rates, ratios and energies that follow from the totals. memory: the time in which the nonvolatile
// memory moved its bytes; it writes on when the last transaction has ended.
void add_derived(run_result& r, picoseconds memory) {
  const std::vector<quantity> q = r.quantities;
  const auto of = [&](std::string_view path) { return value_of(q, path); };
  const auto share = [](double part, double rest) {
    return part + rest == 0 ? 0 : part / (part + rest);
  };
  const double ns = static_cast<double>(r.simulated) / 1000;
  const machine_config& m = r.machine;
  const double per_instruction_nj =
      m.processor_dynamic_peak_w / (m.cores.count * m.cores.clock_ghz * m.cores.issue_width);
  const double l3_nj =
      of("l3.reads") * m.l3.read_energy_nj + of("l3.writes") * m.l3.write_energy_nj;
  r.add("rate.transactions", ns == 0 ? 0 : of("run.transactions") / ns * 1e9, "1/s");
  r.add("rate.operations", ns == 0 ? 0 : of("run.operations") / ns * 1e9, "1/s");
  r.add("rate.instructions", ns == 0 ? 0 : of("run.instructions") / ns, "1/ns");
  r.add("rate.nonvolatile_memory",
        memory == 0 ? 0 : of("nonvolatile_memory.bytes") / (static_cast<double>(memory) / 1000),
        "GB/s");
  r.add("ratio.l1_hits", share(of("l1.hits"), of("l1.misses")));
  r.add("ratio.l2_hits", share(of("l2.hits"), of("l2.misses")));
  r.add("ratio.l3_hits", share(of("l3.hits"), of("l3.misses")));
  r.add("energy.processor", of("run.instructions") * per_instruction_nj + l3_nj, "nJ");
  r.add("energy.memory", of("nonvolatile_memory.energy") + of("volatile_memory.energy"), "nJ");
  r.add("power.processor", ns == 0 ? 0 : (of("run.instructions") * per_instruction_nj + l3_nj) / ns,
        "W");
  r.add("power.memory",
        ns == 0 ? 0 : (of("nonvolatile_memory.energy") + of("volatile_memory.energy")) / ns, "W");
}

// Latencies, queues and busy banks of a memory since the time `from`, when its statistics were
// `before`. The mean length of a queue is the sum of the waits in it over the time (Little's law).
void add_times(run_result& r, const std::string& name, memory_system& m, picoseconds now,
               const memory_statistics& before, picoseconds from) {
  memory_statistics s = m.statistics(now);
  s.subtract_times(before);
  const double ps = static_cast<double>(now - from);
  const auto share = [&](picoseconds part, double of) {
    return ps == 0 ? 0 : static_cast<double>(part) / ps / of;
  };
  const memory_config& c = m.config();
  const double channels = c.controllers * c.channels,
               banks = channels * c.ranks * c.bank_groups * c.banks;
  r.add(name + ".read_latency", s.read_latency.mean_ns(), "ns");
  r.add(name + ".read_latency_p50", s.read_latencies.percentile_ns(0.5), "ns");
  r.add(name + ".read_latency_p99", s.read_latencies.percentile_ns(0.99), "ns");
  r.add(name + ".write_latency", s.write_latency.mean_ns(), "ns");
  r.add(name + ".read_queue", share(s.read_wait.sum_ps, channels), "requests a channel");
  r.add(name + ".write_queue", share(s.write_wait.sum_ps, channels), "requests a channel");
  r.add(name + ".busy_banks", 100 * share(s.bank_busy_ps, banks), "%");
}

// Samples the totals at each interval while threads run.
class sampler final : event_handler {
 public:
  sampler(simulation& s, picoseconds interval, time_series& into) : simulation_(s), line_(into) {
    line_.interval = interval;
    line_.names = {"run.transactions", "run.instructions",         "l3.misses",
                   "l3.writes",        "nonvolatile_memory.reads", "nonvolatile_memory.writes"};
    if (interval != 0) simulation_.events.schedule(interval, *this);
  }

 private:
  void handle(picoseconds now, std::uint64_t) override {
    const auto totals = totals_of(simulation_);
    std::vector<double> sample;
    for (const std::string& name : line_.names) sample.push_back(value_of(totals, name));
    line_.samples.push_back(std::move(sample));
    if (!simulation_.all_finished()) simulation_.events.schedule(now + line_.interval, *this);
  }

  simulation& simulation_;
  time_series& line_;
};

// When the nonvolatile memory ended its last write.
struct last_write final : write_observer {
  picoseconds at = 0;
  void persisted(const write_report& report) override { at = report.persisted; }
};

// The totals at the time where counting begins.
struct baseline {
  std::vector<quantity> totals;
  picoseconds at = 0;
  memory_statistics nonvolatile, volatile_memory;
};

baseline baseline_of(simulation& s, picoseconds now) {
  return {totals_of(s), now, s.memories->nonvolatile->statistics(now),
          s.memories->volatile_memory->statistics(now)};
}

void subtract(std::vector<quantity>& from, const std::vector<quantity>& what) {
  for (std::size_t i = 0; i < what.size(); ++i) from[i].value -= what[i].value;
}

result<> run_to_end(simulation& s, const run_options& o) {
  std::error_code none;
  const double size = static_cast<double>(std::filesystem::file_size(o.tape, none));
  while (s.advance(1 << 16)) {
    if (o.cancelled && o.cancelled()) return base::fail(errc::cancelled, "interrupted");
    if (o.progress && size > 0) o.progress(static_cast<double>(s.tape.bytes()) / size);
  }
  return s.finish();
}

}  // namespace

result<run_result> run_machine(const machine_config& machine, const run_options& options) {
  auto tape = feed::open(options.tape, machine.cores.count * machine.cores.threads_per_core);
  if (!tape) return std::unexpected(tape.error());
  std::unique_ptr<simulation> s;
  baseline from;
  std::uint64_t commits = 0;
  picoseconds last_commit = 0;
  simulation::options how;
  how.seed = options.seed;
  how.committed = [&](unsigned, picoseconds now) {
    last_commit = now;
    if (++commits == options.warm_up_transactions) from = baseline_of(*s, now);
  };
  auto made = simulation::make(machine, std::move(*tape), std::move(how));
  if (!made) return std::unexpected(made.error());
  s = std::move(*made);
  run_result r;
  r.machine = machine;
  r.tape = std::filesystem::path(options.tape).filename();
  r.label = machine.design.name;
  last_write memory_end;
  s->memories->nonvolatile->observe(&memory_end);
  const sampler samples(*s, options.timeline_interval, r.line);
  if (auto ran = run_to_end(*s, options); !ran) return std::unexpected(ran.error());
  if (commits < options.warm_up_transactions)
    return base::fail(errc::invalid_argument, "the tape has " + std::to_string(commits) +
                                                  " transactions, fewer than the " +
                                                  std::to_string(options.warm_up_transactions) +
                                                  " that are to warm the machine up");
  r.quantities = totals_of(*s);
  for (const auto& t : s->threads) r.simulated = std::max(r.simulated, t->time());
  const picoseconds memory = std::max(r.simulated, memory_end.at) - from.at;
  if (value_of(r.quantities, "run.transactions") != 0) r.simulated = last_commit;
  r.simulated = std::max(r.simulated, from.at) - from.at;
  subtract(r.quantities, from.totals);
  const picoseconds end = s->events.now();
  add_times(r, "nonvolatile_memory", *s->memories->nonvolatile, end, from.nonvolatile, from.at);
  add_times(r, "volatile_memory", *s->memories->volatile_memory, end, from.volatile_memory,
            from.at);
  if (s->kiln_design != nullptr) {
    r.add("kiln.pending_at_most",
          static_cast<double>(s->kiln_design->counts.max_pending));         // a maximum, not a sum
    r.add("kiln.tag_overhead", 100.0 * tag_bits(machine) / (64 * 8), "%");  // of a line
  }
  add_derived(r, memory);
  return r;
}

}  // namespace stele::sim
