// The program whose commits tools/commit-counts counts: `stele_commit_loop fill|run FOLDER KEYS
// TRANSACTIONS WORKLOAD:POLICY:MECHANISM...`. `fill` makes a pool in FOLDER for each task, with the
// workload's initial content. `run` opens each pool and runs so many transactions of one operation
// on it, on the medium adr, in one thread. Besides the workloads of `stele compare`: kv_get and
// kv_put are calls of stele::kv, sqlite_update updates a row through SQLite's VFS.
//
// Values have 8 bytes and operations are drawn before the first transaction. No clock is read and
// no background thread runs, so a run executes the same instructions each time. Each task runs in a
// process of its own, a fork, so its instructions do not depend on the tasks before it, and an
// emulator follows all of them at the cost of one start. Filling is a run of its own because it is
// not to be counted, and emulation is slow. The logs have room for all transactions of a run: no
// commit truncates. A run leaves its pools open, as a crash does.
#include <base/rng.h>
#include <bench/commit_loop_sqlite.h>
#include <stele/published.h>
#include <sys/wait.h>
#include <tx/mechanism/catalog.h>
#include <unistd.h>
#include <workloads/workload.h>

#include <bit>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace stele::bench {
namespace {

struct loop_task {
  std::string workload, policy, mechanism;
};

struct loop_options {
  bool fill = false;
  std::string folder;
  std::size_t keys = 0;
  std::uint64_t transactions = 0;
};

constexpr std::uint64_t seed = 1;
constexpr std::size_t log_bytes_per_transaction = 1024;
constexpr std::size_t pool_bytes_per_key = 192;

loop_task task_named(const std::string& text) {
  const std::size_t first = text.find(':'), second = text.find(':', first + 1);
  if (second == std::string::npos) return {};
  return {text.substr(0, first), text.substr(first + 1, second - first - 1),
          text.substr(second + 1)};
}

std::optional<concurrency> policy_named(std::string_view name) {
  if (name == "stm") return concurrency::stm;
  if (name == "single_writer") return concurrency::single_writer;
  if (name == "external") return concurrency::external;
  return std::nullopt;
}

result<pool_options> options_of(const loop_options& o, const loop_task& t) {
  const auto policy = policy_named(t.policy);
  if (!policy)
    return std::unexpected(error{errc::invalid_argument,
                                 "a task is WORKLOAD:POLICY:MECHANISM, a policy stm, single_writer "
                                 "or external"});
  pool_options p;
  p.layout = "commit-loop";
  if (t.mechanism != "default") p.engine.mechanism = t.mechanism;
  p.engine.media = "adr";
  p.policy = *policy;
  const auto known = detail::find_mechanism(t.mechanism == "default" ? "" : t.mechanism);
  if (!known) return std::unexpected(known.error());
  if ((*known)->home == format::home_kind::in_place)  // else a log's size is that of its chunks
    p.engine.log_size =
        std::bit_ceil((std::size_t{128} << 10) + o.transactions * log_bytes_per_transaction);
  p.engine.log_count = 1;
  if (o.fill)
    p.create_size = 2 * p.engine.log_size + (std::size_t{2} << 20) + o.keys * pool_bytes_per_key;
  p.engine.background = false;
  return p;
}

// The operations that a task draws: all of a workload, or those of one kind.
struct counted_workload {
  std::unique_ptr<workloads::workload> run;
  std::optional<workloads::operation::kind> only;
};

result<counted_workload> counted_workload_named(std::string_view name, std::size_t keys) {
  using enum workloads::operation::kind;
  workloads::parameters p{.value_size = 8, .keys = keys};
  counted_workload w;
#ifdef STELE_HAVE_SQLITE
  if (name == "sqlite_update") {
    w.run = make_row_updates(p);
    return w;
  }
#endif
  if (name == "kv_get") w.only = read, p.read_share = 1;
  if (name == "kv_put") w.only = put;
  auto made = workloads::make_workload(w.only ? "store" : name, p);
  if (!made) return std::unexpected(std::move(made.error()));
  w.run = std::move(*made);
  return w;
}

// Called once for each transaction. tools/commit-counts knows it by its name: a transaction begins
// with its first instruction and ends where the next one begins.
[[gnu::noinline]] result<> counted_transaction(workloads::workload& w,
                                               const workloads::operation& op) {
  return w.apply({&op, 1});
}

result<> run_transactions(const counted_workload& w, std::uint64_t transactions) {
  base::rng random(base::mix(seed));
  std::vector<workloads::operation> drawn;
  while (drawn.size() <= transactions) {
    const workloads::operation op = w.run->draw(random);
    if (!w.only || op.what == *w.only) drawn.push_back(op);
  }
  for (const workloads::operation& op : drawn)  // one more than asked for, which ends the last
    if (auto done = counted_transaction(*w.run, op); !done) return done;
  return {};
}

result<> fill_or_run(const loop_options& o, const std::string& name) {
  const loop_task t = task_named(name);
  const auto options = options_of(o, t);
  if (!options) return std::unexpected(options.error());
  auto w = counted_workload_named(t.workload, o.keys);
  if (!w) return std::unexpected(std::move(w.error()));
  auto handle = detail::pool_handle::open(o.folder + "/" + name, *options, w->run->root_size());
  if (!handle) return std::unexpected(std::move(handle.error()));
  w->run->attach(std::move(*handle));
  if (!o.fill) {
    auto done = run_transactions(*w, o.transactions);
    if (done) ::_exit(0);  // closing is not to be counted
    return done;
  }
  auto done = w->run->set_up();
  w->run->detach();
  return done;
}

int report(const std::string& name, const result<>& done) {
  if (done) return 0;
  std::fprintf(stderr, "stele_commit_loop: %s: %s\n", name.c_str(), done.error().message.c_str());
  return 1;
}

// Returns the exit status.
int in_own_process(const loop_options& o, const std::string& name) {
  const pid_t child = ::fork();
  if (child < 0) {
    std::perror("stele_commit_loop: fork");
    return 1;
  }
  if (child == 0) ::_exit(report(name, fill_or_run(o, name)));
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

}  // namespace
}  // namespace stele::bench

int main(int argc, char** argv) {
  using namespace stele::bench;
  stele::use_published();
  const std::string_view verb = argc > 5 ? argv[1] : "";
  if (verb != "fill" && verb != "run") {
    std::fputs(
        "usage: stele_commit_loop fill|run FOLDER KEYS TRANSACTIONS WORKLOAD:POLICY:MECHANISM...\n",
        stderr);
    return 2;
  }
  const loop_options o{verb == "fill", argv[2], std::strtoull(argv[3], nullptr, 10),
                       std::strtoull(argv[4], nullptr, 10)};
  for (int i = 5; i < argc; ++i)
    if (const int status = in_own_process(o, argv[i]); status != 0) return status;
  return 0;
}
