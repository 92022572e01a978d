// stele crash: every crash state of a run judged by real recovery; planted bugs; a state replayed from its line.
#include <cli/command.h>
#include <explore/mutants.h>
#include <explore/replay.h>
#include <explore/report.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

namespace stele::cli {
namespace {

using namespace explore;

struct options {
  plan what;
  settings how;
  mutant_choice mutants;
  std::string mutant = "none", line, json;
};

std::FILE* people(const options& o) {
  return o.json == "-" ? stderr : stdout;
}

void show_progress(const findings& f) {
  fmt::print(stderr, "\r\033[K{}/{} crash points, {} states, {:.0f} states/s, {} violations", f.points, f.points_total,
             f.states, f.states_per_s(), f.violations.size());
}

void run(options& o) {
  const auto mutant = base::mutant_named(o.mutant);
  if (!mutant) fail(fmt::format("there is no mutant '{}'; see `stele crash mutants`", o.mutant));
  o.what.mutant = *mutant;
  const bool watched = isatty(STDERR_FILENO) != 0;
  if (watched) o.how.progress = show_progress;
  o.how.cancelled = interrupted;
  const auto found = explore::explore(o.what, o.how);
  if (watched) fmt::print(stderr, "\r\033[K");
  if (!found) fail(found.error());
  fmt::print(people(o), "{}/{}: {}{}\n", o.what.mechanism, o.what.workload, sentence_of(*found),
             found->cancelled ? " (interrupted)" : "");
  for (const violation& v : found->violations)
    fmt::print(people(o), "  {}\n    stele crash replay \"{}\"\n", v.what, v.line);
  if (!o.json.empty()) write_json(o.json, json_of(*found));
  if (!found->violations.empty()) throw CLI::RuntimeError(1);
  if (found->cancelled) throw CLI::RuntimeError(130);
}

void run_mutants(options& o) {
  o.mutants.cancelled = interrupted;
  o.mutants.told = [&](const mutant_outcome& m) {
    fmt::print(people(o), "{:24} {:10} {}\n", m.mutant.name, m.mechanism,
               m.killed() ? "killed: " + m.what : fmt::format("SURVIVED {} states", m.states));
    std::fflush(people(o));
  };
  const auto outcomes = explore_mutants(o.mutants);
  if (outcomes.empty() && !interrupted()) fail("there is no such mutant, or none that this mechanism runs");
  const double score = score_of(outcomes);
  fmt::print(people(o), "{} mutants, {:.1f} % killed\n", outcomes.size(), 100 * score);
  if (!o.json.empty()) write_json(o.json, json_of(outcomes));
  if (interrupted()) throw CLI::RuntimeError(130);
  if (score < 1) throw CLI::RuntimeError(1);
}

void run_replay(options& o) {
  const auto line = parse_line(o.line);
  if (!line) fail(line.error());
  const auto seen = replay(*line);
  if (!seen) fail(seen.error());
  fmt::print(people(o), "{}{}\n", seen->story,
             seen->problem.empty() ? "recovered as it should be" : "VIOLATION: " + seen->problem);
  if (!o.json.empty()) write_json(o.json, {{"story", seen->story}, {"problem", seen->problem}});
  if (!seen->problem.empty()) throw CLI::RuntimeError(1);
}

void add_json(CLI::App& command, options& o) {
  command.add_option("--json", o.json, "write the findings to FILE; - is standard output");
}

void add_run_options(CLI::App& command, options& o) {
  command.add_option("--mechanism", o.what.mechanism, "none, base, redo, redo-async, undo, ...")->capture_default_str();
  command.add_option("--reopen", o.what.reopen, "the mechanism that opens the pool after a crash; default: the same");
  command.add_option("--workload", o.what.workload, "sps, hash, rbtree, bptree, kv, churn")->capture_default_str();
  command.add_option("--pool-size", o.what.pool_size, "bytes")->capture_default_str();
  command.add_option("--log-size", o.what.log_size, "bytes of each log; small ones wrap often")->capture_default_str();
  command.add_option("--ops", o.what.operations, "operations, one a transaction")->capture_default_str();
  command.add_option("--keys", o.what.keys, "size of the key space")->capture_default_str();
  command.add_option("--value-size", o.what.value_size, "bytes")->capture_default_str();
  command.add_option("--threads", o.what.threads, "threads, taking turns")->capture_default_str()->check(CLI::Range(1, 64));
  command.add_option("--sync-every", o.what.sync_every, "ordered commits, a sync after so many operations; 0: durable ones")
      ->capture_default_str();
  command.add_option("--warm-up", o.what.warm_up, "transactions in each mode before adaptive chooses")->capture_default_str();
  command.add_flag("--whole-cache", o.what.whole_cache, "bulk persistence of the whole cache, not of the lines that logs name");
  command.add_option("--seed", o.what.seed, "of content, operations and samples")->capture_default_str();
  command.add_option("--mutant", o.mutant, "plant this bug")->capture_default_str();
  command.add_option("--bound", o.how.bound, "states a crash point; where there are more they are sampled")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command.add_option("--recovery-depth", o.how.recovery_depth, "1: crashes in the run; 2: also in the recovery; and so on")
      ->capture_default_str()
      ->check(CLI::Range(1, 16));
  command.add_option("--recovery-samples", o.how.recovery_samples, "recoveries explored a crash point")
      ->capture_default_str();
  command.add_option("--recovery-bound", o.how.recovery_bound, "states a crash point of a recovery")->capture_default_str();
  command.add_option("--recovery-ops", o.how.recovery_operations, "operations after an explored recovery")
      ->capture_default_str();
  command.add_option("--violations", o.how.most_violations, "end after so many")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  add_json(command, o);
}

}  // namespace

void add_crash(CLI::App& app) {
  const auto o = std::make_shared<options>();
  CLI::App* crash = app.add_subcommand("crash", "explore crash states: run, mutants, replay");
  crash->require_subcommand(1);
  CLI::App* one = crash->add_subcommand("run", "every crash state of a run, judged by real recovery");
  add_run_options(*one, *o);
  one->callback([o] { run(*o); });
  CLI::App* all = crash->add_subcommand("mutants", "plant bugs one at a time and see which are found");
  all->add_option("--mechanism", o->mutants.mechanism, "only what can break this mechanism");
  all->add_option("--mutant", o->mutants.name, "only this one");
  all->add_option("--seed", o->mutants.seed, "of content and operations")->capture_default_str();
  add_json(*all, *o);
  all->callback([o] { run_mutants(*o); });
  CLI::App* again = crash->add_subcommand("replay", "one crash state, from the line that names it");
  again->add_option("line", o->line, "the line, in quotes")->required();
  add_json(*again, *o);
  again->callback([o] { run_replay(*o); });
}

}  // namespace stele::cli
