// Passes over the tape, and the crashes in them.
#include <explore/cache_crashes.h>
#include <explore/cache_model.h>
#include <explore/trap.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include <base/check.h>

namespace stele::explore {

namespace {

using clock = std::chrono::steady_clock;
using media::tape_event;
using media::tape_op;

// From one crash of a pass to the next it is so many events at most, unless that were to leave the end of the tape out. With
// fewer the crashes would differ little from each other, with more the cache's work would be most of what each costs.
constexpr std::uint64_t far = 8;

class cache_crashes {
 public:
  explicit cache_crashes(subject& s) : subject_(s), work_(s.blank()), judge_(s, work_, experience_) {}

  // Crashes until the findings count so many.
  void run(const cache_settings& settings, findings& found, std::uint64_t until);
  // Crashes once; says what was lost, and what is wrong.
  result<> run_one(const cache_crash& c, replayed& r);
  // The crash being judged, as a line that replays it.
  std::string line() const { return format_line(here_); }

 private:
  bool record(std::string& problem);
  void begin(cache_model& cache, std::uint64_t seed);
  void pass(cache_model& cache, const tape_event& e);
  void pass_with_crashes(cache_model& cache, std::uint64_t seed, std::uint64_t most, std::uint64_t farthest);
  void crash(cache_model& cache, std::uint64_t event);
  bool done() const { return found_->violations.size() >= settings_->most_violations; }
  std::string story(const cache_model& cache) const;

  subject& subject_;
  hashed_image work_;  // media
  experience experience_;
  judge judge_;
  timeline timeline_;
  std::vector<std::byte> tape_;
  std::vector<tape_event> events_;
  std::uint64_t floor_ = 0, ceiling_ = 0;
  cache_crash here_;
  const cache_settings* settings_ = nullptr;
  findings* found_ = nullptr;
};

bool cache_crashes::record(std::string& problem) {
  here_.what = subject_.named_by();
  auto tape = subject_.record(timeline_);
  if (!tape) return problem = tape.error().message, false;
  tape_ = std::move(*tape);
  auto reader = media::tape_reader::over(tape_);
  while (auto event = *reader->next()) events_.push_back(*event);  // their bytes stay where they are on the tape
  return true;
}

void cache_crashes::begin(cache_model& cache, std::uint64_t seed) {
  work_.assign(subject_.start());
  cache.start(work_, seed);
  floor_ = ceiling_ = 0;
  here_.seed = seed;
}

void cache_crashes::pass(cache_model& cache, const tape_event& e) {
  switch (e.op) {
    case tape_op::store:
      return cache.store(e.address, e.bytes);
    case tape_op::stream:
      return cache.stream(e.thread, e.address, e.bytes);
    case tape_op::flush:
      return cache.flush(e.thread, e.address, e.length);
    case tape_op::fence:
      return cache.fence(e.thread);
    case tape_op::bulk:
      return cache.bulk(e.address, e.length);
    case tape_op::invoked:
      ceiling_ = e.address + 1;
      return;
    case tape_op::returned:
      floor_ = e.address + 1;
      return;
    default:
      return;
  }
}

// What arrives depends on the pass and the event alone, so that one crash can be repeated without the others.
void cache_crashes::crash(cache_model& cache, std::uint64_t event) {
  here_.event = event;
  cache.crash(base::mix(here_.seed) + event);
  const judge::answer a = judge_.ask(timeline_);
  ++found_->states;
  found_->distinct += a.new_state;
  std::string wrong = complaint(judge_.of(a), timeline_, floor_, ceiling_);
  if (!wrong.empty()) found_->violations.push_back({std::move(wrong), line()});
  cache.undo();
}

void cache_crashes::pass_with_crashes(cache_model& cache, std::uint64_t seed, std::uint64_t most, std::uint64_t farthest) {
  begin(cache, seed);
  base::rng random(seed);
  std::uint64_t next = random.below(farthest);
  for (std::uint64_t e = 0; e <= events_.size() && most > 0 && !done(); ++e) {
    if (e == next) {
      crash(cache, e);
      next = e + 1 + random.below(farthest);
      --most;
    }
    if (e < events_.size()) pass(cache, events_[e]);
  }
}

void cache_crashes::run(const cache_settings& settings, findings& found, std::uint64_t until) {
  settings_ = &settings;
  found_ = &found;
  std::string problem;
  if (!record(problem)) return found.violations.push_back({problem, line()});
  const std::size_t policies = settings.policies.size();
  const std::uint64_t begun = found.states;
  for (std::size_t i = 0; i < policies; ++i) {
    here_.cache = {settings.policies[i], settings.lines, settings.ways};
    cache_model cache(here_.cache, work_.size());
    const std::uint64_t share_until = begun + (until - begun) * (i + 1) / policies, share = share_until - found.states;
    const std::uint64_t farthest = std::max(far, 2 * events_.size() / std::max<std::uint64_t>(share, 1));
    for (std::uint64_t n = 0; found.states < share_until && !done(); ++n)
      pass_with_crashes(cache, base::mix(subject_.named_by().seed) + n, share_until - found.states, farthest);
  }
  found.recovered += experience_.verdicts.size();
}

result<> cache_crashes::run_one(const cache_crash& c, replayed& r) {
  if (!record(r.problem)) return {};
  if (c.event > events_.size())
    return base::fail(errc::invalid_argument, fmt::format("there is no event {}; the tape has {}", c.event, events_.size()));
  here_ = c;
  cache_model cache(c.cache, work_.size());
  begin(cache, c.seed);
  for (std::uint64_t e = 0; e < c.event; ++e) pass(cache, events_[e]);
  cache.crash(base::mix(c.seed) + c.event);
  r.story = story(cache);
  r.problem = complaint(judge_.of(judge_.ask(timeline_)), timeline_, floor_, ceiling_);
  return {};
}

std::string cache_crashes::story(const cache_model& cache) const {
  std::string text = here_.event == events_.size()
                         ? "crash at the end"
                         : fmt::format("crash before event '{}' of thread {}", media::name_of(events_[here_.event].op),
                                       events_[here_.event].thread);
  text += fmt::format(", with {} operations acknowledged and {} invoked\n", floor_, ceiling_);
  for (std::size_t line = 0; line < work_.size() / line_size; ++line) {
    std::uint64_t seen[8], there[8];
    std::memcpy(seen, cache.seen(line), sizeof seen);
    std::memcpy(there, work_.line(line), sizeof there);
    for (std::size_t w = 0; w < 8; ++w)
      if (seen[w] != there[w])
        text += fmt::format("  LOST {:#x} = {:#018x}; memory has {:#018x}\n", line * line_size + w * 8, seen[w], there[w]);
  }
  return text;
}

// Runs the body on a subject made for the plan, its bug planted. A signal is told by its meaning; whatever it left
// behind stays.
template <class Body>
result<> with_crashes(const plan& p, Body&& body, const std::function<void(std::string, const cache_crashes&)>& died) {
  auto made = subject::make(p);
  if (!made) return std::unexpected(made.error());
  auto running = std::make_unique<cache_crashes>(**made);
  base::planted_mutant = p.mutant;
  const int signal = trapped([&] { body(*running); });
  base::planted_mutant = base::mutant::none;
  if (signal == 0) return {};
  died(fmt::format("{} (signal {})", meaning_of(signal), signal), *running);
  (*made)->abandon();
  (void)running.release();
  (void)made->release();
  return {};
}

}  // namespace

result<findings> crash_behind_cache(const plan& p, const cache_settings& s) {
  if (auto sound = check_shape({replacement::lru, s.lines, s.ways}); !sound) return std::unexpected(sound.error());
  const clock::time_point begun = clock::now();
  findings found;
  found.points_total = s.crashes;
  plan of = p;
  for (bool died = false; found.states < s.crashes && found.violations.size() < s.most_violations && !died; ++of.seed) {
    found.cancelled = s.cancelled && s.cancelled();
    if (found.cancelled) break;
    const std::uint64_t until = std::min(s.crashes, found.states + s.crashes_a_run);
    auto ran = with_crashes(
        of, [&](cache_crashes& c) { c.run(s, found, until); },
        [&](std::string what, const cache_crashes& c) {
          found.violations.push_back({std::move(what), c.line()});
          died = true;
        });
    if (!ran) return std::unexpected(ran.error());
    found.points = found.states;
    found.seconds = std::chrono::duration<double>(clock::now() - begun).count();
    if (s.progress) s.progress(found);
  }
  return found;
}

result<findings> crash_behind_cache_apart(const plan& p, const cache_settings& s) {
  return apart([&] { return crash_behind_cache(p, s); }, format_line(cache_crash{p, {}, 0, 0}));
}

result<replayed> replay(const cache_crash& c) {
  if (auto sound = check_shape(c.cache); !sound) return std::unexpected(sound.error());
  replayed r;
  result<> outcome;
  auto ran = with_crashes(
      c.what, [&](cache_crashes& all) { outcome = all.run_one(c, r); },
      [&](std::string what, const cache_crashes&) { r.problem = std::move(what); });
  if (!ran) return std::unexpected(ran.error());
  if (!outcome) return std::unexpected(outcome.error());
  return r;
}

}  // namespace stele::explore
