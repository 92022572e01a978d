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
