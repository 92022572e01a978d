// stele-crash, the program that `stele crash` executes: judges every crash state of a run with the
// real recovery; crashes behind a cache or a memory controller; plants bugs; replays a crash state
// from its line. Executes stele-foreign for `foreign`.
#include <cli/command.h>
#include <cli/output.h>
#include <explore/cache_crashes.h>
#include <explore/controller_crashes.h>
#include <explore/fences.h>
#include <explore/line_options.h>
#include <explore/mutants.h>
#include <explore/replay.h>
#include <explore/report.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <stele/published.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

namespace stele::cli {
namespace {

using namespace explore;

struct options {
  plan what;
  settings how;
  cache_settings cache;
  controller_settings controller;
  std::string policy = "all";
  mutant_selection mutants;
  fence_selection fences;
  std::string line, json;
};

std::FILE* text_output(const options& o) {
  return o.json == "-" ? stderr : stdout;
}

void show_progress(const findings& f) {
  print_error("\r\033[K{}/{} crash points, {} states, {:.0f} states/s, {} violations", f.points,
              f.points_total, f.states, f.states_per_s(), f.violations.size());
}

void show_crashes(const findings& f) {
  print_error("\r\033[K{}/{} crashes, {:.0f} crashes/s, {} violations", f.points, f.points_total,
              f.states_per_s(), f.violations.size());
}

// Runs, and prints the findings as a sentence and as JSON.
void run_and_report(options& o, const std::function<result<findings>(bool)>& run,
                    std::string (*sentence)(const findings&),
                    nlohmann::json (*json)(const findings&)) {
  const bool interactive = isatty(STDERR_FILENO) != 0;
  const auto found = run(interactive);
  if (interactive) print_error("\r\033[K");
  if (!found) fail(found.error());
  fmt::print(text_output(o), "{}/{}: {}{}\n", o.what.mechanism, o.what.workload, sentence(*found),
             found->cancelled ? " (interrupted)" : "");
  for (const violation& v : found->violations)
    fmt::print(text_output(o), "  {}\n    {}\n", v.what, replay_command(v.line));
  if (!o.json.empty()) write_json(o.json, json(*found));
  if (!found->violations.empty()) throw CLI::RuntimeError(1);
  if (found->cancelled) throw CLI::RuntimeError(130);
}

void run(options& o) {
  auto explored = [&](bool interactive) {
    if (interactive) o.how.progress = show_progress;
    o.how.cancelled = interrupted;
    return explore::explore(o.what, o.how);
  };
  run_and_report(o, explored, summary_of, [](const findings& f) { return json_of(f); });
}

void run_cache(options& o) {
  auto crashed = [&](bool interactive) {
    if (interactive) o.cache.progress = show_crashes;
    o.cache.cancelled = interrupted;
    o.cache.max_violations = o.how.max_violations;
    if (const auto policy = sim::replacement_named(o.policy)) o.cache.policies = {(*policy)->name};
    return crash_behind_cache(o.what, o.cache);
  };
  run_and_report(o, crashed, crash_summary_of, json_of_crashes);
}

void run_controller(options& o) {
  auto crashed = [&](bool interactive) {
    if (interactive) o.controller.progress = show_crashes;
    o.controller.cancelled = interrupted;
    o.controller.max_violations = o.how.max_violations;
    return crash_behind_controller(o.what, o.controller);
  };
  run_and_report(o, crashed, crash_summary_of, json_of_crashes);
}

void run_mutants(options& o) {
  o.mutants.cancelled = interrupted;
  o.mutants.on_outcome = [&](const mutant_outcome& m) {
    fmt::print(text_output(o), "{:24} {:10} {}\n", m.mutant.name, m.mechanism,
               m.killed() ? "killed: " + m.what : fmt::format("SURVIVED {} states", m.states));
    std::fflush(text_output(o));
  };
  const auto outcomes = explore_mutants(o.mutants);
  if (outcomes.empty() && !interrupted())
    fail("there is no such mutant, or none that this mechanism runs");
  const double score = score_of(outcomes);
  std::uint64_t states = 0;
  for (const mutant_outcome& m : outcomes) states += m.states;
  fmt::print(text_output(o), "{} mutants, {:.1f} % killed, {} states explored\n", outcomes.size(),
             100 * score, states);
  if (!o.json.empty()) write_json(o.json, json_of(outcomes));
  if (interrupted()) throw CLI::RuntimeError(130);
  if (score < 1) throw CLI::RuntimeError(1);
}

void run_fences(options& o) {
  o.fences.cancelled = interrupted;
  o.fences.on_outcome = [&](const fence_outcome& f) {
    fmt::print(text_output(o), "{:22} {}; passed by {}\n", f.site,
               f.killed() ? "killed: " + f.what
                          : fmt::format("SURVIVED {} states{}{}", f.states,
                                        f.reason.empty() ? "" : "; it is for this: ", f.reason),
               fmt::join(f.mechanisms, ", "));
    std::fflush(text_output(o));
  };
  const auto outcomes = explore_fences(o.fences);
  if (outcomes.empty() && !interrupted())
    fail("there is no such fence, or none that this mechanism passes");
  const auto killed = std::ranges::count_if(outcomes, &fence_outcome::killed);
  const auto unexplained = std::ranges::count_if(outcomes, &fence_outcome::unexplained);
  fmt::print(text_output(o),
             "{} fences, {} killed, {} kept for a reason that no run shows, {} survived\n",
             outcomes.size(), killed,
             outcomes.size() - static_cast<std::size_t>(killed + unexplained), unexplained);
  if (!o.json.empty()) write_json(o.json, json_of(outcomes));
  if (interrupted()) throw CLI::RuntimeError(130);
  if (unexplained != 0) throw CLI::RuntimeError(1);
}

// A program of its own, because what it explores is no pool.
constexpr const char* foreign_program = "stele-foreign";

#ifdef STELE_HAVE_SCHEDULES
// A program of its own, because it links a library that is compiled with other options.
[[noreturn]] void exec_schedules(std::vector<std::string> words) {
  words.insert(words.begin(), "stele_schedules");
  std::vector<char*> arguments;
  for (std::string& w : words) arguments.push_back(w.data());
  arguments.push_back(nullptr);
  std::exit(exec_beside("stele_schedules", arguments.data()));
}
#endif

template <class Line>
result<replay_result> replay_parsed(const std::string& text) {
  const auto line = parse_line<Line>(text);
  return line ? replay(*line) : std::unexpected(line.error());
}

void run_replay(options& o) {
  const auto engine = engine_of(o.line);
  if (!engine) fail(engine.error());
#ifdef STELE_HAVE_SCHEDULES
  if (*engine == "schedules") exec_schedules({"--replay", o.line, "--json", o.json});
#else
  if (*engine == "schedules") fail("this build has no explorer of schedules; use another build");
#endif
  const auto seen = *engine == "cache"        ? replay_parsed<cache_crash>(o.line)
                    : *engine == "controller" ? replay_parsed<controller_crash>(o.line)
                                              : replay_parsed<run_crash>(o.line);
  if (!seen) fail(seen.error());
  fmt::print(text_output(o), "{}\n", text_of(*seen));
  if (!o.json.empty()) write_json(o.json, json_of(*seen));
  if (!seen->problem.empty()) throw CLI::RuntimeError(1);
}

void add_json(CLI::App& command, options& o) {
  command.add_option("--json", o.json, "write the findings to FILE; - is standard output");
}

void add_plan_options(CLI::App& command, options& o) {
  command.add_option("--mechanism", o.what.mechanism, "none, base, redo, redo-async, undo, ...")
      ->capture_default_str();
  command
      .add_option("--workload", o.what.workload,
                  fmt::format("{}, churn, large, edges, stores, sqlite, sqlite-512",
                              fmt::join(workloads::workload_names(), ", ")))
      ->capture_default_str();
  add_options(command, fields_of(o.what));
  command.add_option("--violations", o.how.max_violations, "end after so many")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  add_json(command, o);
}

void add_run_options(CLI::App& command, options& o) {
  add_plan_options(command, o);
  add_options(command, fields_of_files(o.what));
  command.add_option("--dir", o.what.directory, "where that file is; default: in memory");
  command
      .add_option("--bound", o.how.bound,
                  "states a crash point; where there are more they are sampled")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command
      .add_option("--recovery-depth", o.how.recovery_depth,
                  "1: crashes in the run; 2: also in the recovery; and so on")
      ->capture_default_str()
      ->check(CLI::Range(1, 16));
  command
      .add_option("--recovery-samples", o.how.recovery_samples, "recoveries explored a crash point")
      ->capture_default_str();
  command
      .add_option("--recovery-bound", o.how.recovery_bound, "states a crash point of a recovery")
      ->capture_default_str();
  command
      .add_option("--recovery-ops", o.how.recovery_operations,
                  "operations after an explored recovery")
      ->capture_default_str();
}

void add_cache_options(CLI::App& command, options& o) {
  add_plan_options(command, o);
  std::set<std::string> policies = {"all"};
  for (const std::string_view name : all_policies()) policies.emplace(name);
  command
      .add_option("--policy", o.policy,
                  "which line leaves the cache: lru, plru, bip, random; all: a share each")
      ->capture_default_str()
      ->check(CLI::IsMember(policies));
  command.add_option("--crashes", o.cache.crashes, "how many")->capture_default_str();
  command.add_option("--cache-lines", o.cache.lines, "of 64 bytes; few of them evict often")
      ->capture_default_str();
  command.add_option("--ways", o.cache.ways, "lines of a set")->capture_default_str();
}

void add_controller_options(CLI::App& command, options& o) {
  add_plan_options(command, o);
  command
      .add_option("--scheduler", o.controller.scheduler,
                  "how the controller orders writes: strict, rule1, rule2, rules; ideal, bare, "
                  "bare_rule1, bare_rule2, commit_first, which lose data")
      ->capture_default_str();
  command.add_option("--crashes", o.controller.crashes, "how many")->capture_default_str();
  command.add_flag(
      "--expired", o.controller.expired,
      "the power is off for longer than logs are kept: recovery may refuse, but not be wrong");
}

void add_crash(CLI::App& app) {
  const auto o = std::make_shared<options>();
  CLI::App* crash = app.add_subcommand(
      "crash", "explore crash states: run, cache, controller, schedules, mutants, foreign, replay");
  crash->require_subcommand(1);
  CLI::App* one =
      crash->add_subcommand("run", "every crash state of a run, judged by real recovery");
  add_run_options(*one, *o);
  one->callback([o] { run(*o); });
  CLI::App* behind = crash->add_subcommand(
      "cache", "random crashes behind a write-back cache, judged by real recovery");
  add_cache_options(*behind, *o);
  behind->callback([o] { run_cache(*o); });
  const auto c = std::make_shared<options>();
  c->what.mechanism = "base";
  CLI::App* ordered = crash->add_subcommand(
      "controller",
      "crashes behind a memory controller that reorders writes, judged by real recovery");
  add_controller_options(*ordered, *c);
  ordered->callback([c] { run_controller(*c); });
  CLI::App* all =
      crash->add_subcommand("mutants", "plant bugs one at a time and see which are found");
  all->add_option("--mechanism", o->mutants.mechanism, "only what can break this mechanism");
  all->add_option("--mutant", o->mutants.name, "only this one");
  all->add_option("--seed", o->mutants.seed, "of content and operations")->capture_default_str();
  add_json(*all, *o);
  all->callback([o] { run_mutants(*o); });
#ifdef STELE_HAVE_SCHEDULES
  CLI::App* overlapping =
      crash->add_subcommand("schedules",
                            "overlapping commits under every schedule, and every crash that may "
                            "befall them; see its own --help");
  overlapping->prefix_command()->set_help_flag();
  overlapping->callback([overlapping] { exec_schedules(overlapping->remaining()); });
#endif
  crash->add_subcommand("foreign",
                        "the crash states of a program that does not link Stele, judged by its own "
                        "checker; see its own --help");
  CLI::App* without = crash->add_subcommand(
      "fences", "leave each fence out, one at a time, and see whether anything notices");
  without->add_option("--mechanism", o->fences.mechanism, "only those that this mechanism passes");
  without->add_option("--site", o->fences.site,
                      "only this one, by file, line and function: bulk_write_back.h:71:truncate");
  without->add_option("--seed", o->fences.seed, "of content and operations")->capture_default_str();
  add_json(*without, *o);
  without->callback([o] { run_fences(*o); });
  CLI::App* again = crash->add_subcommand("replay", "one crash state, from the line that names it");
  again->add_option("line", o->line, "the line, in quotes")->required();
  add_json(*again, *o);
  again->callback([o] { run_replay(*o); });
}

}  // namespace
}  // namespace stele::cli

int main(int argc, char** argv) {
  stele::cli::prepare_process();
  if (argc > 2 && argv[2] == std::string_view("foreign"))
    return stele::cli::exec_beside(stele::cli::foreign_program, argv + 1);
  stele::use_published();
  CLI::App app{"Stele's crash explorer."};
  stele::cli::add_crash(app);
  return stele::cli::run(app, argc, argv, STELE_VERSION);
}
