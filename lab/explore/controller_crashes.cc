// Passes of a tape's writes through a controller, and the crashes in them.
#include <explore/controlled_run.h>
#include <explore/controller_crashes.h>
#include <explore/controller_machine.h>
#include <explore/crash_runs.h>
#include <fmt/format.h>
#include <sim/feed/write_replay.h>

namespace stele::explore {

namespace {

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
  bool crash_after_expiry(controlled_run& r);
  judge::answer ask_after_expiry(controlled_run& r, std::string& problem);
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
  here_.scheduler = settings.scheduler, here_.expired = settings.expired;
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
  if (here_.expired) return crash_after_expiry(r);
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

// What expired lines hold depends on the machine and the moment alone, so that one crash can be repeated without the others.
judge::answer controller_crashes::ask_after_expiry(controlled_run& r, std::string& problem) {
  r.expire_logs(base::mix(here_.seed) + r.writes_persisted);
  const judge::answer a = r.judging.ask(r.history);
  problem = r.refused(a) ? "" : r.complaint(a);
  return a;
}

bool controller_crashes::crash_after_expiry(controlled_run& r) {
  std::string problem;
  const judge::answer a = ask_after_expiry(r, problem);
  ++found_->states;
  found_->distinct += a.new_state;
  found_->refused += r.refused(a);
  r.put_logs_back();
  if (!problem.empty()) report(std::move(problem));
  return !done();
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
  if (here_.expired) return ask_after_expiry(r, told.problem);
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

}  // namespace

result<findings> crash_behind_controller(const plan& p, const controller_settings& s) {
  return crash_in_runs<controller_crashes>(p, s, [&](controller_crashes& c, findings& found) { return c.run(s, found, s.crashes); });
}

result<findings> crash_behind_controller_apart(const plan& p, const controller_settings& s) {
  return apart([&] { return crash_behind_controller(p, s); }, format_line(controller_crash{.what = p, .scheduler = s.scheduler}));
}

result<replayed> replay(const controller_crash& c) { return replay_crash<controller_crashes>(c); }

}  // namespace stele::explore
