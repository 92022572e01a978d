// Finds the fences, and makes the runs without each of them, the cheap runs first.
#include <explore/fences.h>
#include <explore/trap.h>
#include <lab_media/event_sites.h>
#include <tx/mechanism/catalog.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace stele::explore {

namespace {

// By file and function, because lines move. docs/protocol/fences.md has the reasons in full.
struct expected_survivor {
  std::string_view file, function, reason;
};
constexpr expected_survivor expected_survivors[] = {
    {"archapt.h", "make_checkpoint", "the checkpoint's TxID before a loss that goes back to it"},
    {"fallback_to_checkpoint.h", "finish",
     "a recovery is durable when it returns: on a file the next engine's medium is another"},
    {"base.h", "clear_all", "likewise"},
    {"lanes.h", "empty", "likewise"},
    {"recovery.h", "restart", "likewise"},
    {"home_checksums.h", "invalidate",
     "sums of free chunks that a record cut off by a crash has changed, when they are taken again "
     "in part"},
    {"log_structured.h", "attach",
     "cleaning threads, of which explored runs have none, begin behind it"},
    {"home_checksums.h", "begin_session",
     "home of pools that an earlier version made, whose sums count, is marked behind it"},
    {"mechanism_engine.h", "close", "TxIDs never go back from one session to the next"},
};
std::string_view reason_of(std::string_view site) {
  const auto is = [&](const expected_survivor& k) {
    return site.starts_with(k.file) && site.ends_with(k.function) &&
           site[site.size() - k.function.size() - 1] == ':';
  };
  const auto* const k = std::ranges::find_if(expected_survivors, is);
  return k != std::end(expected_survivors) ? k->reason : "";
}

struct trial {
  plan run_plan;
  std::uint64_t bound = 256;
};

// In memory only: the fences of a file are its writes, and mutants of their own cover them.
std::vector<trial> trials_of(const std::string& mechanism, std::uint64_t seed) {
  const auto entry = *detail::find_mechanism(mechanism);
  const bool in_place = entry->home == format::home_kind::in_place && !entry->has_parity;
  std::vector<trial> all;
  const auto add = [&](std::string workload, std::uint64_t operations, unsigned threads) -> plan& {
    trial t;
    t.run_plan.mechanism = mechanism;
    t.run_plan.workload = std::move(workload);
    t.run_plan.operations = operations;
    t.run_plan.threads = threads;
    t.run_plan.seed = seed;
    return all.emplace_back(std::move(t)).run_plan;
  };
  (void)add("sps", 60, 1);
  (void)add("sps", 60, 2);
  (void)add("churn", 120, 2);
  if (mechanism == "default") {
    add("sps", 120, 2).sync_every = 8;
    plan& shared = add("churn", 200, 2);
    shared.shared_log = true, shared.sync_every = 30;
  }
  if (in_place) {
    plan& summed = add("churn", 120, 1);
    summed.block_checksums = true, summed.grow_every = 40;
    add("sps", 60, 1).block_checksums = true;
    // Takes over logs of another kind.
    add("sps", 60, 1).reopen = mechanism == "xil" ? "redo" : "xil";
  }
  if (mechanism == "archapt-undo") add("sps", 60, 2).cache_bytes = skips_nothing;
  if (entry->has_parity)
    for (const std::uint64_t commits : {0, 6}) {
      plan& covered = add("sps", 60, 1);
      covered.value_size = 256, covered.cache_bytes = commits == 0 ? 1792 : 448,
      covered.pool_size *= commits == 0 ? 2 : 4, covered.checkpoint_commits = commits;
    }
  if (mechanism == "adaptive") add("sps", 200, 1).warm_up = 4;
  if (in_place) {
    plan& summed = add("rbtree", 40, 1);
    summed.value_size = 4096, summed.keys = 6, summed.pool_size = 262144,
    summed.block_checksums = true;
  }
  plan& spilled = add("rbtree", 40, 2);
  spilled.value_size = 4096, spilled.keys = 6, spilled.pool_size = 262144;
  if (in_place) {
    plan& raised = add("large", 20, 1);
    raised.pool_size = 262144, raised.earlier_version = true;
  }
  add("sps", 300, 2).value_size = 64;
  (void)add("churn", 400, 2);
  all.back().bound = 512;
  (void)add("churn", 800, 1);
  all.back().bound = 512;
  return all;
}

// The fences that a run passes, and that recoveries from some of its crashes pass.
void collect_sites(const plan& p, std::set<std::string>& sites) {
  media::event_sites::on_fence([&](const std::string& site) { sites.insert(site); });
  settings s;
  s.bound = 3;
  s.recovery_bound = 1;
  (void)explore(p, s);
  media::event_sites::on_fence({});
}

}  // namespace

std::vector<fence_outcome> explore_fences(const fence_selection& c) {
  std::map<std::string, std::vector<std::string>> passed_by;
  for (const auto& m : detail::mechanisms()) {
    if (m.name == "none" || (!c.mechanism.empty() && m.name != c.mechanism)) continue;
    std::set<std::string> sites;
    for (const trial& t : trials_of(m.name, c.seed)) collect_sites(t.run_plan, sites);
    for (const std::string& site : sites) passed_by[site].push_back(m.name);
  }
  std::vector<fence_outcome> outcomes;
  for (const auto& [site, mechanisms] : passed_by) {
    if (!c.site.empty() && site != c.site) continue;
    fence_outcome o{site, mechanisms, "", "", "", 0};
    for (unsigned n = 0; !o.killed() && (c.max_trials == 0 || n < c.max_trials); ++n) {
      bool any = false;
      for (const std::string& mechanism : mechanisms) {
        const auto trials = trials_of(mechanism, c.seed);
        if (n >= trials.size() || o.killed()) continue;
        if (c.cancelled && c.cancelled()) return outcomes;
        any = true;
        plan p = trials[n].run_plan;
        p.omitted_fence = site;
        settings s;
        s.bound = trials[n].bound;
        s.max_violations = 1;
        const auto found = explore_isolated(p, s);
        if (!found) continue;
        o.states += found->states;
        if (!found->violations.empty())
          o.what = found->violations.front().what, o.line = found->violations.front().line;
      }
      if (!any) break;
    }
    if (!o.killed()) o.reason = reason_of(site);
    outcomes.push_back(std::move(o));
    if (c.on_outcome) c.on_outcome(outcomes.back());
  }
  return outcomes;
}

nlohmann::json json_of(const std::vector<fence_outcome>& outcomes) {
  nlohmann::json all = nlohmann::json::array();
  for (const fence_outcome& o : outcomes)
    all.push_back({{"site", o.site},
                   {"mechanisms", o.mechanisms},
                   {"killed", o.killed()},
                   {"what", o.what},
                   {"by", o.line},
                   {"kept_for", o.reason},
                   {"states", o.states}});
  return {{"fences", all},
          {"killed", std::ranges::count_if(outcomes, &fence_outcome::killed)},
          {"unexplained", std::ranges::count_if(outcomes, &fence_outcome::unexplained)}};
}

}  // namespace stele::explore
