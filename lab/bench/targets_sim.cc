// The simulator's speeds: `stele bench sim`. Measures requests served by its controllers, accesses
// of tapes run by cores, caches and designs, accesses of a cache without time, and the memory of a
// run.
//
// Rates are per second of processor time, so that other work on the machine does not count; the
// rate by wall time is in the detail. Tapes are generated here: loads and stores of 8 bytes, with a
// given share of stores. The run itself counts the hits of each level and reports them.
#include <bench/targets.h>
#include <fmt/format.h>
#include <sim/config_file.h>
#include <sim/controller/traffic.h>
#include <sim/dp2/pcm.h>
#include <sim/simulation.h>

#include <base/check.h>
#include <base/rng.h>
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <fstream>

namespace stele::bench {
namespace {

constexpr std::uint64_t KiB = 1024, MiB = 1024 * KiB;

// --- how fast ---

struct speed {
  double per_cpu_s = 0, per_wall_s = 0;
};

class stopwatch {
 public:
  speed of(double count) const {
    return {count / (cpu_s() - cpu_),
            count / std::chrono::duration<double>(wall_clock::now() - wall_).count()};
  }

 private:
  using wall_clock = std::chrono::steady_clock;
  static double cpu_s() {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
  }
  double cpu_ = cpu_s();
  wall_clock::time_point wall_ = wall_clock::now();
};

// The result of one run, with a description.
struct measurement {
  speed at;
  std::string detail;
};

// The median of o.runs runs, by processor time.
template <class F>
result<> add_rate(const target_options& o, std::vector<performance_target>& targets,
                  const char* what, double mark, F&& run_once) {
  o.progress(what);
  std::vector<measurement> all;
  for (unsigned run = 0; run < o.runs; ++run) {
    if (o.cancelled()) return base::fail(errc::cancelled, "interrupted");
    result<measurement> m = run_once();
    if (!m) return std::unexpected(std::move(m.error()));
    all.push_back(std::move(*m));
  }
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
  std::ranges::nth_element(all, middle, {}, [](const measurement& m) { return m.at.per_cpu_s; });
  targets.push_back(
      {what, "M/s", mark, middle->at.per_cpu_s / 1e6, false,
       fmt::format("{:.2f} by the wall; {}", middle->at.per_wall_s / 1e6, middle->detail)});
  o.measured(targets.back());
  return {};
}

// --- controllers ---

result<measurement> measure_traffic(const sim::memory_config& c, const sim::traffic_config& load) {
  const stopwatch watch;
  const auto r = sim::run_traffic(c, load);
  if (!r) return std::unexpected(r.error());
  if (r->unfinished != 0 ||
      r->done.reads + r->done.forwarded_reads + r->done.writes != load.requests)
    return base::fail(errc::corrupt, fmt::format("of {} requests to a memory {} never ended",
                                                 load.requests, r->unfinished));
  const double write_share =
      static_cast<double>(r->done.writes) / static_cast<double>(load.requests);
  return measurement{watch.of(static_cast<double>(load.requests)),
                     fmt::format("{:.0f} % writes, {} of {} persisted, {:.2f} ms simulated",
                                 100 * write_share, r->done.write_latency.count, r->done.writes,
                                 static_cast<double>(r->simulated_ps) * 1e-9)};
}

result<> controllers(const target_options& o, std::vector<performance_target>& targets) {
  const auto ddr4 = sim::load_machine(o.configs + "/ddr4-2400.toml");
  if (!ddr4) return std::unexpected(ddr4.error());
  const auto pcm = sim::load_machine(o.configs + "/dp2.toml");
  if (!pcm) return std::unexpected(pcm.error());
  using enum sim::traffic_pattern;
  for (const auto& [what, pattern, mark] : {std::tuple{"DDR4-2400, random requests", random, 1.8},
                                            {"DDR4-2400, stream", stream, 5.0},
                                            {"DDR4-2400, one in 500 cycles", sparse, 5.0}})
    if (auto added = add_rate(o, targets, what, mark,
                              [&] {
                                return measure_traffic(ddr4->nonvolatile_memory,
                                                       {.pattern = pattern, .requests = 500'000});
                              });
        !added)
      return added;
  const sim::memory_config alone = sim::dp2_memory("strict");
  if (auto added =
          add_rate(o, targets, "DP2's PCM, 64 writes at a time", 2.0,
                   [&] { return measure_traffic(alone, {.requests = 500'000, .write_share = 1}); });
      !added)
    return added;
  return add_rate(o, targets, "DP2's machine, 256 writes, barriers each 64", 2.5, [&] {
    return measure_traffic(
        pcm->nonvolatile_memory,
        {.requests = 500'000, .write_share = 1, .outstanding = 256, .writes_per_barrier = 64});
  });
}

// --- tapes ---

// Accesses are distributed over regions by share. A region belongs to one thread, or is common to
// all.
struct region {
  double share;
  std::uint64_t bytes;
  bool common = false;
};

struct tape_spec {
  unsigned threads = 1;
  std::uint64_t accesses = 2'000'000;  // of all threads
  std::vector<region> regions;
  double store_share = 0.25;
  unsigned in_transaction = 0;  // accesses in a transaction; 0: no transactions
};

class tape_maker {
 public:
  explicit tape_maker(const tape_spec& plan) : plan_(plan) {}

  void write(media::tape_writer& to) {
    const media::tape_writer::scoped_lock lock(to);
    const unsigned at_once = std::max(1u, plan_.in_transaction);
    for (std::uint64_t n = 0; n < plan_.accesses; n += at_once) {
      const auto thread = static_cast<unsigned>(n / at_once % plan_.threads);
      if (plan_.in_transaction != 0) to.event(media::tape_op::tx_begin, thread, 0, 0);
      for (unsigned i = 0; i < at_once; ++i) access(to, thread);
      if (plan_.in_transaction != 0) to.event(media::tape_op::tx_commit, thread, 0, 0);
    }
  }

 private:
  void access(media::tape_writer& to, unsigned thread) {
    double left = random_.unit();
    std::uint64_t begin = 0;
    for (const region& r : plan_.regions) {
      if ((left -= r.share) < 0 || &r == &plan_.regions.back()) {
        const std::uint64_t address =
            begin + (r.common ? 0 : thread * r.bytes) + random_.below(r.bytes / 8) * 8;
        return to.event(
            random_.unit() < plan_.store_share ? media::tape_op::store : media::tape_op::load,
            thread, address, 8);
      }
      begin += r.bytes * (r.common ? 1 : plan_.threads);
    }
  }

  const tape_spec& plan_;
  base::rng random_{1};
};

constexpr media::tape_options shape{.pool_size = std::uint64_t{2} << 30, .record_bytes = false};

std::unique_ptr<media::tape_writer> tape_of(const tape_spec& plan) {
  auto tape = media::tape_writer::to_memory(shape);
  tape_maker(plan).write(*tape);
  (void)tape->finish();  // nothing fails in memory
  return tape;
}

result<std::unique_ptr<sim::simulation>> run_whole(const sim::machine_config& machine,
                                                   result<sim::feed> tape) {
  if (!tape) return std::unexpected(tape.error());
  auto s = sim::simulation::make(machine, std::move(*tape), {});
  if (!s) return s;
  while ((*s)->advance(1 << 20)) {
  }
  if (auto ended = (*s)->finish(); !ended) return std::unexpected(ended.error());
  return s;
}

result<measurement> play(const sim::machine_config& machine, const media::tape_writer& tape,
                         std::uint64_t accesses) {
  auto feed = sim::feed::over(tape.memory(), machine.cores.count * machine.cores.threads_per_core);
  if (!feed) return std::unexpected(feed.error());
  auto s = sim::simulation::make(machine, std::move(*feed), {});
  if (!s) return std::unexpected(s.error());
  const stopwatch watch;
  while ((*s)->advance(1 << 20)) {
  }
  const speed at = watch.of(static_cast<double>(accesses));
  if (auto ended = (*s)->finish(); !ended) return std::unexpected(ended.error());
  const sim::hierarchy_counts& c = (*s)->caches->counts;
  const double all = static_cast<double>(c.l1_accesses()) / 100;
  return measurement{
      at, fmt::format("hits: L1 {:.1f} %, L2 {:.1f} %, L3 {:.1f} %; memory {:.1f} %; {} copies "
                      "taken, {} attempts lost",
                      static_cast<double>(c.l1_hits) / all, static_cast<double>(c.l2_hits) / all,
                      static_cast<double>(c.l3_hits) / all, static_cast<double>(c.l3_misses) / all,
                      c.invalidations + c.transfers,
                      (*s)->isolation->counts.conflicts + (*s)->isolation->counts.capacity_aborts)};
}

result<> add_play(const target_options& o, std::vector<performance_target>& targets,
                  const char* what, double mark, const sim::machine_config& machine,
                  const tape_spec& plan) {
  const auto tape = tape_of(plan);
  return add_rate(o, targets, what, mark, [&] { return play(machine, *tape, plan.accesses); });
}

sim::machine_config one_plain_core(sim::machine_config machine) {
  machine.cores.count = machine.cores.threads_per_core = 1;
  machine.design.name = "native";
  machine.design.isolation = "none";
  return machine;
}

result<> hierarchies(const target_options& o, std::vector<performance_target>& targets) {
  const auto kiln = sim::load_machine(o.configs + "/kiln.toml");
  if (!kiln) return std::unexpected(kiln.error());
  const sim::machine_config one = one_plain_core(*kiln);
  struct row {
    const char* what;
    double mark;
    const sim::machine_config& machine;
    tape_spec plan;
  };
  const row rows[] = {
      {"one core, L1 hits", 60, one, {.regions = {{1, 16 * KiB}}}},
      {"one core, 90 % L1, 8 % L2, 2 % below",
       15,
       one,
       {.regions = {{0.9, 16 * KiB}, {0.08, 96 * KiB}, {0.02, MiB}}}},
      {"8 cores, kiln, mostly hits",
       15,
       *kiln,
       {.threads = 8, .regions = {{0.98, 8 * KiB}, {0.02, 256 * KiB, true}}, .in_transaction = 32}},
      {"8 cores, kiln, all miss L1 and L2",
       3,
       *kiln,
       {.threads = 8, .accesses = 1'000'000, .regions = {{1, 8 * MiB, true}}, .in_transaction = 8}},
      {"8 cores, kiln, all to memory",
       1.5,
       *kiln,
       {.threads = 8,
        .accesses = 500'000,
        .regions = {{1, 1024 * MiB, true}},
        .in_transaction = 8}},
  };
  for (const row& r : rows)
    if (auto added = add_play(o, targets, r.what, r.mark, r.machine, r.plan); !added) return added;
  return {};
}

// --- a cache without time ---

result<measurement> find_and_fill(std::uint64_t lines) {
  auto cache = sim::cache_array::make(64 * KiB, 4, "lru", 1);
  if (!cache) return std::unexpected(cache.error());
  base::rng random(1);
  std::vector<std::uint32_t> asked(1 << 14);
  for (auto& line : asked) line = static_cast<std::uint32_t>(random.below(lines));
  constexpr unsigned rounds = 500;
  std::uint64_t hits = 0;
  const stopwatch watch;
  for (unsigned round = 0; round < rounds; ++round)
    for (const std::uint64_t line : asked)
      if (const auto p = cache->find(line); p != sim::cache_array::none) {
        cache->touch(p);
        ++hits;
      } else {
        cache->fill(cache->find_victim(line), line);
      }
  return measurement{watch.of(static_cast<double>(hits)),
                     fmt::format("{} KiB in 64 KiB of 4 ways, {:.2f} % hits", lines * 64 / KiB,
                                 100.0 * static_cast<double>(hits) / (rounds * 16384.0))};
}

// --- memory ---

// A value of /proc/self/status, in bytes; 0 when it is missing.
double of_process(const std::string& what) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(what + ":")) return std::stod(line.substr(what.size() + 1)) * 1024;
  return 0;
}

// Runs the tape in a child process. Returns the peak memory of the run, without the caches' tags;
// below 0 when it failed.
double run_in_child(const sim::machine_config& machine, const std::string& tape) {
  int ends[2];
  if (pipe(ends) != 0) return -1;
  const pid_t child = fork();
  if (child == 0) {
    malloc_trim(0);
    const double before = of_process("VmRSS");
    const auto s = run_whole(
        machine, sim::feed::open(tape, machine.cores.count * machine.cores.threads_per_core));
    const double took =
        s ? of_process("VmHWM") - before - static_cast<double>((*s)->caches->tag_bytes()) : -1;
    (void)!::write(ends[1], &took, sizeof took);
    _exit(0);
  }
  ::close(ends[1]);
  double took = -1;
  if (child < 0 || ::read(ends[0], &took, sizeof took) != sizeof took) took = -1;
  ::close(ends[0]);
  if (child > 0) waitpid(child, nullptr, 0);
  return took;
}

result<double> run_in_child(const target_options& o, const sim::machine_config& machine,
                            const tape_spec& plan) {
  const std::string path = fmt::format("{}/bench-sim-{}.tape", o.dir, getpid());
  auto tape = media::tape_writer::to_file(path, shape);
  if (!tape) return std::unexpected(tape.error());
  tape_maker(plan).write(**tape);
  const auto written = (*tape)->finish();
  const double took = written ? run_in_child(machine, path) : 0;
  std::remove(path.c_str());
  if (!written) return std::unexpected(written.error());
  if (took < 0)
    return base::fail(errc::io, "the process that a run's memory is measured in failed");
  return took / static_cast<double>(MiB);
}

result<> memory_of_runs(const target_options& o, std::vector<performance_target>& targets) {
  const auto kiln = sim::load_machine(o.configs + "/kiln.toml");
  if (!kiln) return std::unexpected(kiln.error());
  tape_spec plan{.threads = 8,
                 .accesses = 500'000,
                 .regions = {{0.98, 8 * KiB}, {0.02, 256 * MiB, true}},
                 .in_transaction = 32};
  std::array<double, 2> took{};
  for (double& mib : took) {
    o.progress("memory of a run");
    const auto measured = run_in_child(o, *kiln, plan);
    if (!measured) return std::unexpected(measured.error());
    mib = *measured;
    plan.accesses *= 10;
  }
  targets.push_back(
      {"memory of a run beside tags", "MiB", 64, took[1], true,
       fmt::format("8 cores, kiln; 5 M accesses, and {:.1f} MiB for 0.5 M", took[0])});
  o.measured(targets.back());
  return {};
}

}  // namespace

result<std::vector<performance_target>> measure_sim_targets(const target_options& o) {
  std::vector<performance_target> targets;
  for (const auto part : {memory_of_runs, controllers, hierarchies})
    if (auto done = part(o, targets); !done) return std::unexpected(done.error());
  if (auto done =
          add_rate(o, targets, "cache without time, hits", 80, [] { return find_and_fill(768); });
      !done)
    return std::unexpected(done.error());
  return targets;
}

}  // namespace stele::bench
