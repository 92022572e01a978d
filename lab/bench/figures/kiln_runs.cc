// Records tapes and runs them; processors work on different tapes.
#include <base/check.h>
#include <bench/figures/kiln_runs.h>
#include <fmt/format.h>
#include <sim/config_file.h>
#include <sim/machine.h>
#include <unistd.h>
#include <workloads/apart/native.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <map>
#include <mutex>
#include <thread>

namespace stele::bench::kiln {
namespace {

constexpr std::uint32_t store_bytes = 4096;

std::string name_of(const tape_spec& t, std::uint64_t seed) {
  return fmt::format("{}-{}-{}-{}-{}-{}-{}-{}", t.workload, t.element_bytes, t.keys, t.transactions,
                     t.written_before, t.threads, t.isolated ? "apart" : "shared", seed);
}
std::string name_of(const run_spec& p, std::uint64_t seed) {
  return name_of(p.tape, seed) + '\n' + sim::toml_of(p.machine);
}

// The results of this process; entries never move.
struct results {
  std::mutex mutex;
  std::map<std::string, sim::run_result> of;
};
results& all_results() {
  static results all;
  return all;
}

// The path of a tape file; the destructor removes the file.
class tape_file {
 public:
  tape_file(const tape_spec& t, const sweep_options& o)
      : path_(fmt::format("{}/stele-kiln-{}-{}", o.dir, ::getpid(), name_of(t, o.seed))) {}
  ~tape_file() {
    std::error_code none;
    std::filesystem::remove(path_, none);
  }
  tape_file(const tape_file&) = delete;
  tape_file& operator=(const tape_file&) = delete;
  const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
};

// Stores to the last part of the structure, in the order of addresses: LRU caches then hold what
// they would hold after the whole structure had been written.
void write_before(workloads::native_run& run, const tape_spec& t, media::tape_writer& tape) {
  const std::uint64_t end = run.space().used() / store_bytes * store_bytes;
  const std::uint64_t first = end - std::min(end, t.written_before / store_bytes * store_bytes);
  const media::tape_writer::scoped_lock lock(tape);
  for (std::uint64_t at = first; at < end; at += store_bytes)
    tape.event(media::tape_op::store, static_cast<unsigned>(at / store_bytes % t.threads), at,
               store_bytes);
}

workloads::native_plan plan_of(const tape_spec& t, std::uint64_t seed) {
  workloads::native_plan plan;
  plan.params.value_size = t.element_bytes;
  plan.params.keys = t.keys;
  plan.params.seed = plan.seed = seed;
  plan.threads = t.threads;
  plan.operations = t.transactions;
  return plan;
}

// The tape of one thread on its own structure, and the structure's size.
struct part {
  std::unique_ptr<media::tape_writer> tape;
  std::uint64_t size = 0;
};
result<part> record_part(const tape_spec& t, unsigned thread, std::uint64_t seed) {
  workloads::native_plan plan = plan_of(t, seed + thread);
  plan.threads = 1;
  plan.operations = t.transactions / t.threads + (thread < t.transactions % t.threads);
  auto run = workloads::make_native(t.workload, plan);
  if (!run) return std::unexpected(run.error());
  part p{media::tape_writer::to_memory(workloads::native_shape(**run, plan)),
         (*run)->space().size()};
  if (auto done = workloads::record_native(**run, t.workload, plan, *p.tape,
                                           [](std::uint64_t) { return true; });
      !done)
    return std::unexpected(done.error());
  if (auto done = p.tape->finish(); !done) return std::unexpected(done.error());
  return p;
}

// Copies events up to the end of a transaction. Returns false when the part is over.
result<bool> copy_transaction(media::tape_reader& from, unsigned thread, std::uint64_t offset,
                              media::tape_writer& to) {
  using media::tape_op;
  const media::tape_writer::scoped_lock lock(to);
  for (;;) {
    const auto next = from.next();
    if (!next) return std::unexpected(next.error());
    if (!*next || (*next)->op == tape_op::end) return false;
    const media::tape_event& e = **next;
    const bool access = e.op == tape_op::load || e.op == tape_op::store;
    if (e.loads_pointer) {
      to.pointer_load(thread, e.address + offset, e.length);
    } else {
      to.event(e.op, thread, e.address + (access ? offset : 0), e.length);
    }
    if (e.op == tape_op::returned) return true;
  }
}

// The structures of the threads are adjacent; their transactions take turns.
result<> record_isolated(const tape_spec& t, const std::string& path, std::uint64_t seed) {
  std::vector<part> parts;
  for (unsigned thread = 0; thread < t.threads; ++thread) {
    auto p = record_part(t, thread, seed);
    if (!p) return std::unexpected(p.error());
    parts.push_back(std::move(*p));
  }
  const std::uint64_t size = parts.front().size;
  auto tape = media::tape_writer::to_file(
      path, {.pool_size = size * t.threads, .record_bytes = false, .mark_pointers = true});
  if (!tape) return std::unexpected(tape.error());
  std::vector<media::tape_reader> readers;
  for (const part& p : parts) {
    auto reader = media::tape_reader::from_memory(p.tape->memory());
    if (!reader) return std::unexpected(reader.error());
    readers.push_back(std::move(*reader));
  }
  for (bool more = true; more;) {
    more = false;
    for (unsigned thread = 0; thread < t.threads; ++thread) {
      const auto copied = copy_transaction(readers[thread], thread, thread * size, **tape);
      if (!copied) return std::unexpected(copied.error());
      more = more || *copied;
    }
  }
  return (*tape)->finish();
}

result<> record(const tape_spec& t, const std::string& path, const sweep_options& o) {
  if (t.isolated) return record_isolated(t, path, o.seed);
  const workloads::native_plan plan = plan_of(t, o.seed);
  auto run = workloads::make_native(t.workload, plan);
  if (!run) return std::unexpected(run.error());
  auto tape = media::tape_writer::to_file(path, workloads::native_shape(**run, plan));
  if (!tape) return std::unexpected(tape.error());
  write_before(**run, t, **tape);
  if (auto done = workloads::record_native(**run, t.workload, plan, **tape,
                                           [](std::uint64_t) { return true; });
      !done)
    return done;
  return (*tape)->finish();
}

// The places of one tape that have not yet run.
using group = std::vector<const run_spec*>;

std::vector<group> groups_of(std::span<const run_spec> places, const sweep_options& o) {
  std::map<std::string, std::map<std::string, const run_spec*>> by_tape;
  for (const run_spec& p : places)
    if (result_of(p, o) == nullptr) by_tape[name_of(p.tape, o.seed)][name_of(p, o.seed)] = &p;
  std::vector<group> groups;
  for (const auto& [tape, of_tape] : by_tape) {
    group& g = groups.emplace_back();
    for (const auto& [name, p] : of_tape) g.push_back(p);
  }
  return groups;
}

// Groups run in parallel; calls of progress and cancelled are serialized.
class worker_pool {
 public:
  worker_pool(std::vector<group> groups, const sweep_options& o)
      : groups_(std::move(groups)), o_(o) {}

  result<bool> work() {
    {
      std::vector<std::jthread> workers;
      const auto most =
          std::min<std::size_t>(std::max(1u, std::thread::hardware_concurrency()), groups_.size());
      for (std::size_t i = 0; i < most; ++i)
        workers.emplace_back([this] {
          for (std::size_t g; (g = next_++) < groups_.size() && !stopped();) run(groups_[g]);
        });
    }
    if (error_) return std::unexpected(*error_);
    return !cancelled_;
  }

 private:
  bool stopped() {
    const std::scoped_lock mine(mutex_);
    cancelled_ = cancelled_ || o_.cancelled();
    return cancelled_ || error_;
  }
  void report_progress(const run_spec& p) {
    const std::scoped_lock mine(mutex_);
    o_.progress(fmt::format("{} of {} tapes; {}, {} B, {} threads, {}",
                            std::min(next_.load(), groups_.size()), groups_.size(), p.tape.workload,
                            p.tape.element_bytes, p.tape.threads, p.machine.design.name));
  }
  void record_error(error e) {
    const std::scoped_lock mine(mutex_);
    if (!error_ && e.code != errc::cancelled) error_ = std::move(e);
  }

  void run(const group& g) {
    const tape_file file(g.front()->tape, o_);
    if (auto recorded = record(g.front()->tape, file.path(), o_); !recorded)
      return record_error(recorded.error());
    for (const run_spec* p : g) {
      if (stopped()) return;
      report_progress(*p);
      run(*p, file.path());
    }
  }
  void run(const run_spec& p, const std::string& path) {
    if (auto sound = sim::check_machine(p.machine); !sound) return record_error(sound.error());
    sim::run_options how;
    how.tape = path;
    how.seed = o_.seed;
    how.warm_up_transactions = p.tape.transactions / 3;
    how.cancelled = [this] { return stopped(); };
    auto done = sim::run_machine(p.machine, how);
    if (!done) return record_error(done.error());
    const std::scoped_lock mine(all_results().mutex);
    all_results().of.emplace(name_of(p, o_.seed), std::move(*done));
  }

  std::vector<group> groups_;
  const sweep_options& o_;
  std::atomic<std::size_t> next_ = 0;
  std::mutex mutex_;
  bool cancelled_ = false;
  std::optional<error> error_;
};

}  // namespace

result<sim::machine_config> machine_named(const std::string& name) {
  return sim::load_machine(fmt::format("{}/{}.toml", STELE_CONFIGS, name));
}

result<bool> run_all(std::span<const run_spec> places, const sweep_options& o) {
  return worker_pool(groups_of(places, o), o).work();
}

const sim::run_result* result_of(const run_spec& p, const sweep_options& o) {
  results& all = all_results();
  const std::scoped_lock mine(all.mutex);
  const auto found = all.of.find(name_of(p, o.seed));
  return found == all.of.end() ? nullptr : &found->second;
}

}  // namespace stele::bench::kiln
