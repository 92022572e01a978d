// stele compare: measures mechanisms and rivals side by side on one workload; prints a table and
// writes JSON.
#include <bench/compare.h>
#include <bench/host.h>
#include <cli/command.h>
#include <cli/output.h>
#include <cli/scratch.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tx/mechanism/catalog.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

namespace stele::cli {
namespace {

constexpr const char* default_policy = "stm";

struct options {
  bench::comparison comparison;
  double zipf = -1;
  std::vector<std::string> policies = {default_policy};
  std::string dir, json, baseline, durability = "durable";
  std::optional<std::size_t> batch;
  bool no_limits = false, wide = false;
};

constexpr std::size_t default_batch = 16;

const std::map<std::string, concurrency> policies = {{"stm", concurrency::stm},
                                                     {"single_writer", concurrency::single_writer},
                                                     {"external", concurrency::external}};

// Memory media use tmpfs; the file medium uses the current folder.
std::string default_dir(const std::string& media) {
  return media == "file" ? "." : folder_in_memory();
}

std::string counted(std::size_t n, const char* thing) {
  return fmt::format("{} {}{}", n, thing, n == 1 ? "" : "s");
}

std::string check_workload(const std::string& name) {
  const auto names = workloads::workload_names();
  if (std::ranges::find(names, name) != names.end()) return {};
  return fmt::format("there is no workload '{}'; choose one of {}", name, fmt::join(names, ", "));
}

std::string check_media(const std::string& media) {
  const auto parsed = detail::parse_media(media);
  return parsed ? std::string() : parsed.error().message;
}

std::string check_durability(const std::string& name) {
  return name == "durable" || name == "ordered" || name == "deferred"
             ? std::string()
             : "choose durable, ordered or deferred, not '" + name + "'";
}

std::string check_policy(const std::string& name) {
  if (policies.contains(name)) return {};
  return fmt::format("there is no policy '{}'; choose stm, single_writer or external", name);
}

// A host isolates its transactions by itself, and has no calls for many items.
void check_host(options& o) {
  if (o.comparison.what.host.empty()) return;
  if (o.policies != std::vector<std::string>{default_policy})
    fail("--policy says how Stele isolates transactions; with --host the host does that");
  if (o.batch.value_or(0) != 0)
    fail("--batch is for structures that have calls for many items; a host has none");
  o.policies = {"external"};
  o.batch = 0;
}

void check(options& o) {
  check_host(o);
  bench::comparison& c = o.comparison;
  for (const std::string& name : o.policies) c.policies.push_back(policies.at(name));
  c.what.policy = c.policies.front();
  if (o.durability != "durable") c.what.commits = durability::ordered;
  if (o.durability == "deferred") c.what.defer_ordered = deferral::always;
  if (c.what.host.empty() && c.what.threads > 1 &&
      std::ranges::count(c.policies, concurrency::external) != 0)
    fail(
        "--policy external leaves locking to the caller, and this caller has none: use --threads "
        "1");
  if (o.zipf >= 0) {
    c.what.parameters.choice = workloads::key_choice::zipf;
    c.what.parameters.zipf_theta = o.zipf;
  }
  c.what.dir = enter_scratch(o.dir.empty() ? default_dir(c.what.media) : o.dir);
  c.limits = !o.no_limits;
  c.batch = o.batch.value_or(c.what.workload == "store" ? default_batch : 0);
}

std::string title(const options& o) {
  const bench::comparison& c = o.comparison;
  const bench::task& t = c.what;
  std::string out =
      fmt::format("{}: {} B values, {} a transaction, {} keys", t.workload, t.parameters.value_size,
                  counted(t.ops_per_tx, "operation"), t.parameters.keys);
  if (o.zipf >= 0) out += fmt::format(" by zipf {}", o.zipf);
  if (t.parameters.read_share > 0)
    out += fmt::format(", {:.0f} % reads", t.parameters.read_share * 100);
  if (t.parameters.coalesce) out += ", in coalescing memory";
  const std::string isolation = t.host.empty()
                                    ? fmt::format("policy {}", fmt::join(o.policies, " and "))
                                    : fmt::format("host {}", t.host);
  return out + fmt::format(", {}, {}, media {}, {} of {} s in turn\n", counted(t.threads, "thread"),
                           isolation, t.media, counted(c.runs, "run"), c.seconds);
}

// A line on the terminal that names the present step and counts its seconds.
class progress_line {
 public:
  progress_line() {
    if (watched_)
      ticker_ = std::jthread([this](const std::stop_token& stop) {
        std::unique_lock hold(mutex_);
        while (!changed_.wait_for(hold, stop, std::chrono::seconds(1), [] { return false; }) &&
               !stop.stop_requested())
          print();
      });
  }
  ~progress_line() {
    if (!watched_) return;
    ticker_ = {};
    print_error("\r\033[K");
  }
  progress_line(const progress_line&) = delete;
  progress_line& operator=(const progress_line&) = delete;

  void show(const std::string& what) {
    if (!watched_) return;
    const std::lock_guard hold(mutex_);
    what_ = what;
    since_ = std::chrono::steady_clock::now();
    print();
  }

 private:
  void print() const {
    const auto age = std::chrono::steady_clock::now() - since_;
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(age).count();
    print_error("\r\033[K{}{}", what_, seconds > 1 ? fmt::format(", {} s", seconds) : "");
  }

  const bool watched_ = isatty(STDERR_FILENO) != 0;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::string what_;
  std::chrono::steady_clock::time_point since_;
  std::jthread ticker_;
};

void run(options& o) {
  check(o);
  auto line = std::make_unique<progress_line>();
  o.comparison.progress = [&line](const std::string& what) { line->show(what); };
  o.comparison.cancelled = interrupted;
  const auto report = bench::compare(o.comparison);
  line.reset();
  if (!report) fail(report.error());
  const std::string table =
      title(o) + bench::table_of(*report, o.baseline,
                                 o.wide ? bench::table_width::wide : bench::table_width::narrow);
  fmt::print(o.json == "-" ? stderr : stdout, "{}", table);
  if (!o.json.empty()) write_json(o.json, bench::json_of(*report));
  if (interrupted()) throw CLI::RuntimeError(130);
}

void add_task_options(CLI::App& command, options& o) {
  bench::task& t = o.comparison.what;
  command
      .add_option("--workload", t.workload,
                  fmt::format("{}", fmt::join(workloads::workload_names(), ", ")))
      ->capture_default_str()
      ->check(check_workload);
  command
      .add_option(
          "--value-size", t.parameters.value_size,
          "bytes of a value: a power of two from 8 to 4096; of store any number from 1 to 1048576")
      ->capture_default_str();
  command.add_option("--ops-per-tx", t.ops_per_tx, "operations in each transaction")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 20));
  command
      .add_option(
          "--batch", o.batch,
          fmt::format(
              "also rows of Stele with so many items in each get_many, put_many or find_many, "
              "of store, hash, word_hash and bptree; 0: none; default: {} of store, else 0",
              default_batch))
      ->check(CLI::Range(0, 1 << 16));
  command.add_option("--keys", t.parameters.keys, "size of the key space; elements of sps")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command
      .add_option("--read-share", t.parameters.read_share,
                  "share of operations that only read; ycsb, tpcc and linkbench have their own")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1.0));
  command.add_flag(
      "--coalesce", t.parameters.coalesce,
      "Stele's structures in coalescing memory: hash, rbtree, kv, ycsb, tpcc, linkbench");
  command
      .add_option("--zipf", o.zipf, "draw keys by Zipf's law with this theta instead of uniformly")
      ->check(CLI::Range(0.0, 0.9999));
  command
      .add_option("--policy", o.policies,
                  "how transactions are kept apart: stm, single_writer or external; several, by "
                  "commas, make a row of Stele for each")
      ->delimiter(',')
      ->capture_default_str()
      ->check(check_policy);
  command
      .add_option(
          "--media", t.media,
          "adr, eadr, file, process, delayed:NS[:GBPS][:stream=once|:standalone][:cache=GBPS] or "
          "pcm:strict|rules[:LOG_SPEEDUP][:waits]")
      ->capture_default_str()
      ->check(check_media);
  command.add_option("--threads", t.threads, "threads that run transactions")
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
  command
      .add_option("--durability", o.durability,
                  "of Stele's commits: durable; ordered, which a sync at the end of each run makes "
                  "durable at the latest; or deferred: ordered and never durable at once")
      ->capture_default_str()
      ->check(check_durability);
  command.add_option("--seed", t.seed, "of content and operations")->capture_default_str();
  command.add_option("--host", t.host,
                     "sqlite: the operations are SQL transactions, Stele's rows are SQLite "
                     "databases in pools, and the rivals SQLite's own files; redis: they are "
                     "commands of clients, one a thread, and Stele's rows are servers with the "
                     "module");
  command.add_option(
      "--dir", o.dir,
      "where pools are created; default: /dev/shm, for media file the current directory");
}

}  // namespace

void add_compare(CLI::App& app) {
  const auto o = std::make_shared<options>();
  o->comparison.mechanisms = {"default"};
  CLI::App* command =
      app.add_subcommand("compare", "mechanisms and rivals side by side on one workload");
  add_task_options(*command, *o);
  command->add_option("--mechanisms", o->comparison.mechanisms, "mechanisms of stele, by commas")
      ->delimiter(',')
      ->capture_default_str();
  command
      ->add_option("--rivals", o->comparison.rivals,
                   fmt::format("other systems, by commas: {}; with --host sqlite: {}; with --host "
                               "redis: {}",
                               fmt::join(bench::rival_names(), ", "),
                               fmt::join(bench::host_rival_names("sqlite"), ", "),
                               fmt::join(bench::host_rival_names("redis"), ", ")))
      ->delimiter(',');
  command->add_option("--runs", o->comparison.runs, "runs of each system")
      ->capture_default_str()
      ->check(CLI::Range(1, 10'000));
  command->add_option("--seconds", o->comparison.seconds, "of each system in each run")
      ->capture_default_str()
      ->check(CLI::Range(0.001, 86'400.0));
  command->add_option("--baseline", o->baseline,
                      "the system that ratios are to; default: the first mechanism");
  command->add_flag("--no-limits", o->no_limits,
                    "leave out the limits: volatile, the log by hand, the hardware's costs");
  command->add_flag("--wide", o->wide, "all columns, not only those that fit a terminal of 80");
  command->add_option("--json", o->json, "write the figures to FILE; - is standard output");
  command->callback([o] {
    o->comparison.what.parameters.seed = o->comparison.what.seed;
    run(*o);
  });
}

}  // namespace stele::cli
