// stele sim: runs a tape on a simulated machine, or a trace on a memory; compares designs or values
// of a configuration key; crashes a machine; prints a machine with every key.
#include <cli/command.h>
#include <cli/output.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sim/checkpoint.h>
#include <sim/config_file.h>
#include <sim/crash.h>
#include <sim/feed/convert.h>
#include <sim/job_list.h>
#include <sim/machine.h>
#include <sim/memory_run.h>
#include <sim/nearest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

namespace stele::cli {
namespace {

struct options {
  std::string machine = "kiln", design, json, csv, epochs_csv, histograms_csv, jobs;
  std::vector<std::string> settings, designs, over, tapes, shown = {"simulated_ns"};
  double timeline_ns = 0, at_ns = -1, checkpoint_at_ns = -1, checkpoint_every_ns = 0;
  std::uint64_t crashes = 1000;
  std::string fault = "none";
  sim::run_options run;
  sim::memory_run_options memory;
};

void or_fail(const result<>& r) {
  if (!r) fail(r.error());
}

std::vector<std::string> presets() {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(STELE_CONFIGS, none))
    if (entry.path().extension() == ".toml") names.push_back(entry.path().stem().string());
  std::ranges::sort(names);
  return names;
}

// The name of a preset has neither a slash nor the ending .toml; anything else is a file.
std::string file_of(const std::string& machine) {
  if (machine.find('/') != machine.npos || machine.ends_with(".toml")) return machine;
  const auto names = presets();
  if (names.empty())
    fail(fmt::format("there are no presets in {}; give --machine a file", STELE_CONFIGS));
  if (std::ranges::find(names, machine) == names.end())
    fail(fmt::format(
        "there is no preset '{}'; the nearest is '{}' (of {}); a file ends in .toml", machine,
        sim::nearest(machine, std::vector<std::string_view>(names.begin(), names.end())),
        fmt::join(names, ", ")));
  return fmt::format("{}/{}.toml", STELE_CONFIGS, machine);
}

struct setting {
  std::string key, value;
};

setting parse_setting(const std::string& option, const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == 0 || equals == text.npos)
    fail(fmt::format("{} {}: give a key and a value, as in l3.ways=8", option, text));
  return {text.substr(0, equals), text.substr(equals + 1)};
}

sim::machine_config machine_of(const options& o) {
  auto m = value_or_fail(sim::load_machine(file_of(o.machine)));
  for (const std::string& text : o.settings) {
    const auto [key, value] = parse_setting("--set", text);
    or_fail(sim::set_key(m, key, value));
  }
  return m;
}

// A line on the terminal that shows how much of its tape or trace a run has consumed.
class progress_line {
 public:
  progress_line(const std::string& tape, std::string what) : what_(std::move(what)) {
    std::error_code none;
    const auto size = std::filesystem::file_size(tape, none);
    if (!none) megabytes_ = static_cast<double>(size) / 1e6;
  }
  ~progress_line() {
    if (watched_) print_error("\r\033[K");
  }
  progress_line(const progress_line&) = delete;
  progress_line& operator=(const progress_line&) = delete;

  void show(double share) {
    const int percent = static_cast<int>(share * 100);
    if (!watched_ || percent == shown_) return;
    shown_ = percent;
    print_error("\r\033[K{}: {:.1f} of {:.1f} MB read, {} %", what_, share * megabytes_, megabytes_,
                percent);
  }

 private:
  const bool watched_ = isatty(STDERR_FILENO) != 0;
  std::string what_;
  double megabytes_ = 0;
  int shown_ = -1;
};

// Empty when the run was interrupted.
std::optional<sim::run_result> run_one(const sim::machine_config& m, const options& o,
                                       const std::string& label) {
  or_fail(sim::check_machine(m));
  sim::run_options run = o.run;
  progress_line line(run.tape, label.empty() ? m.design.name : label);
  run.timeline_interval = sim::from_ns(o.timeline_ns);
  run.progress = [&](double share) { line.show(share); };
  run.cancelled = interrupted;
  auto done = sim::run_machine(m, run);
  if (!done && done.error().code == errc::cancelled) return std::nullopt;
  sim::run_result r = value_or_fail(std::move(done));
  r.label = label;
  return r;
}

void report(const options& o, const std::string& table, const nlohmann::ordered_json& content) {
  fmt::print(o.json == "-" ? stderr : stdout, "{}", table);
  if (!o.json.empty()) write_ordered_json(o.json, content);
}

void report(const options& o, const std::string& table, const nlohmann::ordered_json& content,
            std::span<const sim::run_result> runs) {
  report(o, table, content);
  const std::pair<const std::string*, std::string (*)(std::span<const sim::run_result>)> tables[] =
      {{&o.csv, sim::csv_of},
       {&o.epochs_csv, sim::csv_of_epochs},
       {&o.histograms_csv, sim::csv_of_histograms}};
  for (const auto& [file, text] : tables)
    if (!file->empty()) {
      std::string lines = text(runs);
      lines.erase(lines.find_last_not_of('\n') + 1);
      write_text(*file, lines);
    }
}

[[noreturn]] void say_interrupted(const std::string& what) {
  print_error("stele: interrupted; {}\n", what);
  throw CLI::RuntimeError(130);
}

// What the command line leaves out is the checkpoint's.
sim::machine_config machine_of_resumed(const CLI::App& command, options& o) {
  const auto stored = value_or_fail(sim::read_checkpoint(o.run.resume));
  const sim::checkpoint_subject& then = stored.subject;
  const auto given = [&](const char* option) { return command.count(option) != 0; };
  if (!given("tape")) o.run.tape = then.tape;
  if (!given("--seed")) o.run.seed = then.seed;
  if (!given("--warm-up")) o.run.warm_up_transactions = then.warm_up_transactions;
  if (!given("--timeline-ns")) o.timeline_ns = static_cast<double>(then.timeline_interval) / 1000;
  return given("--machine") || given("--set") || given("--design")
             ? machine_of(o)
             : value_or_fail(sim::machine_of(o.run.resume, then));
}

void add_checkpoints(options& o, std::size_t& written) {
  if (o.checkpoint_at_ns >= 0) o.run.checkpoint_at = sim::from_ns(o.checkpoint_at_ns);
  o.run.checkpoint_every = sim::from_ns(o.checkpoint_every_ns);
  o.run.checkpointed = [&written](const result<sim::picoseconds>& at) {
    written += at.has_value();
    if (!at) print_error("stele: {}; the run goes on\n", at.error().message);
  };
}

void run_alone(const CLI::App& command, options& o) {
  sim::machine_config m = o.run.resume.empty() ? machine_of(o) : machine_of_resumed(command, o);
  if (!o.design.empty()) or_fail(sim::set_key(m, "design.name", o.design));
  std::size_t checkpoints = 0;
  add_checkpoints(o, checkpoints);
  const auto r = run_one(m, o, "");
  if (!r && o.run.checkpoint.empty()) say_interrupted("a run that is not over has no result");
  if (!r)
    say_interrupted(fmt::format("go on with the same options and --resume {}", o.run.checkpoint));
  if (checkpoints == 0 && o.checkpoint_at_ns >= 0)
    print_error("stele: the run ended before --checkpoint-at, so {} was not written\n",
                o.run.checkpoint);
  report(o, sim::table_of(*r), sim::json_of(*r), std::span(&*r, 1));
}

void run_memory_alone(const options& o) {
  const sim::machine_config m = machine_of(o);
  or_fail(sim::check_machine(m));
  sim::memory_run_options run = o.memory;
  progress_line line(run.trace, run.memory);
  run.timeline_interval = sim::from_ns(o.timeline_ns);
  run.progress = [&](double share) { line.show(share); };
  run.cancelled = interrupted;
  auto done = sim::run_memory(m, run);
  if (!done && done.error().code == errc::cancelled)
    say_interrupted("a run that is not over has no result");
  const sim::run_result r = value_or_fail(std::move(done));
  report(o, sim::table_of(r), sim::json_of(r), std::span(&r, 1));
}

void refuse_commands(const options& o) {
  if (!o.run.commands.empty())
    fail("--commands: each run would write the same files; give it to stele sim run");
}

void compare(const options& o) {
  refuse_commands(o);
  std::vector<sim::run_result> results;
  for (const sim::machine_config& m : value_or_fail(sim::with_designs(machine_of(o), o.designs))) {
    auto r = run_one(m, o, m.design.name);
    if (!r) break;
    results.push_back(std::move(*r));
  }
  if (results.empty()) say_interrupted("no run is over");
  report(o, sim::table_of_all(results), sim::json_of_all(results), results);
  if (results.size() < o.designs.size())
    say_interrupted(fmt::format("{} of {} runs are over", results.size(), o.designs.size()));
}

std::vector<std::string> parts_of(const std::string& list) {
  std::vector<std::string> parts;
  for (std::size_t at = 0, comma = 0; comma != list.npos; at = comma + 1)
    parts.push_back(list.substr(at, (comma = list.find(',', at)) - at));
  return parts;
}

void check_shown(const options& o, const sim::run_result& first) {
  std::vector<std::string_view> paths = {"simulated_ns"};
  for (const sim::quantity& q : first.quantities) paths.push_back(q.path);
  for (const std::string& path : o.shown)
    if (std::ranges::find(paths, path) == paths.end())
      fail(fmt::format("--show {}: a run has no such quantity; the nearest is '{}'", path,
                       sim::nearest(path, paths)));
}

std::vector<sim::machine_config> machines_of(const options& o, sim::sweep& s) {
  const sim::machine_config m = machine_of(o);
  const auto [key, values] = parse_setting("--over", o.over.front());
  if (key == "design.name")
    fail("--over design.name: designs stand side by side with stele sim compare --designs");
  s.key = key;
  s.values = parts_of(values);
  s.columns = o.designs.empty() ? std::vector{m.design.name} : o.designs;
  std::vector<sim::machine_config> machines;
  for (const std::string& value : s.values) {
    sim::machine_config one = m;
    or_fail(sim::set_key(one, key, value));
    for (sim::machine_config& made : value_or_fail(sim::with_designs(one, s.columns)))
      machines.push_back(std::move(made));
  }
  return machines;
}

void list_jobs(const options& o) {
  const auto base = value_or_fail(sim::load_machine(file_of(o.machine)));
  sim::sweep_axes axes{.machine = o.machine,
                       .base = base,
                       .keys = {},
                       .designs = o.designs.empty() ? std::vector{base.design.name} : o.designs,
                       .tapes = o.tapes,
                       .seed = o.run.seed,
                       .warm_up_transactions = o.run.warm_up_transactions};
  if (!o.run.tape.empty()) axes.tapes.push_back(o.run.tape);
  if (axes.tapes.empty()) fail("--out: name the tapes of the sweep with --tapes");
  for (const std::string& text : o.settings) {
    const auto [key, value] = parse_setting("--set", text);
    axes.keys.push_back({key, {value}});
  }
  for (const std::string& text : o.over) {
    const auto [key, values] = parse_setting("--over", text);
    axes.keys.push_back({key, parts_of(values)});
  }
  const auto list = value_or_fail(sim::job_list_of(axes));
  output out(o.jobs);
  out.write(list.text);
  out.keep();
  fmt::print("{} points in {}\n", list.points, o.jobs);
}

void sweep(const options& o) {
  refuse_commands(o);
  if (!o.jobs.empty()) return list_jobs(o);
  if (o.run.tape.empty() || o.over.size() != 1)
    fail("without --out a sweep takes one tape and one --over; --out FILE lists the jobs of any");
  sim::sweep s;
  const auto machines = machines_of(o, s);
  for (const sim::machine_config& m : machines) {
    const std::string& value = s.values[s.runs.size() / s.columns.size()];
    auto r = run_one(m, o, fmt::format("{}={}, {}", s.key, value, m.design.name));
    if (!r) break;
    if (s.runs.empty()) check_shown(o, *r);
    s.runs.push_back(std::move(*r));
  }
  if (s.runs.empty()) say_interrupted("no run is over");
  std::string tables;
  for (const std::string& path : o.shown)
    tables += (tables.empty() ? "" : "\n") + sim::table_of(s, path);
  report(o, tables, sim::json_of(s), s.runs);
  if (s.runs.size() < machines.size())
    say_interrupted(fmt::format("{} of {} runs are over", s.runs.size(), machines.size()));
}

void print_machine(const options& o) {
  const sim::machine_config m = machine_of(o);
  or_fail(sim::check_machine(m));
  fmt::print("{}", sim::toml_of(m));
}

void add_settings(CLI::App& command, options& o) {
  command.add_option("--set", o.settings, "key=value: a key of the machine, as often as needed")
      ->type_size(1)
      ->allow_extra_args(false);
}

sim::kiln_mutant kiln_mutant_named(const std::string& name) {
  std::vector<std::string_view> known = {name_of(sim::kiln_mutant::none)};
  for (const sim::kiln_mutant f : sim::kiln_mutants) known.push_back(name_of(f));
  const auto found = std::ranges::find(known, name);
  if (found == known.end())
    fail(fmt::format("there is no planted bug '{}'; choose one of {}", name,
                     fmt::join(known, ", ")));
  return static_cast<sim::kiln_mutant>(found - known.begin());
}

void crash(const options& o) {
  const sim::machine_config m = machine_of(o);
  or_fail(sim::check_machine(m));
  sim::crash_options c{.crashes = o.crashes,
                       .mutant = kiln_mutant_named(o.fault),
                       .seed = o.run.seed,
                       .most_violations = 10,
                       .cancelled = interrupted};
  if (o.at_ns >= 0) c.at = sim::from_ns(o.at_ns);
  const auto r = value_or_fail(sim::crash_machine(m, o.run.tape, c));
  std::string table = fmt::format(
      "{} crashes of {} with {}: {} met pending lines, {} superseded ones, {} copies; {} "
      "violations\n",
      r.crashes, m.name, m.design.name, r.with_pending, r.with_versions, r.with_copies,
      r.violations.size());
  nlohmann::ordered_json j{{"crashes", r.crashes},
                           {"transactions", r.transactions},
                           {"with_pending", r.with_pending},
                           {"with_versions", r.with_versions},
                           {"with_copies", r.with_copies},
                           {"torn_lines", r.torn_lines},
                           {"violations", nlohmann::ordered_json::array()}};
  for (const sim::crash_violation& v : r.violations) {
    const std::string again =
        fmt::format("stele sim crash {} --machine {} --seed {} --fault {} --at-ns {}.{:03}",
                    o.run.tape, o.machine, o.run.seed, o.fault, v.at / 1000, v.at % 1000);
    table += fmt::format("  at {} ps: {}\n    {}\n", v.at, v.what, again);
    j["violations"].push_back({{"at_ps", v.at}, {"what", v.what}, {"replay", again}});
  }
  report(o, table, j);
  if (!r.violations.empty()) throw CLI::RuntimeError(1);
}

void mutants(const options& o) {
  const auto verdicts = sim::kill_mutants(o.run.seed, interrupted);
  if (interrupted()) say_interrupted("nothing is judged");
  std::string table;
  nlohmann::ordered_json j{{"mutants", nlohmann::ordered_json::array()}};
  std::size_t killed = 0;
  for (const sim::mutant_verdict& v : verdicts) {
    killed += v.killed;
    table += fmt::format("{:<24} {:<8} after {} crashes  {}\n", name_of(v.mutant),
                         v.killed ? "killed" : "SURVIVED", v.crashes, v.by);
    j["mutants"].push_back(
        {{"name", name_of(v.mutant)}, {"mechanism", "kiln"}, {"killed", v.killed}, {"by", v.by}});
  }
  j["score"] = static_cast<double>(killed) / static_cast<double>(verdicts.size());
  report(o, table, j);
  if (killed != verdicts.size()) throw CLI::RuntimeError(1);
}

void add_outputs(CLI::App& command, options& o) {
  CLI::Option* const line =
      command.add_option("--timeline-ns", o.timeline_ns, "length of an epoch; 0: none")
          ->capture_default_str()
          ->check(CLI::Range(0.0, 1e12));
  command.add_option("--json", o.json,
                     "write machine, quantities, histograms and epochs to FILE; - is standard "
                     "output");
  command.add_option("--csv", o.csv, "write the quantities to FILE");
  command.add_option("--epochs-csv", o.epochs_csv, "write the quantities of each epoch to FILE")
      ->needs(line);
  command.add_option("--histograms-csv", o.histograms_csv,
                     "write the histograms of latencies to FILE");
}

void add_machine(CLI::App& command, options& o) {
  command
      .add_option("--machine", o.machine,
                  fmt::format("a file, or a preset: {}", fmt::join(presets(), ", ")))
      ->capture_default_str();
  add_settings(command, o);
}

void add_memory_command(CLI::App& group, const std::shared_ptr<options>& o) {
  CLI::App* const command =
      group.add_subcommand("memory", "a trace of requests on a memory, without cores and caches");
  add_machine(*command, *o);
  command->add_option("--memory", o->memory.memory, "nonvolatile_memory or volatile_memory")
      ->capture_default_str();
  command->add_option("--trace", o->memory.trace, "the trace file")->required();
  command
      ->add_option("--format", o->memory.format,
                   fmt::format("of the trace: {}", fmt::join(sim::request_trace_formats(), ", ")))
      ->required();
  command
      ->add_option("--reads-in-flight", o->memory.reads_in_flight,
                   "at most so many reads are unfinished, later requests wait; 0: no limit")
      ->capture_default_str();
  command->add_option("--commands", o->memory.commands,
                      "write every command to FILE (docs/format/traces.md)");
  add_outputs(*command, *o);
  command->callback([o] { run_memory_alone(*o); });
}

CLI::App* add(CLI::App& group, const char* name, const char* what, options& o) {
  CLI::App* command = group.add_subcommand(name, what);
  command->add_option("tape", o.run.tape, "the tape file")->required();
  add_machine(*command, o);
  command
      ->add_option("--warm-up", o.run.warm_up_transactions,
                   "transactions before anything is counted")
      ->capture_default_str();
  add_outputs(*command, o);
  command->add_option("--commands", o.run.commands,
                      "write every command of the memories to FILE.nonvolatile_memory and "
                      "FILE.volatile_memory (stele sim run alone)");
  command->add_option("--seed", o.run.seed, "of what is drawn by chance")->capture_default_str();
  return command;
}

void add_run_command(CLI::App& group, const std::shared_ptr<options>& o) {
  CLI::App* const alone = add(group, "run", "one machine, everything that was counted", *o);
  alone->get_option("tape")->required(false);
  alone->add_option("--design", o->design,
                    "instead of the machine's: native, rlog, ulog, crlog, culog, kiln");
  CLI::Option* const file = alone->add_option(
      "--checkpoint", o->run.checkpoint,
      "write the state of the run to FILE when it is interrupted, and as the next two say");
  CLI::Option* const at =
      alone->add_option("--checkpoint-at", o->checkpoint_at_ns, "when simulated time passes NS")
          ->needs(file)
          ->check(CLI::Range(0.0, static_cast<double>(sim::latest / 1000)));
  alone
      ->add_option("--checkpoint-every", o->checkpoint_every_ns,
                   "when simulated time passes a multiple of NS")
      ->needs(file)
      ->excludes(at)
      ->check(CLI::Range(1.0, 1e15));
  alone->add_option("--resume", o->run.resume,
                    "go on from the checkpoint in FILE; machine, tape and options that are left "
                    "out are the first run's");
  alone->callback([o, alone] {
    if (o->run.tape.empty() && o->run.resume.empty())
      fail("name a tape, or a checkpoint with --resume");
    run_alone(*alone, *o);
  });
}

}  // namespace

void add_sim(CLI::App& app) {
  const auto o = std::make_shared<options>();
  CLI::App* group = app.add_subcommand("sim", "run a tape on a simulated machine");
  group->require_subcommand(1);
  add_run_command(*group, o);
  CLI::App* compared = add(*group, "compare", "designs side by side, with ratios to the first", *o);
  compared->add_option("--designs", o->designs, "by commas")->delimiter(',')->required();
  compared->callback([o] { compare(*o); });
  CLI::App* swept =
      add(*group, "sweep", "keys over several values: runs them, or lists the jobs", *o);
  swept->get_option("tape")->required(false);
  swept->add_option("--over", o->over, "key=value,value,...; with --out as often as needed")
      ->required()
      ->type_size(1)
      ->allow_extra_args(false);
  swept->add_option("--designs", o->designs, "by commas; default: the machine's")->delimiter(',');
  swept->add_option("--show", o->shown, "quantities to print, by commas")
      ->delimiter(',')
      ->capture_default_str();
  CLI::Option* jobs = swept->add_option(
      "--out", o->jobs, "run nothing; write a job list for python -m stele.lab sweep to FILE");
  for (const char* other :
       {"--json", "--csv", "--epochs-csv", "--histograms-csv", "--timeline-ns", "--show"})
    jobs->excludes(swept->get_option(other));
  swept->add_option("--tapes", o->tapes, "by commas, with --out")->delimiter(',')->needs(jobs);
  swept->callback([o] { sweep(*o); });
  add_memory_command(*group, o);
  CLI::App* crashed = group->add_subcommand(
      "crash", "power failures of a machine with Kiln, each recovered and judged");
  crashed->add_option("tape", o->run.tape, "a native tape recorded with --bytes")->required();
  add_machine(*crashed, *o);
  crashed->add_option("--crashes", o->crashes, "at random moments")->capture_default_str();
  crashed->add_option("--at-ns", o->at_ns, "instead: at this moment alone")
      ->check(CLI::Range(0.0, static_cast<double>(sim::latest / 1000)));
  crashed->add_option("--fault", o->fault, "a bug planted in the protocol")->capture_default_str();
  crashed->add_option("--seed", o->run.seed, "of moments and of torn writes")
      ->capture_default_str();
  crashed->add_option("--json", o->json, "write the findings to FILE; - is standard output");
  crashed->callback([o] { crash(*o); });
  CLI::App* planted =
      group->add_subcommand("mutants", "bugs planted in Kiln's protocol: which crashes find them");
  planted->add_option("--seed", o->run.seed, "of the loads and moments")->capture_default_str();
  planted->add_option("--json", o->json, "write the verdicts to FILE; - is standard output");
  planted->callback([o] { mutants(*o); });
  CLI::App* shown = group->add_subcommand(
      "machine", "print a machine with every key, as a file that could be read again");
  shown->add_option("machine", o->machine, "a file or a preset")->capture_default_str();
  add_settings(*shown, *o);
  shown->callback([o] { print_machine(*o); });
}

}  // namespace stele::cli
