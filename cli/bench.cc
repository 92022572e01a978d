// stele bench media|all|peers|reads|readers|store|sqlite|redis|space|lsnvmm|sim: measures the
// limits of the machine, and the project's performance targets.
#include <bench/machine.h>
#include <bench/targets.h>
#include <cli/command.h>
#include <cli/output.h>
#include <cli/scratch.h>
#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <nlohmann/json.hpp>

namespace stele::cli {
namespace {

struct options {
  std::string dir, file_dir = ".", json, reported_dir, reported_file_dir;
  unsigned runs = 5;
  double seconds = 0.5;
  bench::target_options of_redis;  // its keys and operations
  bool quick = false;
};

// Creates temporary folders below both directories. reported_dir and reported_file_dir keep the
// names of those directories for the output.
void use_scratch(options& o) {
  o.reported_dir = !o.dir.empty() ? o.dir : folder_in_memory();
  o.reported_file_dir = o.file_dir;
  o.dir = enter_scratch(o.reported_dir);
  o.file_dir = enter_scratch(o.file_dir);
}

void media(const options& o) {
  const auto m = bench::measure_machine(o.dir, o.file_dir, o.runs);
  if (!m) fail(m.error());
  if (o.json != "-") {
    fmt::print("memory in {}, {}; medians of {} runs, one thread\n", o.reported_dir, m->write_back,
               o.runs);
    fmt::print("  {:<44} {:>9.1f} ns\n", "one streamed line, fence", m->streamed_line_fence_ns);
    for (const auto& [k, ns] : m->lines_fence_ns)
      fmt::print("  {:<44} {:>9.1f} ns\n",
                 fmt::format("{} random line{} stored and flushed, fence", k, k == 1 ? "" : "s"),
                 ns);
    fmt::print("  {:<44} {:>9.1f} ns\n", "fence with nothing to order", m->empty_fence_ns);
    fmt::print("  {:<44} {:>9.2f} GB/s\n", "streaming 64 MiB", m->stream_gb_per_s);
    fmt::print("  {:<44} {:>9.2f} GB/s\n", "storing and flushing 64 MiB", m->flush_gb_per_s);
    fmt::print("device below {}\n", o.reported_file_dir);
    fmt::print("  {:<44} {:>9.1f} us  {:>8.0f} /s\n", "4 KiB overwritten, fdatasync",
               m->synced_block_ns / 1e3, 1e9 / m->synced_block_ns);
    if (m->direct_block_ns != 0)
      fmt::print("  {:<44} {:>9.1f} us  {:>8.0f} /s\n", "4 KiB overwritten, O_DIRECT and O_DSYNC",
                 m->direct_block_ns / 1e3, 1e9 / m->direct_block_ns);
  }
  if (o.json.empty()) return;
  nlohmann::json j{{"write_back", m->write_back},
                   {"streamed_line_fence_ns", m->streamed_line_fence_ns},
                   {"flushed_line_fence_ns", m->flushed_line_fence_ns},
                   {"empty_fence_ns", m->empty_fence_ns},
                   {"stream_gb_per_s", m->stream_gb_per_s},
                   {"flush_gb_per_s", m->flush_gb_per_s},
                   {"synced_block_ns", m->synced_block_ns},
                   {"direct_block_ns", m->direct_block_ns}};
  for (const auto& [k, ns] : m->lines_fence_ns) j["lines_fence_ns"][std::to_string(k)] = ns;
  write_json(o.json, j);
}

using measure_function =
    result<std::vector<bench::performance_target>> (*)(const bench::target_options& o);

void run_targets(const options& o, measure_function measure) {
  bench::target_options m;
  m.dir = o.dir;
  m.file_dir = o.file_dir;
  m.runs = o.runs;
  m.seconds = o.seconds;
  m.keys = o.of_redis.keys;
  m.operations = o.of_redis.operations;
  m.configs = STELE_CONFIGS;
  m.cancelled = interrupted;
  if (isatty(STDERR_FILENO) != 0)
    m.progress = [](const std::string& what) { print_error("\r\033[K{} ...", what); };
  std::FILE* const out = o.json == "-" ? stderr : stdout;
  fmt::print(out, "\n{:<46} {:>14} {:>14}\n", "figure", "mark", "measured");
  nlohmann::json j = nlohmann::json::array();
  m.measured = [&, out](const bench::performance_target& f) {
    if (isatty(STDERR_FILENO) != 0) print_error("\r\033[K");
    const bool count = f.unit == "states/s";
    const std::string mark =
        !f.has_mark ? "-"
        : count     ? fmt::format("{} {:.0f}", f.at_most ? "<=" : ">=", f.bound)
                    : fmt::format("{} {:g} {}", f.at_most ? "<=" : ">=", f.bound, f.unit);
    const std::string measured =
        count ? fmt::format("{:.0f}", f.measured) : fmt::format("{:.2f} {}", f.measured, f.unit);
    fmt::print(out, "{:<46} {:>14} {:>14}  {:<6} {}\n", f.what, mark, measured,
               !f.has_mark ? ""
               : f.met()   ? "met"
                           : "SHORT",
               f.detail);
    std::fflush(stdout);
    j.push_back(
        {{"figure", f.what}, {"unit", f.unit}, {"measured", f.measured}, {"detail", f.detail}});
    if (f.has_mark) j.back().update({{"mark", f.bound}, {"at_most", f.at_most}, {"met", f.met()}});
  };
  const auto targets = measure(m);
  if (isatty(STDERR_FILENO) != 0) print_error("\r\033[K");
  if (!targets) fail(targets.error());
  if (!o.json.empty()) write_json(o.json, j);
}

void all(const options& o) {
  options first = o;
  first.json.clear();
  if (o.json != "-") media(first);
  run_targets(o, bench::measure_targets);
}

CLI::App* add(CLI::App& group, const char* name, const char* what,
              const std::shared_ptr<options>& o, const char* file_dir = "--file-dir") {
  CLI::App* command = group.add_subcommand(name, what);
  command->add_option("--dir", o->dir, "where memory is mapped; default /dev/shm");
  command->add_option(file_dir, o->file_dir, "a directory on the device to measure")
      ->capture_default_str()
      ->check(CLI::ExistingDirectory);
  command->add_option("--runs", o->runs, "medians of so many runs")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  command->add_option("--json", o->json, "write the figures to FILE; - is standard output");
  return command;
}

// A command whose systems run for --seconds each.
CLI::App* add_timed(CLI::App& group, const char* name, const char* what,
                    const std::shared_ptr<options>& o, const char* file_dir = "--file-dir") {
  CLI::App* command = add(group, name, what, o, file_dir);
  command->add_option("--seconds", o->seconds, "of each system in each run")
      ->capture_default_str()
      ->check(CLI::Range(0.01, 3600.0));
  return command;
}

void add_redis(CLI::App& group, const std::shared_ptr<options>& o) {
  CLI::App* command = add_timed(group, "redis", "Redis on pools beside Redis on its own files", o,
                                "--file-dir,--media-dir");
  command->add_option("--keys", o->of_redis.keys, "of 100 B, that are restarted and replicated")
      ->capture_default_str()
      ->check(CLI::Range(100, 100'000'000));
  command
      ->add_option("--operations", o->of_redis.operations,
                   "that must not make a pool grow, on a fixed number of keys")
      ->capture_default_str()
      ->check(CLI::Range(1000, 2'000'000'000));
  command->add_flag("--quick", o->quick,
                    "few keys and short runs: to see that it works, not to quote");
  command->callback([o] {
    if (o->quick) {
      o->of_redis.keys = 2000, o->of_redis.operations = 20'000;
      o->runs = 1, o->seconds = 0.05;
    }
    use_scratch(*o), run_targets(*o, bench::measure_redis_targets);
  });
}

}  // namespace

void add_bench(CLI::App& app) {
  const auto o = std::make_shared<options>();
  CLI::App* group =
      app.add_subcommand("bench", "what this machine can do, and what Stele does with it");
  group->require_subcommand(1);
  add(*group, "media", "the costs of lines, fences and syncs here", o)->callback([o] {
    use_scratch(*o), media(*o);
  });
  add_timed(*group, "all", "every figure that the project has set itself, measured", o)
      ->callback([o] { use_scratch(*o), all(*o); });
  add_timed(*group, "lsnvmm", "the figures of the mechanism log_structured, some ten minutes", o)
      ->callback([o] { use_scratch(*o), run_targets(*o, bench::measure_lsnvmm_targets); });
  add_timed(*group, "peers", "default beside the best published peers, those built in", o)
      ->callback([o] { use_scratch(*o), run_targets(*o, bench::measure_peer_targets); });
  add_timed(*group, "reads", "reads of everything beside writers that never rest", o)
      ->callback([o] { use_scratch(*o), run_targets(*o, bench::measure_read_targets); });
  add_timed(*group, "readers",
            "reads by other processes: what they cost, and whether they are right", o)
      ->callback([o] { use_scratch(*o), run_targets(*o, bench::measure_reader_targets); });
  add_timed(*group, "store",
            "the key-value store beside other embedded stores, commits on a file, care of a pool",
            o)
      ->callback([o] { use_scratch(*o), run_targets(*o, bench::measure_store_targets); });
  add_timed(*group, "sqlite", "SQLite on pools beside SQLite on its own files", o)->callback([o] {
    use_scratch(*o), run_targets(*o, bench::measure_sqlite_targets);
  });
  add_redis(*group, o);
  add(*group, "space", "how full values of each size fill the heap of a pool of 128 MiB", o)
      ->callback([o] { use_scratch(*o), run_targets(*o, bench::measure_space_targets); });
  add(*group, "sim", "the simulator's speeds and the memory of a run", o)->callback([o] {
    use_scratch(*o), run_targets(*o, bench::measure_sim_targets);
  });
}

}  // namespace stele::cli
