// stele_schedules: what `stele crash schedules` runs. It is a program of its own, because it is
// compiled with calls at atomic operations and defines functions of the C library.
#include <explore/line_options.h>
#include <explore/mutant_table.h>
#include <explore/report.h>
#include <explore/schedule/scenarios.h>
#include <fmt/format.h>
#include <sys/personality.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

namespace {

using namespace stele;
using namespace stele::explore;

void print(const std::vector<violation>& all) {
  for (const violation& v : all)
    fmt::print("  VIOLATION: {}\n  {}\n", v.what, replay_command(v.line));
  std::fflush(stdout);
}

// The status of a command that would end with `status`: 2 if the file does not take the findings.
// Then no regular file is left, which could be taken for a whole one.
int write_json(const std::string& file, const nlohmann::json& content, int status) {
  if (file.empty()) return status;
  const bool on_output = file == "-";
  std::ofstream named;
  if (!on_output) named.open(file);
  std::ostream& out = on_output ? std::cout : named;
  out << content.dump(1) << '\n' << std::flush;
  if (out) return status;
  std::cerr << "cannot write " << (on_output ? "to standard output" : file) << ": "
            << std::strerror(errno) << "; the findings are above\n";
  if (std::error_code none; std::filesystem::is_regular_file(file, none))
    std::filesystem::remove(file, none);
  return 2;
}

// Runs all scenarios of all mechanisms, or of one; the last line says whether anything was found.
int run_sweep(const sweep_settings& of, const std::string& json) {
  sweep_settings s = of;
  s.on_outcome = [](const sweep_outcome& o) {
    fmt::print("{:<15} {:<36} {}\n", o.mechanism, o.scenario, summary_of(o.found));
    print(o.found.violations);
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
  auto whole = json_of(sum);
  whole["scenarios"] = rows;
  return write_json(json, whole, sum.violations.empty() ? 0 : 1);
}

// Plants the bugs that only overlapping commits show.
int run_mutants(overlap_mutant_selection c) {
  c.on_outcome = [](const overlap_mutant& m) {
    fmt::print("{:<28} {:<15} {}\n", m.name, m.mechanism,
               m.killed() ? fmt::format("killed in {:.1f} s, {} schedules: {}: {}", m.seconds,
                                        m.schedules, m.scenario, m.what)
                          : fmt::format("SURVIVED {} schedules, {:.1f} s", m.schedules, m.seconds));
    if (m.killed()) fmt::print("  {}\n", replay_command(m.line));
    std::fflush(stdout);
  };
  const auto all = sweep_mutants(c);
  if (!all) return std::cerr << all.error().message << '\n', 2;
  const auto killed = std::ranges::count_if(*all, &overlap_mutant::killed);
  std::uint64_t schedules = 0;
  for (const overlap_mutant& m : *all) schedules += m.schedules;
  fmt::print("{} of {} killed, {} schedules in all\n", killed, all->size(), schedules);
  return static_cast<std::size_t>(killed) == all->size() ? 0 : 1;
}

struct arguments {
  schedule_line run;
  schedule_settings settings;
  sweep_settings all;
  std::string json, line;
  bool sweeps = false, mutants = false, once = false, known = false;
};

void add_options(CLI::App& app, arguments& w) {
  app.add_option("--mechanism", w.run.run_plan.mechanism, "of the run; of a sweep: only this one");
  app.add_option("--workload", w.run.run_plan.workload)->capture_default_str();
  add_options(app, fields_of(w.run));
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
  app.add_option("--json", w.json, "a file for the findings; - for standard output");
  app.add_option("--replay", w.line, "what `stele crash replay` runs for a line of this engine");
  app.add_flag("--sweep", w.sweeps, "all scenarios of every mechanism, or of --mechanism");
  app.add_flag("--mutants", w.mutants,
               "each bug that only overlapping commits show, planted; or --mutant alone");
  app.add_flag("--once", w.once,
               "of --mutants: in one mechanism each, not in every one that it is a bug of");
  app.add_flag("--known", w.known,
               "of --mutants: where a sweep finds the bug late, only the scenario that shows it");
  app.add_option("--scenarios", w.all.prefix,
                 "of a sweep: only the scenarios whose names begin so, such as \"features mixed\"");
  app.add_option("--schedules", w.all.schedules, "of each mechanism in a sweep, of each mutant")
      ->capture_default_str();
}

int run_replay(const arguments& w) {
  const auto line = parse_line<schedule_line>(w.line);
  if (!line) return std::cerr << line.error().message << '\n', 2;
  const auto seen = replay(*line, w.settings);
  if (!seen) return std::cerr << seen.error().message << '\n', 2;
  fmt::print(w.json == "-" ? stderr : stdout, "{}\n", text_of(*seen));
  std::fflush(stdout);
  return write_json(w.json, json_of(*seen), seen->problem.empty() ? 0 : 1);
}

int run_one(const arguments& w) {
  const auto found = explore_schedules(w.run.run_plan, w.run.concurrent, w.settings);
  if (!found) return std::cerr << found.error().message << '\n', 2;
  fmt::print("{}\n", summary_of(*found));
  print(found->violations);
  return write_json(w.json, json_of(*found), found->violations.empty() ? 0 : 1);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Overlapping commits under every schedule, and every crash that may befall them",
               "stele crash schedules");
  arguments w;
  plan& p = w.run.run_plan;
  p.operations = 8;
  p.threads = 2;
  add_options(app, w);
  CLI11_PARSE(app, argc, argv);
  const bool moves = (::personality(0xffffffff) & ADDR_NO_RANDOMIZE) == 0;
  if (moves && ::personality(ADDR_NO_RANDOMIZE) != -1)
    ::execv("/proc/self/exe", argv);  // fixed addresses: a run is the same every time
  if (!w.line.empty()) return run_replay(w);
  const std::string mechanism = app.count("--mechanism") != 0 ? p.mechanism : "";
  if (w.mutants)
    return run_mutants({app.count("--mutant") != 0 ? std::string(name_of(p.mutant)) : "",
                        mechanism,
                        w.once,
                        w.known,
                        w.all.schedules,
                        p.seed,
                        {}});
  if (w.sweeps) {
    w.all.mechanism = mechanism;
    w.all.seed = p.seed, w.all.seconds = w.settings.seconds, w.all.plant = p.mutant;
    return run_sweep(w.all, w.json);
  }
  w.settings.seed = p.seed;
  return run_one(w);
}
