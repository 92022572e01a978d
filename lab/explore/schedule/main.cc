// stele_schedules: what `stele crash schedules` runs. It is a program of its own, because it is
// compiled with calls at atomic operations and defines functions of the C library.
#include <explore/mutant_table.h>
#include <explore/schedule/scenarios.h>
#include <fmt/format.h>
#include <sys/personality.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

namespace {

using namespace stele;
using namespace stele::explore;

// Runs all scenarios of all mechanisms, or of one; the last line says whether anything was found.
int run_sweep(const sweep_settings& of, const std::string& json) {
  sweep_settings s = of;
  s.on_outcome = [](const sweep_outcome& o) {
    fmt::print("{:<15} {:<36} {}\n", o.mechanism, o.scenario, summary_of(o.found));
    for (const violation& v : o.found.violations)
      fmt::print("  VIOLATION: {}\n  stele crash schedules --replay '{}'\n", v.what, v.line);
    std::fflush(stdout);
  };
  const auto all = sweep(s);
  if (!all) return std::cerr << all.error().message << '\n', 2;
  schedule_findings sum;
  auto rows = nlohmann::json::array();
  for (const sweep_outcome& o : *all) {
    sum += o.found;
    rows.push_back(json_of(o.found));
    rows.back()["mechanism"] = o.mechanism, rows.back()["scenario"] = o.scenario;
  }
  fmt::print("in all: {}\n", summary_of(sum));
  if (!json.empty()) {
    auto whole = json_of(sum);
    whole["scenarios"] = rows;
    json == "-" ? void(std::cout << whole.dump(1) << '\n')
                : void(std::ofstream(json) << whole.dump(1) << '\n');
  }
  return sum.violations.empty() ? 0 : 1;
}

// Plants the bugs that only overlapping commits show.
int run_mutants(overlap_mutant_selection c) {
  c.on_outcome = [](const overlap_mutant& m) {
    fmt::print("{:<28} {:<15} {}\n", m.name, m.mechanism,
               m.killed() ? fmt::format("killed in {:.1f} s, {} schedules: {}: {}", m.seconds,
                                        m.schedules, m.scenario, m.what)
                          : fmt::format("SURVIVED {} schedules, {:.1f} s", m.schedules, m.seconds));
    if (m.killed()) fmt::print("  stele crash schedules --replay '{}'\n", m.line);
    std::fflush(stdout);
  };
  const auto all = sweep_mutants(c);
  if (!all) return std::cerr << all.error().message << '\n', 2;
  const auto killed = std::ranges::count_if(*all, &overlap_mutant::killed);
  fmt::print("{} of {} killed\n", killed, all->size());
  return static_cast<std::size_t>(killed) == all->size() ? 0 : 1;
}

struct arguments {
  plan run_plan;
  concurrency_plan concurrent;
  schedule_settings settings;
  sweep_settings all;
  std::string points = "locks", mutant = "none", json, line;
  bool sweeps = false, mutants = false, once = false;
};

void add_options(CLI::App& app, arguments& w) {
  plan& p = w.run_plan;
  app.add_option("--mechanism", p.mechanism, "of the run; of a sweep: only this one");
  app.add_option("--workload", p.workload)->capture_default_str();
  app.add_option("--pool-size", p.pool_size)->capture_default_str();
  app.add_option("--log-size", p.log_size)->capture_default_str();
  app.add_option("--logs", p.log_count)->capture_default_str();
  app.add_option("--ops", p.operations, "operations before those that overlap")
      ->capture_default_str();
  app.add_option("--each", w.concurrent.each, "operations of each thread that overlap")
      ->capture_default_str();
  app.add_option("--threads", p.threads)->capture_default_str();
  app.add_option("--keys", p.keys)->capture_default_str();
  app.add_option("--value-size", p.value_size)->capture_default_str();
  app.add_option("--sync-every", p.sync_every,
                 "commits are ordered, and a thread syncs after so many; 0: all durable")
      ->capture_default_str();
  app.add_option("--media", p.media, "memory or file")->capture_default_str();
  app.add_flag("--shared-log", p.shared_log, "default: all threads commit in one log");
  app.add_flag("--sums", p.block_checksums, "the pool has sums of home's blocks");
  app.add_option("--beside", w.concurrent.beside,
                 "what one more thread does: check, sync, backup, grow, read; several with +");
  app.add_flag("--background", w.concurrent.background, "the mechanism has threads of its own");
  app.add_flag("--mixed", w.concurrent.mixed,
               "of ordered commits: those of every other thread are durable");
  app.add_option("--points", w.points, "where another thread may go on")
      ->capture_default_str()
      ->check(CLI::IsMember({"locks", "stores", "loads"}));
  app.add_option("--preemptions", w.settings.preemptions,
                 "how often a thread that could go on is stopped")
      ->capture_default_str();
  app.add_option("--most", w.settings.max_systematic, "systematic schedules at most")
      ->capture_default_str();
  app.add_option("--random", w.settings.random, "schedules by random priorities")
      ->capture_default_str();
  app.add_option("--bound", w.settings.bound, "crash states a crash point")->capture_default_str();
  app.add_option("--seconds", w.settings.seconds,
                 "of a run, or of each scenario; 0: until its schedules are made")
      ->capture_default_str();
  app.add_option("--seed", p.seed)->capture_default_str();
  app.add_option("--mutant", w.mutant, "plant this bug")->capture_default_str();
  app.add_option("--json", w.json, "a file for the findings; - for standard output");
  app.add_option("--replay", w.line, "a line that a violation printed");
  app.add_flag("--sweep", w.sweeps, "all scenarios of every mechanism, or of --mechanism");
  app.add_flag("--mutants", w.mutants,
               "each bug that only overlapping commits show, planted; or --mutant alone");
  app.add_flag("--once", w.once,
               "of --mutants: in one mechanism each, not in every one that it is a bug of");
  app.add_option("--schedules", w.all.schedules, "of each mechanism in a sweep, of each mutant")
      ->capture_default_str();
}

int run_replay(const arguments& w) {
  const auto l = parse_schedule(w.line);
  std::string explanation;
  const auto wrong = l ? replay_schedule(*l, w.settings, &explanation) : std::unexpected(l.error());
  if (!wrong) return std::cerr << wrong.error().message << '\n', 2;
  std::cout << explanation << (wrong->empty() ? "nothing is wrong" : *wrong) << '\n';
  return wrong->empty() ? 0 : 1;
}

int run_one(const arguments& w) {
  const auto found = explore_schedules(w.run_plan, w.concurrent, w.settings);
  if (!found) return std::cerr << found.error().message << '\n', 2;
  fmt::print("{}\n", summary_of(*found));
  for (const violation& v : found->violations)
    fmt::print("VIOLATION: {}\n  stele crash schedules --replay '{}'\n", v.what, v.line);
  std::fflush(stdout);
  if (w.json == "-") std::cout << json_of(*found).dump(1) << '\n';
  if (!w.json.empty() && w.json != "-") std::ofstream(w.json) << json_of(*found).dump(1) << '\n';
  return found->violations.empty() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Overlapping commits under every schedule, and every crash that may befall them",
               "stele crash schedules");
  arguments w;
  w.run_plan.operations = 8;
  w.run_plan.threads = 2;
  add_options(app, w);
  CLI11_PARSE(app, argc, argv);
  const bool moves = (::personality(0xffffffff) & ADDR_NO_RANDOMIZE) == 0;
  if (moves && ::personality(ADDR_NO_RANDOMIZE) != -1)
    ::execv("/proc/self/exe", argv);  // fixed addresses: a run is the same every time
  if (!w.line.empty()) return run_replay(w);
  const auto named = mutant_named(w.mutant);
  if (!named) return std::cerr << "there is no mutant " << w.mutant << '\n', 2;
  const std::string mechanism = app.count("--mechanism") != 0 ? w.run_plan.mechanism : "";
  if (w.mutants)
    return run_mutants({w.mutant == "none" ? "" : w.mutant,
                        mechanism,
                        w.once,
                        w.all.schedules,
                        w.run_plan.seed,
                        {}});
  if (w.sweeps) {
    w.all.mechanism = mechanism;
    w.all.seed = w.run_plan.seed, w.all.seconds = w.settings.seconds, w.all.plant = *named;
    return run_sweep(w.all, w.json);
  }
  w.run_plan.mutant = *named;
  w.settings.seed = w.run_plan.seed;
  w.concurrent.points = w.points == "loads"    ? schedule::granularity::loads
                        : w.points == "stores" ? schedule::granularity::stores
                                               : schedule::granularity::locks;
  return run_one(w);
}
