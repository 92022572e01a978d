// Crashes in one run after another, each with the next seed, until there are enough crashes or too
// many violations. `Crashes` is one run with its crashes, made for a subject; its line() replays
// the current crash.
#pragma once

#include <base/check.h>
#include <explore/explorer.h>
#include <explore/planted.h>
#include <explore/replay.h>
#include <explore/subject.h>
#include <explore/trap.h>
#include <fmt/format.h>

#include <chrono>
#include <memory>

namespace stele::explore {

// Runs the body on a subject made for the plan, with the plan's bug planted. A signal becomes a
// sentence for `died`; what the body left behind is not destroyed.
template <class Crashes, class Body, class Died>
[[nodiscard]] result<> run_trapping_signals(const plan& p, Body&& body, Died&& died) {
  auto made = subject::make(p);
  if (!made) return std::unexpected(made.error());
  auto running = std::make_unique<Crashes>(**made);
  result<> outcome;
  const planted_bugs planted(p);
  const int signal = run_trapped([&] { outcome = body(*running); }, timeout_for(p.pool_size));
  if (signal == 0) return outcome;
  died(fmt::format("{} (signal {})", describe_signal(signal), signal), *running);
  (*made)->abandon();
  (void)running.release();
  (void)made->release();
  return {};
}

// body(crashes, findings) adds the crashes of one run to the findings.
template <class Crashes, class Settings, class Body>
[[nodiscard]] result<findings> crash_in_runs(plan of, const Settings& s, Body&& body) {
  const auto begun = std::chrono::steady_clock::now();
  findings found;
  found.points_total = s.crashes;
  for (bool died = false;
       found.states < s.crashes && found.violations.size() < s.max_violations && !died; ++of.seed) {
    found.cancelled = s.cancelled && s.cancelled();
    if (found.cancelled) break;
    auto ran = run_trapping_signals<Crashes>(
        of, [&](Crashes& c) { return body(c, found); },
        [&](std::string what, const Crashes& c) {
          found.violations.push_back({std::move(what), c.line()});
          died = true;
        });
    if (!ran) return std::unexpected(ran.error());
    found.points = found.states;
    found.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
    if (s.progress) s.progress(found);
  }
  return found;
}

// Records the run, goes to the first crash of a line, and to the second in the recovery from it.
// go_to(run, moment) judges the state there.
template <class Crash, class Run, class Visit>
[[nodiscard]] result<> go_to_crashes(subject& s, const Crash& c, Run& run, Run& recovery,
                                     replay_result& out, Visit&& go_to) {
  if (auto recorded = run.record(s); !recorded)
    return out.problem = recorded.error().message, result<>();
  if (c.moments.empty() || c.moments.size() > 2)
    return base::fail(
        errc::invalid_argument,
        fmt::format("the line names {} crashes; write one or two behind at=", c.moments.size()));
  const result<judge::judgement> first = go_to(run, c.moments[0]);
  if (!first) return std::unexpected(first.error());
  const std::ptrdiff_t position = run.history.find(run.image_judge.verdict_of(*first).digest);
  if (!out.problem.empty() || !out.refused.empty() || position < 0 || c.moments.size() == 1)
    return {};
  if (auto recorded = recovery.record_recovery(s, run, static_cast<std::uint64_t>(position),
                                               c.recovery_operations);
      !recorded)
    return out.problem = "using the recovered pool fails: " + recorded.error().message, result<>();
  const result<judge::judgement> second = go_to(recovery, c.moments[1]);
  return second ? result<>() : std::unexpected(second.error());
}

// Replays the crash that a line names.
template <class Crashes, class Line>
[[nodiscard]] result<replay_result> replay_crash(const Line& line) {
  replay_result r;
  auto ran = run_trapping_signals<Crashes>(
      line.run_plan, [&](Crashes& c) { return c.run_one(line, r); },
      [&](std::string what, const Crashes&) { r.problem = std::move(what); });
  if (!ran) return std::unexpected(ran.error());
  return r;
}

}  // namespace stele::explore
