// stele tape record|dump|stat|dirtiness|convert: records and reads tapes, the memory events of
// runs.
#include <cli/command.h>
#include <cli/scratch.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <lab_media/dirtiness.h>
#include <sim/feed/convert.h>
#include <workloads/apart/native.h>
#include <workloads/record.h>

#include <array>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

namespace stele::cli {
namespace {

using media::tape_event;
using media::tape_op;

struct options {
  std::string path, json, kind = "mechanism", from, input, persistent;
  std::uint64_t limit = 0;
  bool bytes = false, no_bytes = false, filled = false;
  workloads::recording_options run;
  std::vector<std::uint32_t> costs;
  std::uint64_t in_order_every = 0;
};

media::tape_reader open_tape(const std::string& path) {
  auto tape = media::tape_reader::open(path);
  if (!tape) fail(tape.error());
  return std::move(*tape);
}

// Calls f on each event until f returns false.
template <class F>
void for_each_event(const std::string& path, F&& f) {
  media::tape_reader tape = open_tape(path);
  while (!interrupted()) {
    const auto event = tape.next();
    if (!event) fail(event.error());
    if (!*event || !f(**event)) return;
  }
  throw CLI::RuntimeError(130);
}

void dump(const options& o) {
  std::uint64_t number = 0;
  fmt::print("{:>10}  {:>6}  {:<8}  {:<6}  {:>12}  {:>6}  bytes\n", "event", "thread", "op", "tag",
             "address", "length");
  for_each_event(o.path, [&](const tape_event& e) {
    fmt::print("{:>10}  {:>6}  {:<8}  {:<6}  {:>12}  {:>6} ", number++, e.thread, name_of(e.op),
               name_of(e.tag), e.address, e.length);
    for (std::size_t i = 0; i < e.bytes.size() && i < 16; ++i)
      fmt::print(" {:02x}", static_cast<unsigned>(e.bytes[i]));
    fmt::print("{}\n", e.bytes.size() > 16 ? " .." : "");
    return o.limit == 0 || number < o.limit;
  });
}

struct tape_statistics {
  std::array<std::uint64_t, 16> events{}, bytes{};
  std::map<unsigned, std::uint64_t> by_thread;
};

void print(const tape_statistics& s) {
  fmt::print("{:<8}  {:>12}  {:>14}\n", "op", "events", "bytes");
  for (std::size_t i = 1; i < s.events.size(); ++i)
    if (s.events[i] != 0)
      fmt::print("{:<8}  {:>12}  {:>14}\n", name_of(static_cast<tape_op>(i)), s.events[i],
                 s.bytes[i]);
  for (const auto& [thread, events] : s.by_thread)
    fmt::print("thread {:<3} {:>11} events\n", thread, events);
}

void stat(const options& o) {
  tape_statistics s;
  for_each_event(o.path, [&](const tape_event& e) {
    ++s.events[static_cast<std::size_t>(e.op)];
    s.bytes[static_cast<std::size_t>(e.op)] += e.length;
    ++s.by_thread[e.thread];
    return true;
  });
  if (o.json != "-") print(s);
  if (o.json.empty()) return;
  nlohmann::json j;
  for (std::size_t i = 1; i < s.events.size(); ++i)
    if (s.events[i] != 0)
      j["ops"][name_of(static_cast<tape_op>(i))] = {{"events", s.events[i]}, {"bytes", s.bytes[i]}};
  for (const auto& [thread, events] : s.by_thread) j["threads"][std::to_string(thread)] = events;
  write_json(o.json, j);
}

nlohmann::json json_of(const media::dirtiness& d) {
  return {{"lines", d.total()}, {"mean", d.mean()}, {"eighths", d.eighths()}};
}

void print(const char* part, const media::dirtiness& d) {
  fmt::print("{:<8}  {:>10}  {:>5.3f}", part, d.total(), d.mean());
  for (const std::uint64_t lines : d.eighths())
    fmt::print(
        "  {:>6.1f}",
        d.total() == 0 ? 0.0 : 100.0 * static_cast<double>(lines) / static_cast<double>(d.total()));
  fmt::print("\n");
}

void show_dirtiness(const options& o) {
  media::tape_reader tape = open_tape(o.path);
  const auto d = media::dirtiness_of(tape, interrupted);
  if (!d) fail(d.error());
  if (interrupted()) throw CLI::RuntimeError(130);
  const std::pair<const char*, media::dirtiness> parts[] = {
      {"home", d->home}, {"log", d->log}, {"control", d->control}, {"all", d->all()}};
  if (o.json != "-") {
    fmt::print("{:<8}  {:>10}  {:>5}  {:>6}", "lines", "written", "mean", "clean");
    for (int bytes = 8; bytes <= 64; bytes += 8) fmt::print("  {:>6}", fmt::format("-{} B", bytes));
    fmt::print("   % of the lines by dirty bytes\n");
    for (const auto& [part, sums] : parts) print(part, sums);
  }
  if (o.json.empty()) return;
  nlohmann::json j;
  for (const auto& [part, sums] : parts) j[part] = json_of(sums);
  write_json(o.json, j);
}

// Creates a tape at the path: `write` writes its events, and the tape is finished. Removes the file
// when either fails.
template <class Write>
void write_tape(const std::string& path, const media::tape_options& shape, Write&& write) {
  auto tape = media::tape_writer::to_file(path, shape);
  if (!tape) fail(tape.error());
  const auto written = write(**tape);
  const auto ended = (*tape)->finish();
  if (written && ended) return;
  if (std::filesystem::is_regular_file(path)) std::filesystem::remove(path);
  fail(written ? ended.error() : written.error());
}

// Runs a workload's operations without persistence, in threads that take turns. The tape does not
// contain the filling of the structure.
void record_native(const options& o) {
  const auto& r = o.run;
  workloads::native_plan plan{.params = r.content,
                              .threads = r.threads,
                              .operations = r.operations,
                              .seed = r.seed,
                              .bytes = o.bytes,
                              .in_order_every = o.in_order_every};
  if (!o.costs.empty())
    plan.costs = workloads::native_costs{o.costs[0], o.costs[1], o.costs[2], o.costs[3]};
  auto run = workloads::make_native(r.workload, plan);
  if (!run) fail(run.error());
  write_tape(o.path, workloads::native_shape(**run, plan), [&](media::tape_writer& tape) {
    return workloads::record_native(**run, r.workload, plan, tape,
                                    [](std::uint64_t) { return !interrupted(); });
  });
}

void convert(const options& o) {
  std::optional<sim::persistent_range> range;
  media::tape_options shape = sim::converted_shape;
  if (!o.persistent.empty()) {
    const auto given = sim::parse_persistent_range(o.persistent);
    if (!given) fail(given.error());
    range = *given;
    shape.pool_size = range->end - range->begin;
  }
  write_tape(o.path, shape, [&](media::tape_writer& tape) {
    const auto done = sim::convert_trace(
        o.from, o.input, tape, [](std::uint64_t) { return !interrupted(); }, range);
    if (done) fmt::print("{} lines, {} events\n", done->lines, done->events);
    return done;
  });
}

// Runs a workload's transactions on a fresh pool.
void record(options& o) {
  auto& r = o.run;
  r.dir = enter_scratch(!r.dir.empty() ? r.dir : folder_in_memory());
  r.record_bytes = !o.no_bytes;
  r.record_set_up = !o.filled;
  r.cancelled = interrupted;
  const auto tape = workloads::record(r, [&](const media::tape_options& shape) {
    return media::tape_writer::to_file(o.path, shape);
  });
  if (!tape) fail(tape.error());
  if (interrupted()) throw CLI::RuntimeError(130);
}

CLI::App* add(CLI::App& group, const char* name, const char* what,
              const std::shared_ptr<options>& o) {
  CLI::App* command = group.add_subcommand(name, what);
  command->add_option("tape", o->path, "the tape file")->required();
  return command;
}

void add_record(CLI::App& group, const std::shared_ptr<options>& o) {
  CLI::App* recorded = add(group, "record", "run a workload and write its tape", o);
  auto& r = o->run;
  r.dir.clear();
  recorded->add_option("--kind", o->kind, "mechanism: on a pool; native: without persistence")
      ->check(CLI::IsMember({"mechanism", "native"}))
      ->capture_default_str();
  recorded
      ->add_option("--workload", r.workload,
                   fmt::format("{}", fmt::join(workloads::workload_names(), ", ")))
      ->capture_default_str();
  recorded->add_option("--mechanism", r.mechanism,
                       "a mechanism of `stele compare`; default: the library's");
  recorded->add_option("--operations", r.operations, "transactions of one operation")
      ->capture_default_str();
  recorded
      ->add_option("--threads", r.threads,
                   "threads with a log each, taking turns transaction by transaction")
      ->capture_default_str()
      ->check(CLI::Range(1, 64));
  recorded->add_option("--keys", r.content.keys, "size of the key space")->capture_default_str();
  recorded
      ->add_option("--value-size,--elements-bytes", r.content.value_size,
                   "bytes of an element; native: up to 1 MiB")
      ->capture_default_str();
  recorded->add_option("--seed", r.seed, "of the operations")->capture_default_str();
  recorded
      ->add_option("--read-share", r.content.read_share,
                   "share of operations that only read; ycsb, tpcc and linkbench have their own")
      ->capture_default_str();
  recorded->add_flag(
      "--coalesce", r.content.coalesce,
      "mechanism: the structure in coalescing memory; hash, rbtree, kv, ycsb, tpcc, linkbench");
  recorded->add_flag(
      "--bytes", o->bytes,
      "native: the tape begins with the memory's content, and stores carry their bytes");
  recorded->add_option("--in-order-every", o->in_order_every,
                       "native: each such transaction asks to commit in order; 0: none does");
  recorded->add_flag(
      "--no-bytes", o->no_bytes,
      "mechanism: leave out what stores store, and the pool's content: a tape for timing");
  recorded->add_flag("--filled", o->filled, "mechanism: begin when the pool has been filled");
  recorded->add_option("--dir", r.dir, "where the pool is created and removed again");
  recorded
      ->add_option("--costs", o->costs,
                   "native: instructions of an access, a further line, an allocation, an "
                   "operation; default: measured")
      ->delimiter(',')
      ->expected(4);
  recorded->callback([o] { o->kind == "native" ? record_native(*o) : record(*o); });
}

}  // namespace

void add_tape(CLI::App& app) {
  const auto o = std::make_shared<options>();
  CLI::App* group = app.add_subcommand("tape", "record and read the memory events of a run");
  group->require_subcommand(1);
  add_record(*group, o);
  CLI::App* made = group->add_subcommand("convert", "a tape of another tool's trace");
  made->add_option("input", o->input, "the trace")->required();
  made->add_option("tape", o->path, "the tape file")->required();
  made->add_option("--from", o->from,
                   fmt::format("its format: {}", fmt::join(sim::trace_formats(), ", ")))
      ->required();
  made->add_option("--persistent", o->persistent,
                   "begin-end: the trace's persistent addresses; all others are volatile");
  made->callback([o] { convert(*o); });
  CLI::App* dumped = add(*group, "dump", "every event, one a line", o);
  dumped->add_option("--limit", o->limit, "stop after so many events; 0: all");
  dumped->callback([o] { dump(*o); });
  CLI::App* counted = add(*group, "stat", "events and bytes by operation and thread", o);
  counted->add_option("--json", o->json, "write the sums to FILE; - is standard output");
  counted->callback([o] { stat(*o); });
  CLI::App* measured =
      add(*group, "dirtiness", "how much of each line written back was stored to", o);
  measured->add_option("--json", o->json, "write the sums to FILE; - is standard output");
  measured->callback([o] { show_dirtiness(*o); });
}

}  // namespace stele::cli
