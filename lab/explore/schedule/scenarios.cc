// The scenarios, and the sweep through them.
#include <explore/feature_mix.h>
#include <explore/mutant_table.h>
#include <explore/schedule/scenarios.h>
#include <tx/mechanism/catalog.h>

#include <algorithm>
#include <chrono>
#include <span>

namespace stele::explore {

namespace {

using detail::find_mechanism;
using schedule::granularity;

struct scenario_list {
  std::string mechanism;
  std::uint64_t seed;
  std::vector<scenario> all;

  scenario& add(std::string name, std::string workload, std::uint64_t first, unsigned each,
                std::size_t keys, std::size_t value) {
    scenario s;
    s.name = std::move(name);
    s.run_plan.mechanism = mechanism;
    s.run_plan.workload = std::move(workload);
    s.run_plan.operations = first;
    s.run_plan.threads = 2;
    s.run_plan.keys = keys;
    s.run_plan.value_size = value;
    s.run_plan.seed = seed;
    s.concurrent.each = each;
    return all.emplace_back(std::move(s));
  }
};

bool has(std::initializer_list<std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Threads that take a log, or the bias, from another. A thread that commits alone gets the bias and
// takes no locks, until another one comes.
void add_comers(scenario_list& w) {
  auto& threads = w.add("more threads than logs", "sps", 3, 1, 4, 8);
  threads.run_plan.threads = 3;
  auto& s = w.add("alone, then not", "sps", 2, 5, 2, 8);
  s.random_share = 0.7;
  auto& stores = w.add("alone, each store a point", "sps", 1, 4, 3, 8);
  stores.concurrent.points = granularity::stores, stores.preemptions = 1;
}

// Commits that find their ring full. How many operations fill it depends on the seed.
void add_truncations(scenario_list& w) {
  auto& one = w.add("truncation", "sps", 2 + w.seed % 4, 2, 16, 512);
  one.weight = 2;
  auto& three = w.add("truncation, three threads", "sps", 1 + w.seed % 6, 2, 24, 256);
  three.run_plan.threads = 3, three.run_plan.log_count = 3, three.random_share = 0.9;
  auto& wrapped = w.add("rewritten after wrap", "sps", 10 + w.seed % 4, 3, 3, 256);
  wrapped.random_share = 0.9;
  auto& stores = w.add("truncation, each store a point", "sps", 2 + w.seed % 2, 2, 16, 512);
  stores.concurrent.points = granularity::stores, stores.preemptions = 1, stores.weight = 2;
}

// Nothing is skipped, so durable commits over undo stand alone, unless ordered ones came before.
void add_alone(scenario_list& w) {
  const std::size_t first = w.all.size();
  w.add("commits stand alone", "sps", 3 + w.seed % 4, 3, 8, 8).weight = 2;
  auto& cut = w.add("commits stand alone, truncated", "sps", 2 + w.seed % 4, 3, 16, 512);
  cut.random_share = 0.8;
  auto& mixed = w.add("commits stand alone or are ordered", "sps", 4 + w.seed % 4, 3, 3, 8);
  mixed.run_plan.sync_every = 8, mixed.concurrent.mixed = true, mixed.weight = 2;
  for (scenario& s : std::span(w.all).subspan(first)) s.run_plan.cache_bytes = skips_nothing;
}

// Snapshots that are held while others commit, truncate and free.
void add_snapshots(scenario_list& w) {
  auto& held = w.add("a snapshot is held", "sps", 2, 2, 3, 8);
  held.concurrent.points = granularity::loads, held.concurrent.beside = "snapshot",
  held.preemptions = 1, held.random_share = 0.8;
  auto& cut = w.add("snapshots are held, truncated", "sps", 2 + w.seed % 4, 2, 16, 512);
  cut.concurrent.beside = "snapshot+snapshot", cut.random_share = 0.9, cut.weight = 0.5;
  auto& tree = w.add("snapshots of what is freed", "rbtree", 4 + w.seed % 4, 3, 4, 2048);
  tree.concurrent.beside = "snapshot+snapshot", tree.random_share = 0.9, tree.weight = 0.5,
  tree.bound = 4, tree.run_plan.pool_size = 131072;
}

// Full pools grow beside commits, long reads, and moments that are held.
void add_growing(scenario_list& w) {
  if (!has({"default", "redo-async", "redo", "undo", "vcbp", "adaptive"}, w.mechanism)) return;
  const auto growing = [&](const char* name, const char* beside) -> scenario& {
    auto& s = w.add(name, "rbtree", 2 + w.seed % 3, 3, 6, 4096);
    s.run_plan.pool_size = 65536, s.run_plan.grow_every = 1'000'000;
    s.concurrent.beside = beside, s.random_share = 0.9, s.bound = 4, s.weight = 0.5;
    return s;
  };
  growing("beside snapshots, growing", "snapshot+snapshot|grow+grow");
  growing("beside readers, growing", "read+read+backup|check+grow");
}

// Readers in other processes attach and go, beside commits.
void add_other_processes(scenario_list& w) {
  auto& short_ones = w.add("other processes read", "sps", 3, 2, 4, 8);
  short_ones.concurrent.beside = "other", short_ones.random_share = 0.8, short_ones.weight = 0.5;
  auto& again = w.add("other processes come and go", "sps", 2, 4, 3, 8);
  again.concurrent.beside = "other+other", again.random_share = 0.9, again.weight = 0.5;
  auto& loads = w.add("other processes read, each load a point", "sps", 2, 2, 4, 8);
  loads.concurrent.points = granularity::loads, loads.concurrent.beside = "other",
  loads.preemptions = 1, loads.random_share = 0.8;
  // The writer has the bias when they come, or gets it beside them.
  auto& alone = w.add("other processes come to one thread", "sps", 2, 6, 3, 8);
  alone.run_plan.threads = 1, alone.concurrent.points = granularity::loads,
  alone.concurrent.beside = "other", alone.preemptions = 1, alone.random_share = 0.8;
  auto& lone = w.add("another process beside one thread", "sps", 2, 4, 24, 8);
  lone.run_plan.threads = 1, lone.concurrent.points = granularity::loads,
  lone.concurrent.beside = "other", lone.concurrent.attached = true, lone.random_share = 0,
  lone.weight = 3, lone.bound = 4;
  auto& once = w.add("other processes read one moment, each load a point", "sps", 2, 2, 4, 8);
  once.concurrent.points = granularity::loads, once.concurrent.beside = "other-at-once",
  once.preemptions = 1, once.random_share = 0.8;
  auto& cut = w.add("other processes read, truncated", "sps", 2 + w.seed % 4, 2, 16, 512);
  cut.concurrent.beside = "other+other", cut.random_share = 0.9, cut.weight = 0.5;
}

// Execution in log where adjacent words share a record; aborts, in a small interval.
void add_runs(scenario_list& w) {
  if (!has({"xil", "blurred", "adaptive"}, w.mechanism)) return;
  auto& cut = w.add("runs, truncated", "sps", 2 + w.seed % 4, 2, 16, 512);
  cut.run_plan.runs = true;
  auto& stores = w.add("runs, each store a point", "rbtree", 2 + w.seed % 4, 2, 4, 64);
  stores.run_plan.runs = true, stores.concurrent.points = granularity::stores,
  stores.random_share = 0.9;
  auto& edges = w.add("runs that are aborted", "edges", 4 + w.seed % 8, 2, 8, 8);
  edges.run_plan.runs = true, edges.run_plan.abort_interval = 16, edges.random_share = 0.9,
  edges.bound = 4, edges.run_plan.pool_size = 262144;
}

// Block checksums that truncations update.
void add_sums(scenario_list& w) {
  if (!has({"default", "redo-async", "vcbp", "xil", "blurred", "adaptive"}, w.mechanism)) return;
  auto& cut = w.add("sums, truncated", "sps", 2 + w.seed % 4, 2, 16, 512);
  cut.run_plan.block_checksums = true;
  if (!has({"xil", "blurred", "adaptive"}, w.mechanism)) return;
  // Two threads' objects lie in one block, and a log is nearly full when one of them commits.
  auto& crowded = w.add("sums, many commits", "rbtree", 8 + w.seed % 4, 12, 12, 256);
  crowded.run_plan.block_checksums = true, crowded.concurrent.points = granularity::stores,
  crowded.random_share = 1, crowded.bound = 2, crowded.run_plan.pool_size = 131072;
}

void add_empty(scenario_list& w) {
  auto& s = w.add("ordered beside updates that store nothing", "sps", 2, 2, 3, 8);
  s.run_plan.sync_every = 8, s.concurrent.beside = "update+update", s.random_share = 0.8;
}

void add_ordered(scenario_list& w) {
  auto& s = w.add("ordered", "sps", 2, 2, 3, 8);
  s.run_plan.sync_every = 2;
  auto& seldom = w.add("ordered, seldom synced", "sps", 2, 2, 3, 8);
  seldom.run_plan.sync_every = 8;
  auto& checked = w.add("ordered beside check", "sps", 2, 2, 2, 8);
  checked.run_plan.sync_every = 8, checked.concurrent.beside = "check", checked.weight = 4;
  auto& copied = w.add("ordered beside backup and sync", "sps", 2, 2, 3, 8);
  copied.run_plan.sync_every = 8, copied.concurrent.beside = "backup+sync",
  copied.random_share = 0.8;
  auto& filled = w.add("ordered, truncated", "sps", 2 + w.seed % 4, 3, 16, 512);
  filled.run_plan.sync_every = 8, filled.random_share = 0.8;
  auto& flushed = w.add("ordered, made durable in the background", "sps", 4, 2, 3, 8);
  flushed.run_plan.sync_every = 8, flushed.concurrent.background = true, flushed.random_share = 0.8;
  auto& stores = w.add("ordered, each store a point", "sps", 2, 2, 2, 8);
  stores.run_plan.sync_every = 8, stores.concurrent.beside = "check",
  stores.concurrent.points = granularity::stores, stores.random_share = 1;
  auto& loads = w.add("ordered, truncated, each load a point", "sps", 3 - w.seed % 2, 2, 16, 512);
  loads.weight = 2, loads.run_plan.sync_every = 2, loads.concurrent.points = granularity::loads,
  loads.preemptions = 1, loads.random_share = 0.9;
  auto& synced_meanwhile = w.add("ordered and synced beside backup", "sps", 2, 2, 16, 512);
  synced_meanwhile.run_plan.sync_every = 2, synced_meanwhile.concurrent.beside = "backup";
  auto& synced = w.add("ordered beside syncs", "sps", 2, 3, 64, 64);
  synced.run_plan.sync_every = 8, synced.concurrent.beside = "sync+sync+sync",
  synced.random_share = 0.7, synced.weight = 2;
  auto& synced_filled = w.add("ordered beside syncs, truncated", "sps", 2 + w.seed % 4, 4, 8, 512);
  synced_filled.run_plan.sync_every = 16, synced_filled.concurrent.beside = "sync+sync+sync",
  synced_filled.random_share = 0.8, synced_filled.weight = 2;
  add_empty(w);
  auto& told = w.add("ordered beside syncs, told", "sps", 2, 3, 4, 8);
  told.run_plan.sync_every = 8, told.concurrent.beside = "sync+sync", told.concurrent.told = true,
  told.random_share = 0.7;
  auto& background = w.add("ordered and told, made durable in the background", "sps", 2, 3, 4, 8);
  background.run_plan.sync_every = 8, background.concurrent.background = true,
  background.concurrent.told = true, background.random_share = 0.8;
  // With this seed a thread that is alone loads what another one has deferred.
  auto& alone = w.add("ordered, alone, then durable", "sps", 3, 4, 8, 64);
  alone.run_plan.sync_every = 8, alone.concurrent.last_durable = true, alone.run_plan.seed = 2,
  alone.random_share = 0.2, alone.weight = 3;
  auto& mixed = w.add("ordered and durable", "sps", 3, 3, 3, 8);
  mixed.run_plan.sync_every = 8, mixed.concurrent.mixed = true;
  auto& mixed_filled = w.add("ordered and durable, truncated", "sps", 2 + w.seed % 4, 3, 16, 512);
  mixed_filled.run_plan.sync_every = 8, mixed_filled.concurrent.mixed = true,
  mixed_filled.random_share = 0.8;
}

void add_shared(scenario_list& w) {
  auto& s = w.add("one log for all", "sps", 6, 2, 16, 8);
  s.run_plan.shared_log = true;
  auto& cut = w.add("one log for all, truncated", "sps", 3 + w.seed % 2, 2, 16, 512);
  cut.run_plan.shared_log = true, cut.random_share = 0.8, cut.weight = 4;
  auto& ordered = w.add("one log for all, ordered", "sps", 3 + w.seed % 3, 3, 16, 512);
  ordered.run_plan.shared_log = true, ordered.run_plan.sync_every = 2, ordered.random_share = 0.9;
  auto& synced = w.add("one log for all, ordered beside syncs", "sps", 3 + w.seed % 3, 3, 16, 512);
  synced.run_plan.shared_log = true, synced.run_plan.sync_every = 8, synced.random_share = 0.8,
  synced.concurrent.beside = "sync+sync", synced.concurrent.told = true;
  auto& three = w.add("one log for all, three threads", "sps", 1 + w.seed % 5, 2, 16, 512);
  three.run_plan.shared_log = true, three.run_plan.threads = 3, three.run_plan.log_count = 3,
  three.random_share = 0.9;
}

void add_heap(scenario_list& w, bool log_home) {
  auto& heap = w.add("heap", "churn", 10 + w.seed % 10, 2, 24, 8);
  heap.concurrent.points = granularity::stores, heap.random_share = 0.8, heap.bound = 8;
  if (log_home) return;
  auto& taken = w.add("heap, beside backup", "churn", 10 + w.seed % 10, 2, 24, 8);
  taken.concurrent.beside = "backup", taken.concurrent.points = granularity::stores,
  taken.random_share = 0.8, taken.bound = 4;
  // The threads share a large slab, and others are gathered.
  auto& large = w.add("large slabs", "large", 10 + w.seed % 10, 2, 24, 8);
  large.concurrent.points = granularity::stores, large.random_share = 0.8, large.bound = 4,
  large.run_plan.pool_size = 262144;
}

// One update at a time: the writer's mutex instead of locks, until another process attaches; reads
// beside it; ordered commits that keep what they have stored from others.
void add_one_writer(scenario_list& w, bool log_home) {
  const std::size_t first = w.all.size();
  w.add("one writer", "sps", 3 + w.seed % 4, 2, 8, 8);
  w.add("one writer, truncated", "sps", 2 + w.seed % 4, 2, 16, 512).random_share = 0.8;
  auto& read = w.add("one writer beside reads", "sps", 2, 2, 4, 8);
  read.concurrent.beside = "read+read", read.random_share = 0.8;
  if (!log_home) {
    auto& attached = w.add("one writer beside another process", "sps", 2 + w.seed % 3, 2, 8, 8);
    attached.concurrent.beside = "other+other", attached.random_share = 0.8;
  }
  if (w.mechanism == "default") {
    auto& ordered = w.add("one writer, ordered and durable", "sps", 2 + w.seed % 3, 3, 4, 8);
    ordered.run_plan.sync_every = 8, ordered.concurrent.mixed = true;
    auto& both = w.add("one writer, ordered, beside another process", "sps", 2, 3, 4, 8);
    both.run_plan.sync_every = 8, both.concurrent.mixed = w.seed % 2 == 0;
    both.concurrent.attached = true, both.concurrent.beside = "other+sync+other";
    both.run_plan.threads = 3, both.run_plan.log_count = 3, both.random_share = 0.8;
  }
  for (scenario& s : std::span(w.all).subspan(first)) s.run_plan.one_writer = true;
}

// The main thread of a Redis server, and the syncs that its clients wait for.
void add_redis(scenario_list& w) {
  auto& s = w.add("units of Redis beside syncs", "redis", 4 + w.seed % 8, 4, 4, 8);
  s.run_plan.pool_size = 196608, s.run_plan.threads = 1, s.run_plan.sync_every = 16;
  s.concurrent.beside = "sync+sync", s.random_share = 0.8, s.bound = 4;
}

#ifdef STELE_HAVE_SQLITE
// Connections of SQLite, and flushes of what their commits have deferred.
void add_sqlite(scenario_list& w) {
  const auto of = [&](const char* name, const char* workload, std::uint64_t first, unsigned each,
                      const char* beside) -> scenario& {
    auto& s = w.add(name, workload, first, each, 4, 8);
    s.run_plan.pool_size = 196608, s.concurrent.beside = beside, s.random_share = 0.8, s.bound = 4;
    return s;
  };
  of("databases of SQLite", "sqlite-blocks", 2 + w.seed % 4, 2, "").weight = 0.5;
  auto& read = of("readers of SQLite", "sqlite-block", 1 + w.seed % 4, 2, "read+read+read");
  read.concurrent.points = granularity::loads, read.weight = 3;
  if (w.mechanism != "default") return;
  auto& two = of("deferred by SQLite", "sqlite-blocks", 1 + w.seed % 4, 3, "sync+sync");
  two.run_plan.sync_every = 4, two.concurrent.mixed = w.seed % 2 == 0;
  auto& flushed =
      of("readers of SQLite beside flushes", "sqlite-block", 1 + w.seed % 4, 2, "read+sync+read");
  flushed.run_plan.sync_every = 2, flushed.concurrent.points = granularity::loads;
  auto& again = of("flushes of SQLite", "sqlite-block", 1 + w.seed % 4, 4, "sync+read+sync");
  again.run_plan.sync_every = 8;
  // A reader that is stopped in the middle of a block, and one flush meanwhile.
  auto& whole =
      of("a flush beside one connection of SQLite", "sqlite-block", 1 + w.seed % 2, 3, "sync+sync");
  whole.run_plan.sync_every = 8, whole.run_plan.threads = 1, whole.preemptions = 1,
  whole.concurrent.points = granularity::loads, whole.random_share = 0.2;
}
#endif

struct load_of_mix {
  const char* workload;
  std::size_t keys, value_size, pool_size;
  std::uint64_t bound;
};
load_of_mix load_of(feature_mix::load what) {
  using enum feature_mix::load;
  switch (what) {
    case words:
      return {"sps", 3, 8, 65536, 8};
    case lines:
      return {"sps", 16, 512, 65536, 8};
    case scattered:
      return {"sps", 64, 64, 65536, 8};
    case tree:
      return {"rbtree", 4, 2048, 131072, 4};
    case shapes:
      return {"edges", 8, 8, 262144, 4};
    case rings:
      return {"rings", 8, 8, 131072, 4};
    default:
      return {"churn", 24, 8, 65536, 4};
  }
}

void set_commits(scenario& s, feature_mix::commits how) {
  using enum feature_mix::commits;
  s.run_plan.sync_every = how == durable ? 0 : how == synced_often ? 2 : 8;
  s.concurrent.mixed = how == mixed;
  s.concurrent.last_durable = how == last_durable;
  s.concurrent.told = how == told;
}

void add_mix(scenario_list& w, const feature_mix& m, unsigned number) {
  const load_of_mix load = load_of(m.what);
  auto& s = w.add("features mixed by the seed, " + std::to_string(number + 1), load.workload,
                  2 + w.seed % 5, 3, load.keys, load.value_size);
  set_commits(s, m.how);
  s.run_plan.pool_size = load.pool_size, s.bound = load.bound, s.random_share = 0.8;
  s.run_plan.threads = m.threads, s.run_plan.log_count = m.logs;
  s.run_plan.block_checksums = m.sums, s.run_plan.shared_log = m.shared_log;
  s.run_plan.one_writer = m.one_writer;
  s.concurrent.attached = m.attached, s.concurrent.background = m.background;
  if (m.on_file) s.run_plan.media = "file";
  if (m.each_load_a_point) s.concurrent.points = granularity::loads, s.preemptions = 1;
  for (const std::string_view work : m.beside) {
    s.concurrent.beside.append(s.concurrent.beside.empty() ? "" : m.works_apart ? "|" : "+");
    s.concurrent.beside.append(work);
    if (work == "grow") s.run_plan.grow_every = 1'000'000;  // room to grow
  }
}

// Mixes of features that the seed draws. Another round has another seed, so others.
void add_mixes(scenario_list& w) {
  constexpr unsigned mixes = 8;
  for (unsigned n = 0; n < mixes; ++n) add_mix(w, draw_mix(w.seed, n), n);
}

void add_long_records(scenario_list& w) {
  auto& outgrown = w.add("records that outgrow a log", "rbtree", 4 + w.seed % 4, 2, 4, 4096);
  outgrown.random_share = 0.8, outgrown.bound = 6, outgrown.run_plan.pool_size = 131072;
  auto& whole = w.add("records as long as a log", "rings", 4 + w.seed % 4, 2, 8, 8);
  whole.random_share = 0.8, whole.bound = 4, whole.run_plan.pool_size = 131072;
}

}  // namespace

std::vector<scenario> scenarios_of(std::string_view mechanism, std::uint64_t seed) {
  scenario_list w{std::string(mechanism), seed, {}};
  const auto entry = find_mechanism(mechanism);
  if (!entry || mechanism == "none") return {};
  const bool parity = (*entry)->has_parity, log_home = (*entry)->home == format::home_kind::log;
  w.add("short", "sps", 4 + seed % 8, 2, 24, 8).weight = 2;
  auto& loads = w.add("each load a point", "sps", 2, 2, 2, 8);
  loads.concurrent.points = granularity::loads, loads.random_share = 0.8;
  auto& seen = w.add("beside readers, each load a point", "sps", 2, 1, 4, 8);
  seen.concurrent.points = granularity::loads, seen.weight = 4,
  seen.concurrent.beside = "read+read", seen.preemptions = 1, seen.random_share = 0.8;
  add_comers(w);
  add_truncations(w);
  add_heap(w, log_home);
  add_long_records(w);
  auto& checked = w.add("beside check", "rbtree", 4 + (seed + 1) % 4, 2, 4, 4096);
  checked.weight = 2, checked.concurrent.beside = "check+check+read", checked.random_share = 0.9,
  checked.bound = 4, checked.run_plan.pool_size = 131072;
  // One of these operations reuses the block that another has freed.
  auto& again = w.add("a block taken again, beside check", "rbtree", 6, 2, 4, 2048);
  again.run_plan.seed = 1, again.concurrent.beside = "check+check", again.random_share = 0.9,
  again.bound = 4, again.weight = 4, again.run_plan.pool_size = 131072;
  auto& edges = w.add("edges", "edges", 4 + seed % 8, 2, 8, 8);
  edges.random_share = 0.9, edges.bound = 4, edges.run_plan.pool_size = 262144;
  if (!log_home) {
    auto& copied = w.add("beside backup", "rbtree", 4 + (seed + 1) % 4, 2, 4, 4096);
    copied.weight = 2, copied.concurrent.beside = "backup", copied.random_share = 0.9,
    copied.bound = 4, copied.run_plan.pool_size = 131072;
    auto& small = w.add("beside backup, short", "sps", 2, 2, 16, 512);
    small.concurrent.beside = "backup";
  }
  if (has({"default", "redo-async", "vcbp", "blurred", "adaptive"}, mechanism)) {
    auto& background = w.add("truncated in the background", "sps", 1 + seed % 4, 2, 16, 512);
    background.concurrent.background = true, background.random_share = 0.8;
    auto& grown = w.add("beside grow", "sps", 4, 2, 4, 8);
    grown.concurrent.beside = "grow", grown.run_plan.grow_every = 1'000'000;
  }
  add_sums(w);
  add_runs(w);
  add_one_writer(w, log_home);
  if (!log_home) add_other_processes(w);
  if (!log_home) add_snapshots(w), add_growing(w);
  if (log_home) {
    auto& cleaned = w.add("cleaned in the background", "sps", 8 + seed % 16, 3, 16, 512);
    cleaned.concurrent.background = true, cleaned.random_share = 0.8, cleaned.weight = 2;
    auto& again_cleaned =
        w.add("heap, cleaned in the background", "churn", 20 + seed % 20, 3, 24, 8);
    again_cleaned.concurrent.background = true, again_cleaned.random_share = 0.8,
    again_cleaned.bound = 8;
    // Swaps have split the entry that filled the array. Cleaning joins the pieces meanwhile.
    auto& joined = w.add("joined in the background", "sps", 6 + seed % 8, 10, 64, 8);
    joined.concurrent.background = true, joined.random_share = 0.9, joined.weight = 2,
    joined.bound = 4;
  }
#ifdef STELE_HAVE_SQLITE
  if (has({"default", "redo", "undo", "archapt-redo"}, mechanism)) add_sqlite(w);
#endif
  if (mechanism == "archapt-undo") add_alone(w), add_empty(w);
  if (mechanism == "default") add_ordered(w), add_shared(w), add_redis(w), add_mixes(w);
  if (has({"default", "redo", "undo", "base", "redo-async"}, mechanism)) {
    auto& file = w.add("on a file", "sps", 3 + seed % 3, 2, 16, 512);
    file.run_plan.media = "file", file.bound = 16;
  }
  for (scenario& s : w.all) {
    if (parity) s.run_plan.pool_size *= 2;
    if (log_home && s.run_plan.value_size >= 2048) s.run_plan.pool_size *= 2;
  }
  return std::move(w.all);
}

namespace {

// One round of a mechanism: adds to the earlier findings, scenario by scenario.
result<> sweep_round(const sweep_settings& s, const std::string& mechanism, std::uint64_t seed,
                     std::uint64_t schedules, std::vector<sweep_outcome>& found) {
  auto scenarios = scenarios_of(mechanism, seed);
  if (!s.scenario.empty())
    std::erase_if(scenarios, [&](const scenario& one) { return one.name != s.scenario; });
  std::erase_if(scenarios, [&](const scenario& one) { return !one.name.starts_with(s.prefix); });
  double weights = 0;
  for (const scenario& one : scenarios) weights += one.weight;
  found.resize(scenarios.size());
  for (std::size_t i = 0; i < scenarios.size(); ++i) {
    scenario& one = scenarios[i];
    const double share = static_cast<double>(schedules) * one.weight / weights;
    schedule_settings how;
    how.preemptions = one.preemptions;
    how.random = static_cast<std::uint64_t>(share * one.random_share);
    how.max_systematic = static_cast<std::uint64_t>(share) - how.random;
    how.seed = seed;
    how.bound = one.bound;
    how.seconds = s.seconds;
    one.run_plan.mutant = s.plant;
    const auto now = explore_schedules(one.run_plan, one.concurrent, how);
    if (!now)
      return std::unexpected(
          error{now.error().code, mechanism + ", " + one.name + ": " + now.error().message});
    found[i].mechanism = mechanism, found[i].scenario = one.name, found[i].found += *now;
    if (s.stop_at_violation && !now->violations.empty()) break;
  }
  return {};
}

}  // namespace

// Rounds double in length, each with another seed: the scenario that shows a bug is seldom the
// first.
result<std::vector<sweep_outcome>> sweep(const sweep_settings& s) {
  constexpr std::uint64_t first_round = 1'500;
  std::vector<sweep_outcome> all;
  for (const auto& m : detail::mechanisms()) {
    if (m.name == "none" || (!s.mechanism.empty() && m.name != s.mechanism)) continue;
    std::vector<sweep_outcome> found;
    bool stops = false;
    std::uint64_t round = first_round, seed = s.seed;
    for (std::uint64_t left = s.schedules; left != 0 && !stops; round *= 2, ++seed) {
      if (left < 3 * round) round = left;  // no short round at the end
      if (auto done = sweep_round(s, m.name, seed, round, found); !done)
        return std::unexpected(done.error());
      left -= round;
      stops = s.stop_at_violation &&
              std::ranges::any_of(found, [](const auto& o) { return !o.found.violations.empty(); });
    }
    for (sweep_outcome& o : found) {
      if (s.on_outcome) s.on_outcome(o);
      all.push_back(std::move(o));
    }
    if (stops) break;
  }
  return all;
}

namespace {

result<> plant(overlap_mutant& o, const mutant_entry& m, const overlap_mutant_selection& c) {
  sweep_settings s;
  s.mechanism = o.mechanism, s.schedules = c.schedules, s.seed = c.seed, s.plant = m.what,
  s.stop_at_violation = true;
  if (c.known) s.scenario = m.scenario;
  const auto outcomes = sweep(s);
  if (!outcomes) return std::unexpected(outcomes.error());
  for (const sweep_outcome& one : *outcomes) {
    o.schedules += one.found.schedules;
    if (one.found.violations.empty()) continue;
    o.scenario = one.scenario, o.what = one.found.violations.front().what,
    o.line = one.found.violations.front().line;
  }
  return {};
}

}  // namespace

result<std::vector<overlap_mutant>> sweep_mutants(const overlap_mutant_selection& c) {
  constexpr std::string_view overlaps = "overlap:";
  std::vector<overlap_mutant> all;
  for (const mutant_entry& m : mutants) {
    if (!m.of.starts_with(overlaps) || (!c.name.empty() && m.name != c.name)) continue;
    for (std::string_view of = m.of.substr(overlaps.size()); !of.empty();) {
      const auto comma = std::min(of.find(','), of.size());
      overlap_mutant o{std::string(m.name), std::string(of.substr(0, comma)), "", "", "", 0, 0};
      of.remove_prefix(std::min(comma + 1, of.size()));
      if (!c.mechanism.empty() && o.mechanism != c.mechanism) continue;
      const auto begun = std::chrono::steady_clock::now();
      if (auto done = plant(o, m, c); !done) return std::unexpected(done.error());
      o.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
      all.push_back(std::move(o));
      if (c.on_outcome) c.on_outcome(all.back());
      if (c.once) break;
    }
  }
  return all;
}

}  // namespace stele::explore
