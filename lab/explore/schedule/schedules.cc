// Makes schedules, walks their tapes, judges their crashes.
#include <base/check.h>
#include <base/rng.h>
#include <explore/crash_model.h>
#include <explore/planted.h>
#include <explore/report.h>
#include <explore/schedule/schedules.h>
#include <explore/sector_model.h>
#include <explore/state_sampler.h>
#include <explore/trap.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <unordered_set>

namespace stele::explore {

using base::fail;
using media::tape_op;
using schedule::decisions;

namespace {

using clock = std::chrono::steady_clock;
double since(clock::time_point t) {
  return std::chrono::duration<double>(clock::now() - t).count();
}

// What the process was doing when it died; its parent reads it from shared memory.
struct black_box {
  char what[512];
  char line[32768];
  std::uint64_t schedules, states;
  std::uint64_t decided;  // decisions that `line` does not have yet
  schedule::decision decisions[4096];
};
void update_black_box(black_box& box, const std::string& what, const std::string& line) {
  std::snprintf(box.what, sizeof box.what, "%s", what.c_str());
  std::snprintf(box.line, sizeof box.line, "%s", line.c_str());
  box.decided = 0;
}

// The line, with the decisions that it lacks.
std::string line_of(const black_box& box) {
  auto line = parse_line<schedule_line>(box.line);
  if (!line) return box.line;
  line->decided.insert(line->decided.end(), box.decisions, box.decisions + box.decided);
  return format_line(std::move(*line));
}

class schedule_explorer {
 public:
  schedule_explorer(subject& s, const plan& p, const concurrency_plan& o,
                    const schedule_settings& set, schedule_findings& f, black_box& box)
      : subject_(s),
        settings_(set),
        found_(f),
        box_(box),
        runs_(s, o),
        orders_(s.workload(), runs_.sequential()),
        durable_(s.empty_image()),
        work_(s.empty_image()),
        model_(model_of(s)),
        judge_(s, work_, verdict_cache_) {
    line_.run_plan = p;
    line_.concurrent = o;
    judge_.set_history_lookup([this](std::uint64_t digest) { return orders_.history(digest); });
  }

  void explore() {
    (void)run({});  // initialises what is made once a process, before any schedule counts
    run_systematic();
    run_random();
    found_.recovered = verdict_cache_.verdicts.size();
  }
  // Replays the schedule, and the crash if there is one.
  replay_result replay(const schedule_line& l);

 private:
  static std::unique_ptr<media_model> model_of(const subject& s) {
    const std::size_t size = s.empty_image().size();
    if (s.on_file()) return std::make_unique<sector_model>(size);
    return std::make_unique<crash_model>(size);
  }
  // The operations of a run, as of the current event of its tape.
  struct tape_progress {
    std::uint32_t invoked = 0, acknowledged = 0;
  };

  bool done() const {
    return found_.violations.size() >= settings_.max_violations ||
           (settings_.seconds != 0 && since(begun_) > settings_.seconds);
  }
  void run_systematic();
  void run_random();
  std::vector<schedule::scripted_strategy::alternative> run(const decisions& d);
  void judge_run(concurrent_run run);
  void judge_end(const concurrent_run& run);
  void judge_backups(const concurrent_run& run);
  template <class Point>
  void walk(const concurrent_run& run, Point&& point);
  void visit(const concurrent_run& run, const tape_progress& r);
  std::string violation_of(const concurrent_run& run, const tape_progress& r);
  std::vector<std::uint32_t> stale() const;
  std::string violation_at(const concurrent_run& run, const tape_progress& r, const crash& c,
                           std::string& explanation);
  concurrent_run make(schedule::strategy& chooser, const decisions& made_so_far);
  void report(std::string what) {
    found_.violations.push_back({std::move(what), format_line(line_)});
  }

  subject& subject_;
  const schedule_settings& settings_;
  schedule_findings& found_;
  black_box& box_;
  concurrent_runner runs_;
  interleavings orders_;
  verdict_cache verdict_cache_;
  hashed_image durable_, work_;
  std::unique_ptr<media_model> model_;
  judge judge_;
  schedule_line line_;
  std::uint64_t point_ = 0, length_ = 0;
  std::unordered_set<std::uint64_t> visited_prefixes_;  // of tapes, already explored
  clock::time_point begun_ = clock::now();
  bool replaying_ = false;  // then a stuck run ends in a failed check, for a debugger
};

concurrent_run schedule_explorer::make(schedule::strategy& chooser, const decisions& made_so_far) {
  line_.crashes.clear();
  reset_watchdog();
  ++box_.schedules;
  const auto stuck = [&](const std::string& why) {
    line_.decided = made_so_far;
    update_black_box(box_, why, format_line(line_));
    if (replaying_) base::check_failed(why.c_str(), __FILE__, __LINE__);
    ::_exit(3);
  };
  auto made = runs_.make(chooser, settings_.limit, stuck);
  if (made) return std::move(*made);
  concurrent_run none;
  none.problem = made.error().message;
  return none;
}

std::vector<schedule::scripted_strategy::alternative> schedule_explorer::run(const decisions& d) {
  line_.decided = d;
  update_black_box(box_, "", format_line(line_));
  schedule::scripted_strategy chooser(d);
  concurrent_run made = make(chooser, d);
  length_ = std::max<std::uint64_t>(length_, chooser.seen().size());
  judge_run(std::move(made));
  return chooser.seen();
}

// Goes level by level, with one decision more in each. When a level has more schedules than may
// still be made, half of that number is drawn from it; the other half goes to the next level.
void schedule_explorer::run_systematic() {
  struct open {
    decisions made;
    unsigned preemptions;
  };
  base::rng random(settings_.seed);
  std::vector<open> level{{{}, 0}};
  bool all = true;
  while (!level.empty() && found_.systematic < settings_.max_systematic && !done()) {
    const std::uint64_t left = settings_.max_systematic - found_.systematic;
    if (level.size() > left) {
      std::shuffle(level.begin(), level.end(), random);
      level.resize((left + 1) / 2);
      all = false;
    }
    std::vector<open> next_level;
    std::uint64_t children = 0;
    for (std::size_t i = 0; i < level.size() && !done(); ++i) {
      const auto seen = run(level[i].made);
      ++found_.systematic;
      const std::uint64_t first = level[i].made.empty() ? 0 : level[i].made.back().number + 1;
      for (std::uint64_t n = first; n < seen.size(); ++n) {
        for (std::uint32_t others =
                 (seen[n].runnable | seen[n].yielding) & ~(1u << seen[n].default_thread);
             others != 0; others &= others - 1) {
          const auto thread = static_cast<unsigned>(std::countr_zero(others));
          const unsigned preemptions = level[i].preemptions + seen[n].preempts(thread);
          if (preemptions > settings_.preemptions) continue;
          // A uniform sample of all children, no larger than the number that may be made.
          const std::uint64_t place = next_level.size() <= settings_.max_systematic
                                          ? next_level.size()
                                          : random.below(children + 1);
          ++children;
          if (place > settings_.max_systematic) continue;
          if (place == next_level.size()) next_level.emplace_back();
          next_level[place] = {level[i].made, preemptions};
          next_level[place].made.push_back({n, thread});
        }
      }
    }
    all = all && children == next_level.size();
    level = std::move(next_level);
  }
  found_.complete = all && level.empty() && !done();
  found_.choices = length_;
}

void schedule_explorer::run_random() {
  for (std::uint64_t i = 0; i < settings_.random && !done(); ++i) {
    line_.decided.clear();
    update_black_box(box_, "", format_line(line_));
    schedule::random_priorities chooser(base::mix(settings_.seed + i), length_,
                                        1 + static_cast<unsigned>(i % 5),
                                        [this](const schedule::decision& d) {
                                          if (box_.decided < std::size(box_.decisions))
                                            box_.decisions[box_.decided++] = d;
                                        });
    concurrent_run made = make(chooser, chooser.made());
    line_.decided = chooser.made();
    update_black_box(box_, "", format_line(line_));
    judge_run(std::move(made));
  }
}

void schedule_explorer::judge_run(concurrent_run run) {
  ++found_.schedules;
  const auto begun = clock::now();
  if (!run.problem.empty()) return report(run.problem);
  judge_end(run);
  judge_backups(run);
  const std::uint64_t before = found_.points;
  if (!done()) walk(run, [&](const tape_progress& r) { visit(run, r); });
  found_.distinct += found_.points != before;
  found_.judging_seconds += since(begun);
}

void schedule_explorer::judge_end(const concurrent_run& run) {
  const auto all = static_cast<std::uint32_t>((std::uint64_t{1} << run.operations.size()) - 1);
  if (!orders_.allows(run.operations, run.before, run.digest, all, all))
    report("no order of the operations explains what the run left (without a crash)");
  for (const concurrent_run::observation& o : run.seen)
    if (!orders_.allows(run.operations, run.before, o.digest, o.must, o.may))
      report("a reader saw what is no state that the pool had then");
}

// A backup must hold a state of the pool at some moment while it was made, as if closed then.
void schedule_explorer::judge_backups(const concurrent_run& run) {
  for (const concurrent_run::backup& c : run.backups) {
    hashed_image image = subject_.empty_image();
    if (c.bytes.size() > image.size()) return report("a backup is longer than the pool can be");
    std::memcpy(image.data(), c.bytes.data(), c.bytes.size());
    image.rehash();
    verdict_cache fresh_cache;
    judge once(subject_, image, fresh_cache);
    once.set_history_lookup([this](std::uint64_t digest) { return orders_.history(digest); });
    run_history none;
    const verdict v = once.verdict_of(once.evaluate(none));
    if (!v.problem.empty()) return report("a backup made meanwhile: " + v.problem);
    if (!orders_.allows(run.operations, run.before, v.digest, c.must, c.may))
      return report("a backup made meanwhile is no state that the pool had then");
  }
}

std::uint64_t hash_of(const media::tape_event& e, std::uint64_t before) {
  std::uint64_t h = fold(before ^ (static_cast<std::uint64_t>(e.op) << 32 | e.thread),
                         base::mix(e.address + 1) ^ e.length);
  for (std::size_t at = 0; at < e.bytes.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, e.bytes.data() + at, std::min<std::size_t>(8, e.bytes.size() - at));
    h = fold(h ^ word, 0x9E3779B97F4A7C15u + at);
  }
  return h;
}

// Calls point(tape_progress) at each new crash point, with the pending stores in the model.
template <class Point>
void schedule_explorer::walk(const concurrent_run& run, Point&& point) {
  durable_.assign(subject_.initial_image());
  work_.assign(subject_.initial_image());
  model_->start(durable_);
  point_ = 0;
  tape_progress now;
  std::uint64_t hash = 1;
  bool begun = false;
  const auto visit_new = [&] {
    if (begun && visited_prefixes_.insert(hash).second) point(now);
    ++point_;
  };
  auto reader = media::tape_reader::from_memory(run.tape);
  while (auto e = *reader->next()) {
    const bool crash_point =
        e->op == tape_op::fence || e->op == tape_op::bulk || e->op == tape_op::returned;
    if (e->op == tape_op::returned) now.acknowledged |= 1u << e->address;
    if (crash_point) {
      hash = fold(hash ^ now.acknowledged, 0xA0761D6478BD642Fu);
      visit_new();
      if (done()) return;
    }
    switch (e->op) {
      case tape_op::store:
        model_->store(e->thread, e->address, e->bytes);
        break;
      case tape_op::stream:
        model_->stream(e->thread, e->address, e->bytes);
        break;
      case tape_op::flush:
        model_->flush(e->thread, e->address, e->length);
        break;
      case tape_op::tx_begin:
        begun = true;
        break;
      case tape_op::invoked:
        now.invoked |= 1u << e->address;
        break;
      case tape_op::fence:
        for (const std::uint32_t unit : model_->fence(e->thread)) model_->put(work_, unit, 0);
        break;
      case tape_op::bulk:
        for (const std::uint32_t unit : model_->bulk(e->thread, e->address, e->length))
          model_->put(work_, unit, 0);
        break;
      default:
        break;
    }
    hash = hash_of(*e, hash);
  }
  visit_new();
}

void schedule_explorer::visit(const concurrent_run& run, const tape_progress& r) {
  const auto units = model_->pending();
  std::vector<std::uint64_t> options;
  for (const std::uint32_t unit : units) options.push_back(model_->options(unit));
  state_sampler all(options, settings_.bound, base::mix(line_.run_plan.seed) + point_);
  ++found_.points;
  found_.exhausted += all.exhaustive();
  line_.crashes = {{point_, std::vector<std::uint64_t>(units.size())}};
  std::vector<std::uint64_t> next(units.size());
  for (std::uint64_t k = 0; k < all.count() && !done(); ++k) {
    all.select(k, next);
    auto& now = line_.crashes.front().chosen;
    for (std::size_t i = 0; i < units.size(); ++i)
      if (next[i] != now[i]) model_->put(work_, units[i], now[i] = next[i]);
    if (std::string wrong = violation_of(run, r); !wrong.empty()) report(std::move(wrong));
  }
  for (const std::uint32_t unit : units) model_->put(work_, unit, 0);
  line_.crashes.clear();
}

std::string schedule_explorer::violation_of(const concurrent_run& run, const tape_progress& r) {
  ++found_.states;
  ++box_.states;
  run_history none;
  if (!verdict_cache_.states.find(work_.hash().all)) update_black_box(box_, "", format_line(line_));
  const judge::judgement a = judge_.evaluate(none);
  found_.distinct_states += a.new_state;
  const verdict& v = judge_.verdict_of(a);
  if (v.lost) {
    ++found_.refused;
    return judge_.violation_of(v, none, 0, 0, [this] { return stale(); });
  }
  if (!v.problem.empty()) return v.problem;
  if (orders_.allows(run.operations, run.before, v.digest, r.acknowledged, r.invoked)) return "";
  if (orders_.allows(run.operations, run.before, v.digest, 0, ~0u))
    return fmt::format(
        "an acknowledged operation is lost, or one that was not invoked is there (operations, as "
        "bits: {:#x} acknowledged, "
        "{:#x} invoked, {:#x} recovered)",
        r.acknowledged, r.invoked, orders_.operations_in(run.operations, run.before, v.digest));
  return "what was recovered is no state that the run may have left";
}

// The lines that are not in the work image as they were stored last.
std::vector<std::uint32_t> schedule_explorer::stale() const {
  std::vector<std::uint32_t> lines;
  for (const std::uint32_t unit : model_->pending()) model_->add_stale(work_, unit, lines);
  return lines;
}

std::string schedule_explorer::violation_at(const concurrent_run& run, const tape_progress& r,
                                            const crash& c, std::string& explanation) {
  const auto units = model_->pending();
  if (units.size() != c.chosen.size()) return "";
  for (std::size_t i = 0; i < units.size(); ++i) {
    model_->put(work_, units[i], c.chosen[i]);
    for (const auto& f : model_->store_outcomes(units[i], c.chosen[i]))
      explanation += fmt::format("  {} {:#x}: {:#018x} {}\n", f.streamed ? "stream" : "store ",
                                 f.offset, f.bits, f.kept ? "kept" : "LOST");
  }
  return violation_of(run, r);
}

replay_result schedule_explorer::replay(const schedule_line& l) {
  replaying_ = true;
  const decisions no_decisions;
  schedule::scripted_strategy first(no_decisions);
  (void)make(first, no_decisions);
  line_ = l;
  schedule::scripted_strategy chooser(l.decided);
  const concurrent_run made = make(chooser, l.decided);
  replay_result out;
  out.explanation = fmt::format("{} choices, {} of the list applied\n", chooser.seen().size(),
                                chooser.applied() ? "all" : "not all");
  for (std::size_t i = 0; i < made.operations.size(); ++i)
    out.explanation += fmt::format("operation {}: kind {} a={} b={} after operations {:#x}\n", i,
                                   static_cast<int>(made.operations[i].what), made.operations[i].a,
                                   made.operations[i].b, made.before[i]);
  if (l.crashes.empty()) {
    judge_run(made);
    if (!found_.violations.empty()) out.problem = found_.violations.front().what;
  } else if (!made.problem.empty()) {
    out.problem = made.problem;
  } else {
    walk(made, [&](const tape_progress& r) {
      if (point_ == l.crashes.front().point)
        out.problem = violation_at(made, r, l.crashes.front(), out.explanation);
    });
  }
  return out;
}

// After a signal the black box is the report: memory may be what the signal broke, or its lock may
// be held, so nothing is allocated any more.
result<schedule_findings> explore_in_this_process(const plan& p, const concurrency_plan& o,
                                                  const schedule_settings& s, black_box& box) {
  auto made = subject::make(p);
  if (!made) return std::unexpected(made.error());
  schedule_findings found;
  const auto begun = clock::now();
  auto running = std::make_unique<schedule_explorer>(**made, p, o, s, found, box);
  const planted_bugs planted(p);
  const int signal = run_trapped([&] { running->explore(); }, timeout_for(p.pool_size));
  if (signal != 0) {
    std::snprintf(box.what, sizeof box.what, "%s (signal %d)", describe_signal(signal), signal);
    ::_exit(EXIT_FAILURE);
  }
  found.seconds = since(begun);
  return found;
}

// Threads that take turns switch fastest on one processor. It is the one on which the system wakes
// this process: an idle one if there is any.
void pin_to_one_cpu() {
  cpu_set_t one;
  CPU_ZERO(&one);
  ::usleep(1000);
  const int now = ::sched_getcpu();
  CPU_SET(now < 0 ? 0 : now, &one);
  (void)::sched_setaffinity(0, sizeof one, &one);
}

}  // namespace

result<schedule_findings> explore_schedules(const plan& p, const concurrency_plan& o,
                                            const schedule_settings& s) {
  auto* const box = static_cast<black_box*>(::mmap(
      nullptr, sizeof(black_box), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  if (box == MAP_FAILED)
    return base::fail_errno(errc::io, "cannot make what a process of its own needs");
  const auto made = report_of_child([&] {
    pin_to_one_cpu();
    const auto found = explore_in_this_process(p, o, s, *box);
    return found ? json_of(*found) : nlohmann::json{{"error", found.error().message}};
  });
  schedule_findings f;
  if (made && made->found.is_object()) {
    f = schedule_findings_of(made->found);
  } else if (made) {
    f.schedules = box->schedules, f.states = box->states;
    f.violations.push_back({box->what[0] != 0 ? box->what : made->death, line_of(*box)});
  }
  ::munmap(box, sizeof(black_box));
  if (!made) return std::unexpected(made.error());
  return f;
}

result<replay_result> replay(const schedule_line& l, const schedule_settings& s) {
  if (l.crashes.size() > 1)
    return fail(errc::invalid_argument,
                fmt::format("the line names {} crashes; write one behind at=", l.crashes.size()));
  auto made = subject::make(l.run_plan);
  if (!made) return std::unexpected(made.error());
  schedule_findings found;
  black_box box{};
  schedule_explorer running(**made, l.run_plan, l.concurrent, s, found, box);
  const planted_bugs planted(l.run_plan);
  return running.replay(l);
}

}  // namespace stele::explore
