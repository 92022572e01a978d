// Which runs each mutant is tried with: all of them with few states of each crash point, then all
// of them with as many as the table says. Most mutants fall in the first round.
#include <explore/controller_crashes.h>
#include <explore/mutants.h>
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace stele::explore {

namespace {

struct trial {
  const char* workload;
  unsigned threads;
  std::uint64_t operations, bound, sync_every = 0;
  std::size_t value_size = 8;
  std::size_t cache_bytes = 0;  // not 0: only for mechanisms with checksums over home
  std::uint64_t checkpoint_commits = 0;
  bool block_checksums = false;  // only for the mutants of block checksums and of growth
  std::uint64_t grow_every = 0;
  bool shared_log = false;  // only for the mutants of the shared log
  bool on_file = false;     // only for the mutants of files
  std::uint64_t fail_call = 0;
  file_fault fault = file_fault::refused;
  std::size_t pool_size = 65536;
  std::uint32_t chunk_shift = 0;
  bool earlier_version = false;  // only for the mutants of the version
  bool runs = false;             // only for the mutants of runs in block logs
};
constexpr trial trials[] = {
    {"sps", 1, 60, 128, 0},
    {"sps", 2, 60, 128, 0},
    {"sps", 1, 60, 512, 0, 256, 1792},
    {"sps", 1, 60, 256, 0, 64, 0, 0, true, 25},
    {"churn", 1, 120, 256, 0, 8, 0, 0, true, 40},
    {"churn", 1, 800, 512, 0, 8, 0, 0, true, 0},
    {.workload = "churn",
     .threads = 1,
     .operations = 200,
     .bound = 32,
     .block_checksums = true,
     .grow_every = 40,
     .pool_size = 94208,
     .chunk_shift = 14},  // with room behind the last chunk
    {"sps", 2, 120, 256, 8, 8, 0, 0, false, 0, true},
    {"churn", 2, 400, 512, 30, 8, 0, 0, false, 0, true},
    {.workload = "sps", .threads = 1, .operations = 60, .bound = 128, .on_file = true},
    {.workload = "sps",
     .threads = 1,
     .operations = 60,
     .bound = 128,
     .on_file = true,
     .fail_call = 10},  // a sync of undo
    {.workload = "sps",
     .threads = 1,
     .operations = 60,
     .bound = 128,
     .on_file = true,
     .fail_call = 62},  // a sync of redo-async
    {.workload = "sps",
     .threads = 1,
     .operations = 60,
     .bound = 128,
     .on_file = true,
     .fail_call = 63},  // a sync of default
    {.workload = "sps",
     .threads = 1,
     .operations = 60,
     .bound = 128,
     .on_file = true,
     .fail_call = 4,
     .fault = file_fault::write_back},
    {.workload = "churn", .threads = 2, .operations = 120, .bound = 256, .on_file = true},
    {.workload = "large",
     .threads = 1,
     .operations = 40,
     .bound = 128,
     .pool_size = 262144,
     .earlier_version = true},
    {.workload = "sps",
     .threads = 1,
     .operations = 60,
     .bound = 128,
     .value_size = 64,
     .runs = true},
    {.workload = "rbtree", .threads = 2, .operations = 120, .bound = 128, .runs = true},
    {.workload = "edges",
     .threads = 2,
     .operations = 60,
     .bound = 64,
     .pool_size = 262144,
     .runs = true},
    {.workload = "large", .threads = 1, .operations = 80, .bound = 64, .pool_size = 262144},
    {.workload = "stores", .threads = 1, .operations = 80, .bound = 64, .pool_size = 262144},
    {.workload = "redis", .threads = 1, .operations = 80, .bound = 64, .pool_size = 524288},
    {.workload = "redis",  // strings that are made in parts
     .threads = 1,
     .operations = 80,
     .bound = 64,
     .value_size = 64,
     .pool_size = 524288},
    {.workload = "redis",
     .threads = 1,
     .operations = 80,
     .bound = 64,
     .on_file = true,
     .pool_size = 524288},
    {.workload = "sqlite",
     .threads = 1,
     .operations = 40,
     .bound = 64,
     .sync_every = 15,
     .value_size = 1024,
     .pool_size = 524288},
    {.workload = "sqlite",
     .threads = 1,
     .operations = 40,
     .bound = 64,
     .value_size = 1024,
     .pool_size = 524288},
    {"churn", 1, 60, 128, 0},
    {"sps", 2, 60, 128, 0, 8, skips_nothing},
    {"sps", 2, 60, 128, 7, 8, skips_nothing},
    {"sps", 1, 60, 512, 10, 256, 1792},
    {"sps", 1, 60, 256, 0, 256, 448, 6},
    {"churn", 2, 120, 256, 0},
    {"rbtree", 2, 120, 256, 0},
    {"sps", 2, 120, 256, 8},
    {"churn", 2, 120, 256, 30},
    {"sps", 1, 120, 256, 0, 64},
    {"sps", 2, 400, 512, 0},
    {"churn", 2, 400, 512, 0},
    {"churn", 1, 800, 512, 0},
};

// Returns true when the mutant was killed.
bool record_kill(const findings& found, mutant_outcome& o) {
  o.states += found.states;
  if (found.violations.empty()) return false;
  o.what = found.violations.front().what;
  o.line = found.violations.front().line;
  return true;
}

// Where a controller keeps the order of writes, records are whole. Only expired cells show a
// recovery that does not check them.
bool try_expired_logs(const mutant_entry& m, std::uint64_t seed, mutant_outcome& o) {
  plan p;
  p.mechanism = "base";
  p.workload = "sps";
  p.seed = seed;
  p.mutant = m.what;
  controller_settings s;
  s.scheduler = "strict";
  s.crashes = 20'000;
  s.max_violations = 1;
  s.expired = true;
  const auto found = crash_behind_controller_isolated(p, s);
  return found && record_kill(*found, o);
}

bool serves(const trial& t, const pool_needs& needs) {
  const std::string_view workload = t.workload;
  return !(needs.checkpoints && t.checkpoint_commits == 0) &&
         !(needs.long_run && t.operations < 800) && needs.named_stores == (workload == "stores") &&
         needs.redis == (workload == "redis") && needs.sqlite == (workload == "sqlite") &&
         needs.block_checksums == t.block_checksums && needs.shared_log == t.shared_log &&
         (needs.file == t.on_file || needs.redis) && needs.earlier_version == t.earlier_version &&
         needs.runs == t.runs && !(needs.large_slabs && workload != "large");
}

plan plan_of(const trial& t, const mutant_entry& m, const std::string& mechanism,
             std::uint64_t seed) {
  plan p;
  p.mechanism = mechanism;
  p.workload = t.workload;
  p.threads = t.threads;
  p.operations = t.operations;
  p.sync_every = t.sync_every;
  p.value_size = t.value_size;
  p.pool_size = t.pool_size;
  p.chunk_shift = t.chunk_shift;
  if (t.cache_bytes != 0)
    p.cache_bytes = t.cache_bytes, p.pool_size *= t.checkpoint_commits != 0 ? 4 : 2;
  p.checkpoint_commits = t.checkpoint_commits;
  p.block_checksums = t.block_checksums;
  p.grow_every = t.grow_every;
  p.shared_log = t.shared_log;
  if (t.on_file) p.media = "file";
  p.earlier_version = t.earlier_version;
  p.runs = t.runs;
  p.fail_call = t.fail_call;
  p.fault = t.fault;
  p.seed = seed;
  p.mutant = m.what;
  if (m.name == "archapt_short_queue")
    // At least the size of home: then no line may be skipped.
    p.cache_bytes = p.pool_size - format::front_size - p.log_count * p.log_size;
  return p;
}

// Returns true when a run, with at most s.bound states of each crash point, killed the mutant.
bool try_runs(settings s, const mutant_target& where, std::uint64_t seed, mutant_outcome& o) {
  const pool_needs needs = needs_of(o.mutant.what);
  const std::uint64_t bound = s.bound;
  s.max_violations = 1;
  for (const trial& t : trials) {
    if (!serves(t, needs)) continue;
    s.bound = std::min(bound, t.bound);
    for (const std::string& mechanism : where.mechanisms) {
      if (t.cache_bytes != 0 && !(*detail::find_mechanism(mechanism))->has_parity) continue;
      const auto found = explore_isolated(plan_of(t, o.mutant, mechanism, seed), s);
      if (found && record_kill(*found, o)) return true;
    }
  }
  return false;
}

mutant_outcome run_mutant(const mutant_entry& m, const mutant_target& where,
                          const mutant_selection& c) {
  mutant_outcome o{m, where.name, "", "", 0};
  const bool expires = std::ranges::find(where.mechanisms, "base") != where.mechanisms.end();
  settings few;
  few.bound = 4, few.recovery_bound = 1;
  if (try_runs(few, where, c.seed, o)) return o;
  if (expires && try_expired_logs(m, c.seed, o)) return o;
  try_runs({}, where, c.seed, o);
  return o;
}

}  // namespace

pool_needs needs_of(base::mutant m) noexcept {
  const auto place_of = [](std::string_view name) {
    return std::ranges::find(mutants, name, &mutant_entry::name) - mutants.begin();
  };
  // From one of the table to another.
  const auto within = [&, place = place_of(name_of(m))](std::string_view first,
                                                        std::string_view last) {
    return place >= place_of(first) && place <= place_of(last);
  };
  return {.checkpoints = within("archapt_checkpoint_unflushed", "archapt_fallback_replayed"),
          .block_checksums = within("sums_not_renewed", "grow_sums_kept"),
          .large_slabs = within("heap_large_stale", "heap_large_own_chunk"),
          .shared_log = within("default_shared_alone", "default_shared_unflushed"),
          .file = within("file_home_unsynced", "file_write_back_ignored"),
          .earlier_version = within("version_copy_left", "version_late"),
          .named_stores = within("kv_cleared_first", "kv_drop_unlisted"),
          .redis = within("redis_unit_apart", "redis_named_early"),
          .sqlite = within("sqlite_one_by_one", "sqlite_flush_apart"),
          .long_run = m == base::mutant::bulk_spill_flushed,
          .runs = within("xil_run_torn", "xil_run_read_as_records")};
}

std::vector<mutant_target> targets_of(std::string_view of) {
  if (of == "log" || of == "recovery") return {{std::string(of), {"redo-async", "redo", "undo"}}};
  if (of == "creation" || of == "damage" || of.starts_with("overlap:")) return {};
  if (of == "file") return {{std::string(of), {"undo", "redo-async", "default"}}};
  if (of == "stores") return {{std::string(of), {"default", "undo"}}};
  if (of == "redis") return {{std::string(of), {"default", "undo"}}};
#ifdef STELE_HAVE_SQLITE
  if (of == "sqlite") return {{std::string(of), {"default", "undo"}}};
#else
  if (of == "sqlite") return {};
#endif
  if (of == "heap") return {{std::string(of), {"redo", "undo", "base", "redo-async"}}};
  std::vector<mutant_target> all;
  while (!of.empty()) {
    const auto comma = std::min(of.find(','), of.size());
    const std::string name(of.substr(0, comma));
    all.push_back({name, {name}});
    of.remove_prefix(std::min(comma + 1, of.size()));
  }
  return all;
}

std::vector<mutant_outcome> explore_mutants(const mutant_selection& c) {
  std::vector<mutant_outcome> outcomes;
  for (std::size_t i = 1; i < mutants.size(); ++i) {  // behind `none`
    const mutant_entry& m = mutants[i];
    if ((!c.name.empty() && m.name != c.name) || i % c.shares != c.share) continue;
    for (mutant_target& where : targets_of(m.of)) {
      if (!c.mechanism.empty())
        std::erase_if(where.mechanisms,
                      [&](const std::string& name) { return name != c.mechanism; });
      if (where.mechanisms.empty()) continue;
      if (c.cancelled && c.cancelled()) return outcomes;
      outcomes.push_back(run_mutant(m, where, c));
      if (c.on_outcome) c.on_outcome(outcomes.back());
    }
  }
  return outcomes;
}

double score_of(const std::vector<mutant_outcome>& outcomes) noexcept {
  if (outcomes.empty()) return 1;
  const auto killed = std::ranges::count_if(outcomes, &mutant_outcome::killed);
  return static_cast<double>(killed) / static_cast<double>(outcomes.size());
}

nlohmann::json json_of(const std::vector<mutant_outcome>& outcomes) {
  nlohmann::json all = nlohmann::json::array();
  for (const mutant_outcome& o : outcomes)
    all.push_back({{"name", o.mutant.name},
                   {"mechanism", o.mechanism},
                   {"killed", o.killed()},
                   {"by", o.line},
                   {"what", o.what},
                   {"states", o.states}});
  return {{"mutants", all}, {"score", score_of(outcomes)}};
}

}  // namespace stele::explore
