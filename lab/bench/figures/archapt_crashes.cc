// Table IV of the architecture-aware evaluation: crashes behind caches of four policies, and how
// checksums handle skipped lines that had not left the cache.
//
// The queue is as long as the cache, unless a capacity says otherwise. Every crash is judged by
// real recovery (explore/cache_crashes.h): damage that recovery does not find is a violation, and
// an error here.
#include <bench/figures/archapt_parts.h>
#include <explore/cache_crashes.h>
#include <fmt/format.h>

namespace stele::bench::archapt {
namespace {

constexpr unsigned ways = 11;
constexpr std::size_t line_bytes = 64, page = 4096;

struct capacity {
  const char* name;
  std::size_t bytes;
  std::size_t queue_over_cache = 1;
  bool halves = false;
  bool is_large() const { return bytes > std::size_t{1} << 20; }
};
// A small first-level cache, also with a longer queue that allows for an error, and with checksums
// of halves; one set, which the stores of one operation replace; the text's last-level cache.
constexpr std::size_t small_bytes = 64 * ways * line_bytes;
constexpr capacity capacities[] = {{"44 KiB", small_bytes},
                                   {"44 KiB, queue twice as long", small_bytes, 2},
                                   {"44 KiB, halves", small_bytes, 1, true},
                                   {"704 B", ways* line_bytes},
                                   {"19.25 MB", 28672 * ways* line_bytes}};
// A log is twice as long as the cache: columns leave the queue, and their lines the cache, between
// two truncations.
constexpr std::size_t log_over_cache = 2;

// Redis' keys are fewer bytes than the larger caches have.
std::vector<capacity> capacities_on(const sweep_options& o) {
  if (is_on_redis(o)) return {capacities[3]};
  const std::size_t count = std::min<std::size_t>(o.archapt_caches, std::size(capacities));
  return {capacities, capacities + count};
}

explore::plan plan_on(const sweep_options& o, const mix& m, const char* mechanism,
                      const capacity& c) {
  const std::size_t cache_bytes = c.bytes;
  explore::plan p;
  p.mechanism = entry_of(mechanism).mechanism;
  p.workload = m.name;
  p.value_size = m.value_bytes;
  p.cache_bytes = c.queue_over_cache * cache_bytes;
  p.halves = c.halves;
  p.keys = std::max<std::size_t>(64, 2 * cache_bytes / m.value_bytes);  // at least twice the cache
  // Of operations that store; where nearly all read, the cache is not filled anew.
  const std::size_t periods = c.is_large() ? 1 : o.archapt_log_periods;
  p.operations =
      std::max<std::uint64_t>(200, 2 * periods * log_over_cache * cache_bytes / m.value_bytes);
  p.seed = o.seed;
  // Over undo a durable commit flushes its lines, and leaves the cache nothing to replace: its
  // commits are ordered, and one sync ends the run.
  if (mechanism == std::string_view(system::undo_later)) p.sync_every = p.operations;
  task t;
  t.workload = is_on_redis(o) ? "kv" : p.workload;  // for the size of the content
  t.parameters.keys = p.keys;
  t.parameters.value_size = p.value_size;
  p.log_count = 1;
  p.log_size =
      std::max<std::size_t>(16384, (log_over_cache * cache_bytes + page - 1) / page * page);
  const std::size_t content = pool_size_of(t) - t.spare_bytes;
  p.pool_size = (content * (c.halves ? 4 : 3) + 3 * p.log_size + (std::size_t{1} << 20)) / page *
                page;  // checksums take 0.74 of home, 1.31 with halves
  return p;
}

struct count {
  const char *name, *label;
  std::uint64_t explore::findings::* of;
};
constexpr count counts[] = {
    {"inconsistent", "lines skipped that the cache still had", &explore::findings::inconsistent},
    {"detected", "found stale by their checksums", &explore::findings::detected},
    {"uncorrectable", "of these, not to be restored", &explore::findings::uncorrectable},
    {"refused", "crashes that recovery refused", &explore::findings::refused}};

result<explore::findings> crash(const sweep_options& o, const mix& m, const char* mechanism,
                                const capacity& c, std::string_view policy) {
  const explore::plan p = plan_on(o, m, mechanism, c);
  explore::cache_settings s;
  s.policies = {policy};
  s.lines = c.bytes / line_bytes;
  s.ways = ways;
  s.crashes = c.is_large() ? o.archapt_large_crashes : o.archapt_crashes;
  // The crashes are of four runs; behind the largest cache of one, since recording takes longest
  // there.
  s.crashes_a_run = c.is_large() ? s.crashes : std::max<std::uint64_t>(s.crashes / 4, 1);
  s.in_recoveries = false;
  s.cancelled = o.cancelled;
  o.progress(fmt::format("{}, {}, {} of {}", m.name, mechanism, c.name, policy));
  auto found = explore::crash_behind_cache(p, s);
  if (found && !found->violations.empty())
    return std::unexpected(
        error{errc::corrupt, fmt::format("{}: {}; {}", m.name, found->violations.front().what,
                                         explore::replay_command(found->violations.front().line))});
  return found;
}

}  // namespace

result<> measure_crashes(const sweep_options& o, chart& into) {
  // Of Redis: units of the module on its keys, which the explorer can judge without a server.
  const auto some = is_on_redis(o) ? std::vector<mix>{{"redis", 1024, true}} : mixes_that_write();
  std::uint64_t crashes = 0;
  for (const char* mechanism : {system::undo_later, system::redo_archapt})
    for (const capacity& c : capacities_on(o))
      for (const std::string_view policy : explore::all_policies()) {
        panel p{fmt::format("{}, {}, {}", mechanism, c.name, policy),
                "workload",
                "in all crashes",
                names_of(some),
                {},
                true};
        for (const count& n : counts)
          p.lines.push_back(
              {n.name, n.label, false, std::vector<std::optional<spread>>(some.size())});
        for (std::size_t i = 0; i < some.size() && into.complete; ++i) {
          if (c.is_large() && !std::string_view(some[i].name).starts_with("ycsb-"))
            continue;  // the models of other mixes are too slow for this size
          const auto found = crash(o, some[i], mechanism, c, policy);
          if (!found) return std::unexpected(found.error());
          into.complete = !found->cancelled;
          if (!into.complete) break;
          crashes += found->states;
          for (std::size_t n = 0; n < std::size(counts); ++n) {
            const auto v = static_cast<double>((*found).*counts[n].of);
            p.lines[n].points[i] = known(v);
          }
        }
        into.panels.push_back(std::move(p));
      }
  into.notes.push_back(
      fmt::format("{} crashes: {} for each place{}; lines are of distinct crashes. Each was "
                  "recovered, compared with the model and used on: nothing was lost or "
                  "torn that recovery had not refused",
                  crashes, o.archapt_crashes,
                  capacities_on(o).size() < std::size(capacities)
                      ? ""
                      : fmt::format(", {} behind the largest cache", o.archapt_large_crashes)));
  into.notes.push_back(fmt::format(
      "{} ways; the queue is as long as the cache where it is not said otherwise, data twice as "
      "long; whatever has left the queue is skipped, also where it does not pay. Replacement is "
      "exercised behind 44 KiB: logs are {} times as long as the cache and filled {} times, so "
      "stores displace all of it between two truncations, unless nearly all operations read "
      "(ycsb-b, -d, -e); behind 19.25 MB the log is filled once. Over undo commits are ordered, "
      "with a sync at the end: a durable one leaves nothing to skip",
      ways, log_over_cache, o.archapt_log_periods));
  into.notes.emplace_back(
      "a line that was skipped and stored to again since is restored by the log and its old "
      "values: it counts as inconsistent, and as detected only if checksums were needed");
  return {};
}

}  // namespace stele::bench::archapt
