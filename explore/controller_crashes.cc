// Passes of a tape's writes through a controller, and the crashes in them.
#include <explore/controlled_run.h>
#include <explore/controller_crashes.h>
#include <explore/controller_machine.h>
#include <explore/trap.h>
#include <fmt/format.h>
#include <sim/feed/write_replay.h>

#include <memory>

#include <base/check.h>

namespace stele::explore {

namespace {

using clock = std::chrono::steady_clock;

// One of so many new states is recovered under the recorder, for crashes in that recovery.
constexpr std::uint64_t recovery_rarity = 64;

class controller_crashes {
 public:
  explicit controller_crashes(subject& s) : subject_(s), random_(s.named_by().seed), run_(s, experience_), recovery_(s, experience_) {
    here_.what = s.named_by();
  }

  // Crashes until the findings count so many, in so many passes at most.
  result<> run(const controller_settings& settings, findings& found, std::uint64_t until);
  // Goes to one crash; says what was lost, and what is wrong.
  result<> run_one(const controller_crash& c, replayed& r);
  std::string line() const { return format_line(here_); }

 private:
  // Crashes after each write of one pass.
  struct crashing final : sim::persist_watcher {
    controller_crashes& all;
    controlled_run& run;
    crashing(controller_crashes& a, controlled_run& r) : all(a), run(r) {}
    void submitted(const sim::trace_step& s) override { run.submitted(s); }
    bool persisted(const sim::trace_step& s, sim::picoseconds) override {
      run.persisted(s);
      return all.crash(run);
    }
  };
  // Goes to the crash after so many writes.
  struct arriving final : sim::persist_watcher {
    controlled_run& run;
    std::uint64_t until;
    arriving(controlled_run& r, std::uint64_t u) : run(r), until(u) {}
    void submitted(const sim::trace_step& s) override { run.submitted(s); }
    bool persisted(const sim::trace_step& s, sim::picoseconds) override { return run.persisted(s), run.writes_persisted < until; }
  };

  result<> pass(controlled_run& r, std::uint64_t seed, sim::persist_watcher& watcher);
  bool crash(controlled_run& r);
  void descend(std::uint64_t position);
  result<judge::answer> go_to(controlled_run& r, std::uint64_t seed, std::uint64_t persisted, replayed& told);
  void report(std::string what) { found_->violations.push_back({std::move(what), line()}); }
  bool done() const { return found_->states >= until_ || found_->violations.size() >= settings_->most_violations; }

  subject& subject_;
  experience experience_;
  base::rng random_;
  controlled_run run_, recovery_;
  controller_crash here_;
  const controller_settings* settings_ = nullptr;
  findings* found_ = nullptr;
  std::uint64_t until_ = 0;
  result<> failure_;  // of a pass inside another
};

result<> controller_crashes::run(const controller_settings& settings, findings& found, std::uint64_t until) {
  settings_ = &settings;
  found_ = &found;
  until_ = until;
  here_.scheduler = settings.scheduler;
  if (auto recorded = run_.record(subject_); !recorded) return report(recorded.error().message), result<>();
  for (std::uint64_t n = 0; n < settings.passes_a_run && !done(); ++n) {
    here_.seed = base::mix(subject_.named_by().seed) + n;
    here_.in_recovery = false;
    crashing watcher(*this, run_);
    if (auto passed = pass(run_, here_.seed, watcher); !passed) return passed;
    if (!failure_) return failure_;
  }
  found.recovered += experience_.verdicts.size();
  return {};
}

result<> controller_crashes::pass(controlled_run& r, std::uint64_t seed, sim::persist_watcher& watcher) {
  r.rewind();
  sim::event_queue time;
  auto machine = make_controller(time, r.header(), here_.scheduler, seed);
  if (!machine) return std::unexpected(machine.error());
  sim::write_trace trace = r.trace();
  const auto played = sim::play(trace, time, **machine, &watcher);
  return played ? result<>() : std::unexpected(played.error());
}

// False when there are crashes enough.
bool controller_crashes::crash(controlled_run& r) {
  (&r == &run_ ? here_.persisted : here_.recovery_persisted) = r.writes_persisted;
  const judge::answer a = r.judging.ask(r.history);
  ++found_->states;
  found_->distinct += a.new_state;
  if (std::string wrong = r.complaint(a); !wrong.empty()) {
    report(std::move(wrong));
    return false;  // what follows is as bad: on to the next pass
  }
  const std::ptrdiff_t position = r.history.find(r.judging.of(a).digest);
  if (&r == &run_ && position >= 0 && (a.replayed || a.new_recovered) && random_.below(recovery_rarity) == 0)
    descend(static_cast<std::uint64_t>(position));
  return !done() && failure_;
}

// Crashes in the recovery from the present crash, and in what is done after it.
void controller_crashes::descend(std::uint64_t position) {
  here_.in_recovery = true;
  here_.operations = std::min<std::size_t>(settings_->recovery_operations, subject_.named_by().further);
  here_.recovery_seed = random_();
  ++found_->recoveries;
  if (auto recorded = recovery_.record_recovery(subject_, run_, position, here_.operations); !recorded) {
    report("using the recovered pool fails: " + recorded.error().message);
  } else {
    crashing watcher(*this, recovery_);
    failure_ = pass(recovery_, here_.recovery_seed, watcher);
  }
  here_.in_recovery = false;
}

result<judge::answer> controller_crashes::go_to(controlled_run& r, std::uint64_t seed, std::uint64_t persisted, replayed& told) {
  arriving watcher(r, persisted);
  if (auto passed = pass(r, seed, watcher); !passed) return std::unexpected(passed.error());
  if (r.writes_persisted < persisted)
    return base::fail(errc::invalid_argument, fmt::format("there is no write {}; the tape has {}", persisted, r.writes_persisted));
  told.story += r.story();
  const judge::answer a = r.judging.ask(r.history);
  told.problem = r.complaint(a);
  return a;
}

result<> controller_crashes::run_one(const controller_crash& c, replayed& told) {
  here_ = c;
  if (auto recorded = run_.record(subject_); !recorded) return told.problem = recorded.error().message, result<>();
  const auto first = go_to(run_, c.seed, c.persisted, told);
  if (!first) return std::unexpected(first.error());
  if (!told.problem.empty() || !c.in_recovery) return {};
  const auto position = static_cast<std::uint64_t>(run_.history.find(run_.judging.of(*first).digest));
  if (auto recorded = recovery_.record_recovery(subject_, run_, position, c.operations); !recorded)
    return told.problem = "using the recovered pool fails: " + recorded.error().message, result<>();
  const auto second = go_to(recovery_, c.recovery_seed, c.recovery_persisted, told);
  return second ? result<>() : std::unexpected(second.error());
}

// Runs the body on a subject made for the plan, its bug planted. A signal is told by its meaning; whatever it left
// behind stays.
template <class Body>
result<> with_crashes(const plan& p, Body&& body, const std::function<void(std::string, const controller_crashes&)>& died) {
  auto made = subject::make(p);
  if (!made) return std::unexpected(made.error());
  auto running = std::make_unique<controller_crashes>(**made);
  result<> outcome;
  base::planted_mutant = p.mutant;
  const int signal = trapped([&] { outcome = body(*running); });
  base::planted_mutant = base::mutant::none;
  if (signal == 0) return outcome;
  died(fmt::format("{} (signal {})", meaning_of(signal), signal), *running);
  (*made)->abandon();
  (void)running.release();
  (void)made->release();
  return {};
}

}  // namespace

result<findings> crash_behind_controller(const plan& p, const controller_settings& s) {
  const clock::time_point begun = clock::now();
  findings found;
  found.points_total = s.crashes;
  plan of = p;
  for (bool died = false; found.states < s.crashes && found.violations.size() < s.most_violations && !died; ++of.seed) {
    found.cancelled = s.cancelled && s.cancelled();
    if (found.cancelled) break;
    auto ran = with_crashes(
        of, [&](controller_crashes& c) { return c.run(s, found, s.crashes); },
        [&](std::string what, const controller_crashes& c) {
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

result<findings> crash_behind_controller_apart(const plan& p, const controller_settings& s) {
  return apart([&] { return crash_behind_controller(p, s); }, format_line(controller_crash{.what = p, .scheduler = s.scheduler}));
}

result<replayed> replay(const controller_crash& c) {
  replayed r;
  auto ran = with_crashes(
      c.what, [&](controller_crashes& all) { return all.run_one(c, r); },
      [&](std::string what, const controller_crashes&) { r.problem = std::move(what); });
  if (!ran) return std::unexpected(ran.error());
  return r;
}

}  // namespace stele::explore
