// Plays a tape's writes through a controller, and crashes after each.
#include <explore/controlled_run.h>
#include <explore/controller_crashes.h>
#include <explore/controller_machine.h>
#include <explore/crash_runs.h>
#include <fmt/format.h>
#include <sim/feed/write_replay.h>

namespace stele::explore {

namespace {

// One of this many new states is recovered under the recorder, for crashes in that recovery.
constexpr std::uint64_t recovery_sample_interval = 64;

class controller_crashes {
 public:
  explicit controller_crashes(subject& s)
      : subject_(s),
        random_(s.run_plan().seed),
        run_(s, verdict_cache_),
        recovery_(s, verdict_cache_) {
    current_.run_plan = s.run_plan();
  }

  // Crashes until found.states is `until` or the passes are made.
  result<> run(const controller_settings& settings, findings& found, std::uint64_t until);
  // Goes to one crash. Fills in what was lost and what is wrong.
  result<> run_one(const controller_crash& c, replay_result& r);
  std::string line() const { return format_line(current_); }

 private:
  // Crashes after each write of a pass.
  struct crash_at_each_write final : sim::persist_observer {
    controller_crashes& all;
    controlled_run& run;
    crash_at_each_write(controller_crashes& a, controlled_run& r) : all(a), run(r) {}
    void submitted(const sim::trace_step& s) override { run.submitted(s); }
    bool persisted(const sim::trace_step& s, sim::picoseconds now) override {
      run.persisted(s);
      all.ask_controller(now);
      return all.crash(run);
    }
  };
  // Stops after write number `until`.
  struct run_to_write final : sim::persist_observer {
    controller_crashes& all;
    controlled_run& run;
    std::uint64_t until;
    run_to_write(controller_crashes& a, controlled_run& r, std::uint64_t u)
        : all(a), run(r), until(u) {}
    void submitted(const sim::trace_step& s) override { run.submitted(s); }
    bool persisted(const sim::trace_step& s, sim::picoseconds now) override {
      run.persisted(s);
      all.ask_controller(now);
      return run.writes_persisted < until;
    }
  };

  result<> pass(controlled_run& r, std::uint64_t seed, sim::persist_observer& watcher);
  // With expired logs: asks the controller whether recovery may rely on its logs.
  void ask_controller(sim::picoseconds now);
  bool crash(controlled_run& r);
  bool crash_after_expiry(controlled_run& r);
  judge::judgement evaluate_after_expiry(controlled_run& r, std::string& problem);
  void explore_recovery(std::uint64_t position);
  result<judge::judgement> go_to(controlled_run& r, const crash_moment& m, replay_result& out);
  void report(std::string what) { found_->violations.push_back({std::move(what), line()}); }
  bool done() const {
    return found_->states >= until_ || found_->violations.size() >= settings_->max_violations;
  }

  subject& subject_;
  verdict_cache verdict_cache_;
  base::rng random_;
  controlled_run run_, recovery_;
  controller_crash current_;
  const controller_settings* settings_ = nullptr;
  findings* found_ = nullptr;
  std::uint64_t until_ = 0;
  result<> failure_;                                // of a pass inside another pass
  const sim::memory_system* controller_ = nullptr;  // of the current pass
  // What the controller has answered at the current crash: its refusal of the expired logs, and
  // what is wrong with its answers. Empty: nothing.
  std::string logs_refused_, wrong_answer_;
};

result<> controller_crashes::run(const controller_settings& settings, findings& found,
                                 std::uint64_t until) {
  settings_ = &settings;
  found_ = &found;
  until_ = until;
  current_.scheduler = settings.scheduler, current_.expired = settings.expired;
  current_.recovery_operations = settings.recovery_operations;
  if (auto recorded = run_.record(subject_); !recorded)
    return report(recorded.error().message), result<>();
  for (std::uint64_t n = 0; n < settings.passes_a_run && !done(); ++n) {
    current_.moments = {{base::mix(subject_.run_plan().seed) + n, 0}};
    crash_at_each_write watcher(*this, run_);
    if (auto passed = pass(run_, current_.moments.front().seed, watcher); !passed) return passed;
    if (!failure_) return failure_;
  }
  found.recovered += verdict_cache_.verdicts.size();
  return {};
}

result<> controller_crashes::pass(controlled_run& r, std::uint64_t seed,
                                  sim::persist_observer& watcher) {
  r.rewind();
  sim::event_queue time;
  auto machine = make_controller(time, r.header(), current_.scheduler, seed);
  if (!machine) return std::unexpected(machine.error());
  controller_ = machine->get();
  sim::write_trace trace = r.trace();
  const auto played = sim::replay_writes(trace, time, **machine, &watcher);
  return played ? result<>() : std::unexpected(played.error());
}

// The logs must be trusted before they expire, and refused afterwards if any line of them counts.
void controller_crashes::ask_controller(sim::picoseconds now) {
  if (!current_.expired) return;
  const double retention_s = controller_->config().log_retention_s;
  const auto before = controller_->trusted_logs(now),
             after = controller_->trusted_logs(now + sim::from_ns((retention_s + 1) * 1e9));
  logs_refused_ = after ? "" : after.error().message;
  wrong_answer_ =
      !before ? "the controller refuses logs within their retention: " + before.error().message
      : after && *before != 0 ? "the controller lets a recovery rely on expired logs"
                              : "";
}

// False when the pass shall end.
bool controller_crashes::crash(controlled_run& r) {
  current_.moments.back().number = r.writes_persisted;
  if (current_.expired) return crash_after_expiry(r);
  const judge::judgement a = r.image_judge.evaluate(r.history);
  ++found_->states;
  found_->distinct += a.new_state;
  if (std::string wrong = r.violation_of(a); !wrong.empty()) {
    report(std::move(wrong));
    return false;  // later crashes of this pass would show the same
  }
  const std::ptrdiff_t position = r.history.find(r.image_judge.verdict_of(a).digest);
  if (&r == &run_ && position >= 0 && (a.replayed || a.new_recovered) &&
      random_.below(recovery_sample_interval) == 0)
    explore_recovery(static_cast<std::uint64_t>(position));
  return !done() && failure_;
}

// What expired lines hold depends on the machine and the number of writes alone, so that one crash
// can be repeated without the others.
judge::judgement controller_crashes::evaluate_after_expiry(controlled_run& r,
                                                           std::string& problem) {
  r.expire_logs(base::mix(current_.moments.front().seed) + r.writes_persisted);
  const judge::judgement a = r.image_judge.evaluate(r.history);
  problem = !wrong_answer_.empty() ? wrong_answer_ : r.refused(a) ? "" : r.violation_of(a);
  return a;
}

bool controller_crashes::crash_after_expiry(controlled_run& r) {
  std::string problem;
  const judge::judgement a = evaluate_after_expiry(r, problem);
  ++found_->states;
  found_->distinct += a.new_state;
  found_->refused += r.refused(a);
  r.put_logs_back();
  if (!problem.empty()) report(std::move(problem));
  return !done();
}

// Crashes in the recovery from the current crash, and in the operations after it.
void controller_crashes::explore_recovery(std::uint64_t position) {
  current_.moments.push_back({random_(), 0});
  ++found_->recoveries;
  if (auto recorded =
          recovery_.record_recovery(subject_, run_, position, current_.recovery_operations);
      !recorded) {
    report("using the recovered pool fails: " + recorded.error().message);
  } else {
    crash_at_each_write watcher(*this, recovery_);
    failure_ = pass(recovery_, current_.moments.back().seed, watcher);
  }
  current_.moments.pop_back();
}

result<judge::judgement> controller_crashes::go_to(controlled_run& r, const crash_moment& m,
                                                   replay_result& out) {
  run_to_write watcher(*this, r, m.number);
  if (auto passed = pass(r, m.seed, watcher); !passed) return std::unexpected(passed.error());
  if (r.writes_persisted < m.number)
    return base::fail(errc::invalid_argument, fmt::format("there is no write {}; the tape has {}",
                                                          m.number, r.writes_persisted));
  out.explanation += r.explanation();
  if (!logs_refused_.empty()) out.explanation += logs_refused_ + "\n";
  if (current_.expired) return evaluate_after_expiry(r, out.problem);
  const judge::judgement a = r.image_judge.evaluate(r.history);
  out.problem = r.violation_of(a);
  return a;
}

result<> controller_crashes::run_one(const controller_crash& c, replay_result& out) {
  current_ = c;
  return go_to_crashes(subject_, c, run_, recovery_, out,
                       [&](auto& r, const crash_moment& m) { return go_to(r, m, out); });
}

}  // namespace

line_fields fields_of(controller_crash& c) {
  return joined({fields_of(c.run_plan),
                 {{"scheduler", &c.scheduler},
                  {"expired", &c.expired},
                  {"at", &c.moments, "", {}, "SEED:WRITES, and a second after a comma"},
                  {"recovery-ops", &c.recovery_operations}}});
}

result<findings> crash_behind_controller(const plan& p, const controller_settings& s) {
  return crash_in_runs<controller_crashes>(
      p, s, [&](controller_crashes& c, findings& found) { return c.run(s, found, s.crashes); });
}

result<findings> crash_behind_controller_isolated(const plan& p, const controller_settings& s) {
  return run_isolated([&] { return crash_behind_controller(p, s); },
                      format_line(controller_crash{.run_plan = p, .scheduler = s.scheduler}));
}

result<replay_result> replay(const controller_crash& c) {
  return replay_crash<controller_crashes>(c);
}

}  // namespace stele::explore
