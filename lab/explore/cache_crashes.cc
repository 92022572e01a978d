// Passes over tapes, and the crashes in them.
#include <explore/cache_crashes.h>
#include <explore/cached_run.h>
#include <explore/crash_runs.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

namespace stele::explore {

namespace {

// The largest number of events from one crash of a pass to the next, unless a larger one is needed
// to reach the end of the tape. With a smaller one the crashes would differ little from each other;
// with a larger one most of a crash's cost would be the cache model's work. One of this many new
// states is recovered under the recorder, for crashes in that recovery.
constexpr std::uint64_t max_event_gap = 8;
// One of so many new states is recovered under the recorder, for crashes in that recovery.
constexpr std::uint64_t recovery_sample_interval = 16;

// Which writes arrive depends on the pass and the event alone, so that one crash can be repeated
// without the others.
std::uint64_t arrival_seed(const crash_moment& m) noexcept {
  return base::mix(m.seed) + m.number;
}

class cache_crashes {
 public:
  explicit cache_crashes(subject& s)
      : subject_(s),
        random_(s.run_plan().seed),
        run_(s, verdict_cache_),
        recovery_(s, verdict_cache_) {
    current_.run_plan = s.run_plan();
  }

  // Crashes until found.states is `until`.
  void run(const cache_settings& settings, findings& found, std::uint64_t until);
  // Goes to one crash. Fills in what was lost and what is wrong.
  result<> run_one(const cache_crash& c, replay_result& r);
  // The crash being judged, as a line that replays it.
  std::string line() const { return format_line(current_); }

 private:
  void pass_with_crashes(cached_run& r, cache_model& cache, std::uint64_t seed,
                         std::uint64_t until);
  void crash(cached_run& r, cache_model& cache);
  void count(const cached_run& r, const cache_model& cache, const judge::judgement& a);
  void explore_recovery(std::uint64_t position);
  result<judge::judgement> go_to(cached_run& r, const crash_moment& m, replay_result& out);
  void report(std::string what) { found_->violations.push_back({std::move(what), line()}); }
  bool done() const { return found_->violations.size() >= settings_->max_violations; }

  subject& subject_;
  verdict_cache verdict_cache_;
  base::rng random_;
  cached_run run_, recovery_;
  std::optional<cache_model> recovery_cache_;
  cache_crash current_;
  const cache_settings* settings_ = nullptr;
  findings* found_ = nullptr;
  std::uint64_t until_ = 0;
};

void cache_crashes::run(const cache_settings& settings, findings& found, std::uint64_t until) {
  settings_ = &settings;
  found_ = &found;
  current_.recovery_operations = settings.recovery_operations;
  if (auto recorded = run_.record(subject_); !recorded) return report(recorded.error().message);
  const std::uint64_t begun = found.states, policies = settings.policies.size();
  for (std::size_t i = 0; i < policies; ++i) {
    current_.cache = {settings.policies[i], settings.lines, settings.ways};
    cache_model cache(current_.cache, run_.work.size());
    recovery_cache_.emplace(current_.cache, run_.work.size());
    until_ = begun + (until - begun) * (i + 1) / policies;
    for (std::uint64_t n = 0; found.states < until_ && !done(); ++n) {
      current_.moments.assign(1, {});
      pass_with_crashes(run_, cache, base::mix(subject_.run_plan().seed) + n, until_);
    }
  }
  found.recovered += verdict_cache_.verdicts.size();
}

void cache_crashes::pass_with_crashes(cached_run& r, cache_model& cache, std::uint64_t seed,
                                      std::uint64_t until) {
  r.rewind(cache, seed);
  base::rng random(seed);
  const std::size_t level = current_.moments.size() - 1;
  const std::uint64_t farthest = std::max(
      max_event_gap, 2 * r.events.size() / std::max<std::uint64_t>(until - found_->states, 1));
  std::uint64_t next = random.below(farthest);
  for (std::uint64_t e = 0; e <= r.events.size() && found_->states < until && !done(); ++e) {
    if (e == next) {
      current_.moments[level].seed = seed, current_.moments[level].number = e;
      crash(r, cache);
      next = e + 1 + random.below(farthest);
    }
    if (e < r.events.size()) r.play(cache, r.events[e]);
  }
}

void cache_crashes::crash(cached_run& r, cache_model& cache) {
  cache.crash(arrival_seed(current_.moments.back()));
  const judge::judgement a = r.image_judge.evaluate(r.history);
  ++found_->states;
  found_->distinct += a.new_state;
  found_->refused += r.lost(a);
  if (&r == &run_) count(r, cache, a);
  if (std::string wrong = r.violation_of(cache, a); !wrong.empty())
    report(std::move(wrong));
  else if (settings_->in_recoveries && &r == &run_ && !r.lost(a) &&
           (a.replayed || a.new_recovered) && random_.below(recovery_sample_interval) == 0)
    explore_recovery(
        static_cast<std::uint64_t>(r.history.find(r.image_judge.verdict_of(a).digest)));
  cache.undo();
}

void cache_crashes::count(const cached_run& r, const cache_model& cache,
                          const judge::judgement& a) {
  found_->fell_back += r.image_judge.verdict_of(a).fell_back;
  if (!a.new_state) return;
  found_->inconsistent += r.skipped_and_stale(cache);
  found_->detected += a.stale_lines;
  found_->uncorrectable += a.lost_lines;
}

// Crashes in the recovery from the current crash, and in the operations after it.
void cache_crashes::explore_recovery(std::uint64_t position) {
  ++found_->recoveries;
  current_.moments.emplace_back();
  if (auto recorded =
          recovery_.record_recovery(subject_, run_, position, current_.recovery_operations);
      !recorded)
    report("using the recovered pool fails: " + recorded.error().message);
  else
    pass_with_crashes(recovery_, *recovery_cache_, random_(), until_);
  current_.moments.pop_back();
}

result<judge::judgement> cache_crashes::go_to(cached_run& r, const crash_moment& m,
                                              replay_result& out) {
  if (m.number > r.events.size())
    return base::fail(errc::invalid_argument, fmt::format("there is no event {}; the tape has {}",
                                                          m.number, r.events.size()));
  cache_model cache(current_.cache, r.work.size());
  r.rewind(cache, m.seed);
  for (std::uint64_t e = 0; e < m.number; ++e) r.play(cache, r.events[e]);
  cache.crash(arrival_seed(m));
  out.explanation += r.explanation(cache, m.number);
  const judge::judgement a = r.image_judge.evaluate(r.history);
  out.problem = r.violation_of(cache, a);
  if (r.lost(a) && out.problem.empty()) out.refused = r.image_judge.verdict_of(a).problem;
  return a;
}

result<> cache_crashes::run_one(const cache_crash& c, replay_result& out) {
  current_ = c;
  return go_to_crashes(subject_, c, run_, recovery_, out,
                       [&](auto& r, const crash_moment& m) { return go_to(r, m, out); });
}

}  // namespace

line_fields fields_of(cache_crash& c) {
  static const std::string policies = fmt::format("{}", fmt::join(all_policies(), "|"));
  return joined({fields_of(c.run_plan),
                 {{"policy", &c.cache.policy, "", {.words = policies}},
                  {"cache-lines", &c.cache.lines},
                  {"ways", &c.cache.ways},
                  {"at", &c.moments, "", {}, "SEED:EVENT, and a second after a comma"},
                  {"recovery-ops", &c.recovery_operations}}});
}

result<findings> crash_behind_cache(const plan& p, const cache_settings& s) {
  if (auto ok = check_geometry({"lru", s.lines, s.ways}); !ok) return std::unexpected(ok.error());
  return crash_in_runs<cache_crashes>(p, s, [&](cache_crashes& c, findings& found) {
    return c.run(s, found, std::min(s.crashes, found.states + s.crashes_a_run)), result<>();
  });
}

result<findings> crash_behind_cache_isolated(const plan& p, const cache_settings& s) {
  return run_isolated([&] { return crash_behind_cache(p, s); },
                      format_line(cache_crash{.run_plan = p}));
}

result<replay_result> replay(const cache_crash& c) {
  if (auto ok = check_geometry(c.cache); !ok) return std::unexpected(ok.error());
  return replay_crash<cache_crashes>(c);
}

}  // namespace stele::explore
