// Passes over tapes, and the crashes in them.
#include <explore/cache_crashes.h>
#include <explore/cached_run.h>
#include <explore/crash_runs.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace stele::explore {

namespace {

// From one crash of a pass to the next it is so many events at most, unless that were to leave the end of the tape out. With
// fewer the crashes would differ little from each other, with more the cache's work would be most of what each costs.
constexpr std::uint64_t far = 8;
// One of so many new states is recovered under the recorder, for crashes in that recovery.
constexpr std::uint64_t recovery_rarity = 16;

// What arrives depends on the pass and the event alone, so that one crash can be repeated without the others.
std::uint64_t arrival_seed(const cache_moment& m) noexcept {
  return base::mix(m.seed) + m.event;
}

class cache_crashes {
 public:
  explicit cache_crashes(subject& s)
      : subject_(s), random_(s.named_by().seed), run_(s, experience_), recovery_(s, experience_) {
    here_.what = s.named_by();
  }

  // Crashes until the findings count so many.
  void run(const cache_settings& settings, findings& found, std::uint64_t until);
  // Goes to one crash; says what was lost, and what is wrong.
  result<> run_one(const cache_crash& c, replayed& r);
  // The crash being judged, as a line that replays it.
  std::string line() const { return format_line(here_); }

 private:
  void pass_with_crashes(cached_run& r, cache_model& cache, std::uint64_t seed, std::uint64_t until);
  void crash(cached_run& r, cache_model& cache);
  void count(const cached_run& r, const cache_model& cache, const judge::answer& a);
  void descend(std::uint64_t position);
  result<judge::answer> go_to(cached_run& r, const cache_moment& m, replayed& told);
  void report(std::string what) { found_->violations.push_back({std::move(what), line()}); }
  bool done() const { return found_->violations.size() >= settings_->most_violations; }

  subject& subject_;
  experience experience_;
  base::rng random_;
  cached_run run_, recovery_;
  std::optional<cache_model> recovery_cache_;
  cache_crash here_;
  const cache_settings* settings_ = nullptr;
  findings* found_ = nullptr;
  std::uint64_t until_ = 0;
};

void cache_crashes::run(const cache_settings& settings, findings& found, std::uint64_t until) {
  settings_ = &settings;
  found_ = &found;
  if (auto recorded = run_.record(subject_); !recorded) return report(recorded.error().message);
  const std::uint64_t begun = found.states, policies = settings.policies.size();
  for (std::size_t i = 0; i < policies; ++i) {
    here_.cache = {settings.policies[i], settings.lines, settings.ways};
    cache_model cache(here_.cache, run_.work.size());
    recovery_cache_.emplace(here_.cache, run_.work.size());
    until_ = begun + (until - begun) * (i + 1) / policies;
    for (std::uint64_t n = 0; found.states < until_ && !done(); ++n) {
      here_.moments.assign(1, {});
      pass_with_crashes(run_, cache, base::mix(subject_.named_by().seed) + n, until_);
    }
  }
  found.recovered += experience_.verdicts.size();
}

void cache_crashes::pass_with_crashes(cached_run& r, cache_model& cache, std::uint64_t seed, std::uint64_t until) {
  r.rewind(cache, seed);
  base::rng random(seed);
  const std::size_t level = here_.moments.size() - 1;
  const std::uint64_t farthest = std::max(far, 2 * r.events.size() / std::max<std::uint64_t>(until - found_->states, 1));
  std::uint64_t next = random.below(farthest);
  for (std::uint64_t e = 0; e <= r.events.size() && found_->states < until && !done(); ++e) {
    if (e == next) {
      here_.moments[level].seed = seed, here_.moments[level].event = e;
      crash(r, cache);
      next = e + 1 + random.below(farthest);
    }
    if (e < r.events.size()) r.play(cache, r.events[e]);
  }
}

void cache_crashes::crash(cached_run& r, cache_model& cache) {
  cache.crash(arrival_seed(here_.moments.back()));
  const judge::answer a = r.judging.ask(r.history);
  ++found_->states;
  found_->distinct += a.new_state;
  found_->refused += r.lost(a);
  if (&r == &run_) count(r, cache, a);
  if (std::string wrong = r.complaint(cache, a); !wrong.empty())
    report(std::move(wrong));
  else if (settings_->in_recoveries && &r == &run_ && !r.lost(a) && (a.replayed || a.new_recovered) && random_.below(recovery_rarity) == 0)
    descend(static_cast<std::uint64_t>(r.history.find(r.judging.of(a).digest)));
  cache.undo();
}

void cache_crashes::count(const cached_run& r, const cache_model& cache, const judge::answer& a) {
  found_->fell_back += r.judging.of(a).fell_back;
  if (!a.new_state) return;
  found_->inconsistent += r.skipped_and_stale(cache);
  found_->detected += a.stale_lines;
  found_->uncorrectable += a.lost_lines;
}

// Crashes in the recovery from the present crash, and in what is done after it.
void cache_crashes::descend(std::uint64_t position) {
  const std::size_t operations = std::min<std::size_t>(settings_->recovery_operations, subject_.named_by().further);
  ++found_->recoveries;
  here_.moments.push_back({0, 0, operations});
  if (auto recorded = recovery_.record_recovery(subject_, run_, position, operations); !recorded)
    report("using the recovered pool fails: " + recorded.error().message);
  else
    pass_with_crashes(recovery_, *recovery_cache_, random_(), until_);
  here_.moments.pop_back();
}

result<judge::answer> cache_crashes::go_to(cached_run& r, const cache_moment& m, replayed& told) {
  if (m.event > r.events.size())
    return base::fail(errc::invalid_argument,
                      fmt::format("there is no event {}; the tape has {}", m.event, r.events.size()));
  cache_model cache(here_.cache, r.work.size());
  r.rewind(cache, m.seed);
  for (std::uint64_t e = 0; e < m.event; ++e) r.play(cache, r.events[e]);
  cache.crash(arrival_seed(m));
  told.story += r.story(cache, m.event);
  const judge::answer a = r.judging.ask(r.history);
  told.problem = r.complaint(cache, a);
  if (r.lost(a) && told.problem.empty()) told.refused = r.judging.of(a).problem;
  return a;
}

result<> cache_crashes::run_one(const cache_crash& c, replayed& told) {
  here_ = c;
  if (c.moments.empty() || c.moments.size() > 2)
    return base::fail(errc::invalid_argument, "the line names no crash; it has one at=SEED:EVENT or two");
  if (auto recorded = run_.record(subject_); !recorded) return told.problem = recorded.error().message, result<>();
  const auto first = go_to(run_, c.moments[0], told);
  if (!first) return std::unexpected(first.error());
  if (!told.problem.empty() || !told.refused.empty() || c.moments.size() == 1) return {};
  const auto position = static_cast<std::uint64_t>(run_.history.find(run_.judging.of(*first).digest));
  if (auto recorded = recovery_.record_recovery(subject_, run_, position, c.moments[1].operations); !recorded)
    return told.problem = "using the recovered pool fails: " + recorded.error().message, result<>();
  const auto second = go_to(recovery_, c.moments[1], told);
  return second ? result<>() : std::unexpected(second.error());
}

}  // namespace

result<findings> crash_behind_cache(const plan& p, const cache_settings& s) {
  if (auto sound = check_shape({"lru", s.lines, s.ways}); !sound) return std::unexpected(sound.error());
  return crash_in_runs<cache_crashes>(
      p, s, [&](cache_crashes& c, findings& found) { return c.run(s, found, std::min(s.crashes, found.states + s.crashes_a_run)), result<>(); });
}

result<findings> crash_behind_cache_apart(const plan& p, const cache_settings& s) {
  return apart([&] { return crash_behind_cache(p, s); }, format_line(cache_crash{p, {}, {}}));
}

result<replayed> replay(const cache_crash& c) {
  if (auto sound = check_shape(c.cache); !sound) return std::unexpected(sound.error());
  return replay_crash<cache_crashes>(c);
}

}  // namespace stele::explore
