// Making schedules, walking their tapes, judging their crashes.
#include <base/check.h>
#include <base/rng.h>
#include <explore/choices.h>
#include <explore/crash_model.h>
#include <explore/plan_line.h>
#include <explore/planted.h>
#include <explore/schedule/schedules.h>
#include <explore/sector_model.h>
#include <explore/trap.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
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

// What a process that dies was doing; its parent reads it.
struct black_box {
  char what[512];
  char line[32768];
  std::uint64_t schedules, states;
  std::uint64_t decided;  // what the line does not have yet
  schedule::decision decisions[4096];
};
void write_down(black_box* box, const std::string& what, const std::string& line) {
  if (box == nullptr) return;
  std::snprintf(box->what, sizeof box->what, "%s", what.c_str());
  std::snprintf(box->line, sizeof box->line, "%s", line.c_str());
  box->decided = 0;
}

class schedule_explorer {
 public:
  schedule_explorer(subject& s, const plan& p, const overlap& o, const schedule_settings& set, schedule_findings& f,
                    black_box* box)
      : subject_(s),
        settings_(set),
        found_(f),
        box_(box),
        runs_(s, o),
        orders_(s.workload(), runs_.first()),
        settled_(s.blank()),
        work_(s.blank()),
        model_(model_of(s)),
        judge_(s, work_, experience_) {
    line_.what = p;
    line_.with = o;
    judge_.look_up([this](std::uint64_t digest) { return orders_.history(digest); });
  }

  void explore() {
    (void)run({});  // what is made once in a process is made now, outside of any schedule that counts
    systematically();
    randomly();
    found_.recovered = experience_.verdicts.size();
  }
  // The schedule, and the crash if there is one.
  std::string replay(const schedule_line& l, std::string* story);

 private:
  static std::unique_ptr<media_model> model_of(const subject& s) {
    const std::size_t size = s.blank().size();
    if (s.on_file()) return std::make_unique<sector_model>(size);
    return std::make_unique<crash_model>(size);
  }
  // Operations of a run, as its tape has come to.
  struct reached {
    std::uint32_t invoked = 0, acknowledged = 0;
  };

  bool done() const {
    return found_.violations.size() >= settings_.most_violations ||
           (settings_.seconds != 0 && since(begun_) > settings_.seconds);
  }
  void systematically();
  void randomly();
  std::vector<schedule::listed::alternative> run(const decisions& d);
  void take(overlapped run);
  void judge_end(const overlapped& run);
  void judge_copies(const overlapped& run);
  template <class Point>
  void walk(const overlapped& run, Point&& point);
  void visit(const overlapped& run, const reached& r);
  std::string complaint(const overlapped& run, const reached& r);
  std::vector<std::uint32_t> stale() const;
  std::string complaint_at(const overlapped& run, const reached& r, const crash& c, std::string* story);
  overlapped make(schedule::strategy& who, const decisions& made_so_far);
  void report(std::string what) { found_.violations.push_back({std::move(what), format_schedule(line_)}); }

  subject& subject_;
  const schedule_settings& settings_;
  schedule_findings& found_;
  black_box* box_;
  overlapped_runs runs_;
  interleavings orders_;
  experience experience_;
  hashed_image settled_, work_;
  std::unique_ptr<media_model> model_;
  judge judge_;
  schedule_line line_;
  std::uint64_t point_ = 0, length_ = 0;
  std::unordered_set<std::uint64_t> beginnings_;  // of tapes, that were looked at
  clock::time_point begun_ = clock::now();
  bool replays_ = false;  // then who is stuck is left as it is, for a debugger
};

overlapped schedule_explorer::make(schedule::strategy& who, const decisions& made_so_far) {
  line_.crashed = false;
  still_alive();
  if (box_ != nullptr) ++box_->schedules;
  const auto stuck = [&](const std::string& why) {
    line_.decided = made_so_far;
    write_down(box_, why, format_schedule(line_));
    if (replays_) base::check_failed(why.c_str(), __FILE__, __LINE__);
    ::_exit(3);
  };
  auto made = runs_.make(who, settings_.limit, stuck);
  if (made) return std::move(*made);
  overlapped none;
  none.problem = made.error().message;
  return none;
}

std::vector<schedule::listed::alternative> schedule_explorer::run(const decisions& d) {
  line_.decided = d;
  write_down(box_, "", format_schedule(line_));
  schedule::listed who(d);
  overlapped made = make(who, d);
  length_ = std::max<std::uint64_t>(length_, who.seen().size());
  take(std::move(made));
  return who.seen();
}

// Level by level, one decision more in each. Where a level has more schedules than are left to make, half of those left are
// drawn from it, and the rest go to the next.
void schedule_explorer::systematically() {
  struct open {
    decisions made;
    unsigned preemptions;
  };
  base::rng random(settings_.seed);
  std::vector<open> level{{{}, 0}};
  bool all = true;
  while (!level.empty() && found_.systematic < settings_.most && !done()) {
    const std::uint64_t left = settings_.most - found_.systematic;
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
        for (std::uint32_t others = (seen[n].able | seen[n].resting) & ~(1u << seen[n].usual); others != 0;
             others &= others - 1) {
          const auto thread = static_cast<unsigned>(std::countr_zero(others));
          const unsigned preemptions = level[i].preemptions + seen[n].preempts(thread);
          if (preemptions > settings_.preemptions) continue;
          // A sample of all children, no larger than what could be made.
          const std::uint64_t place = next_level.size() <= settings_.most ? next_level.size() : random.below(children + 1);
          ++children;
          if (place > settings_.most) continue;
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

void schedule_explorer::randomly() {
  for (std::uint64_t i = 0; i < settings_.random && !done(); ++i) {
    line_.decided.clear();
    write_down(box_, "", format_schedule(line_));
    schedule::by_priority who(base::mix(settings_.seed + i), length_, 1 + static_cast<unsigned>(i % 5),
                              [this](const schedule::decision& d) {
                                if (box_ != nullptr && box_->decided < std::size(box_->decisions))
                                  box_->decisions[box_->decided++] = d;
                              });
    overlapped made = make(who, who.made());
    line_.decided = who.made();
    write_down(box_, "", format_schedule(line_));
    take(std::move(made));
  }
}

void schedule_explorer::take(overlapped run) {
  ++found_.schedules;
  const auto begun = clock::now();
  if (!run.problem.empty()) return report(run.problem);
  judge_end(run);
  judge_copies(run);
  const std::uint64_t before = found_.points;
  if (!done()) walk(run, [&](const reached& r) { visit(run, r); });
  found_.distinct += found_.points != before;
  found_.judging_seconds += since(begun);
}

void schedule_explorer::judge_end(const overlapped& run) {
  const auto all = static_cast<std::uint32_t>((std::uint64_t{1} << run.operations.size()) - 1);
  if (!orders_.allows(run.operations, run.before, run.digest, all, all))
    report("no order of the operations explains what the run left (without a crash)");
  for (const overlapped::observation& o : run.seen)
    if (!orders_.allows(run.operations, run.before, o.digest, o.must, o.may))
      report("a reader saw what is no state that the pool had then");
}

// A backup is the pool at some moment while it was made, closed.
void schedule_explorer::judge_copies(const overlapped& run) {
  for (const overlapped::copy& c : run.copies) {
    hashed_image image = subject_.blank();
    if (c.bytes.size() > image.size()) return report("a backup is longer than the pool can be");
    std::memcpy(image.data(), c.bytes.data(), c.bytes.size());
    image.rehash();
    experience learnt;
    judge once(subject_, image, learnt);
    once.look_up([this](std::uint64_t digest) { return orders_.history(digest); });
    timeline none;
    const verdict v = once.of(once.ask(none));
    if (!v.problem.empty()) return report("a backup made meanwhile: " + v.problem);
    if (!orders_.allows(run.operations, run.before, v.digest, c.must, c.may))
      return report("a backup made meanwhile is no state that the pool had then");
  }
}

std::uint64_t hash_of(const media::tape_event& e, std::uint64_t before) {
  std::uint64_t h = fold(before ^ (static_cast<std::uint64_t>(e.op) << 32 | e.thread), base::mix(e.address + 1) ^ e.length);
  for (std::size_t at = 0; at < e.bytes.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, e.bytes.data() + at, std::min<std::size_t>(8, e.bytes.size() - at));
    h = fold(h ^ word, 0x9E3779B97F4A7C15u + at);
  }
  return h;
}

// point(reached) at each crash point, with what is pending in the model.
template <class Point>
void schedule_explorer::walk(const overlapped& run, Point&& point) {
  settled_.assign(subject_.start());
  work_.assign(subject_.start());
  model_->start(settled_);
  point_ = 0;
  reached now;
  std::uint64_t hash = 1;
  bool begun = false;
  const auto visit_new = [&] {
    if (begun && beginnings_.insert(hash).second) point(now);
    ++point_;
  };
  auto reader = media::tape_reader::over(run.tape);
  while (auto e = *reader->next()) {
    const bool crash_point = e->op == tape_op::fence || e->op == tape_op::bulk || e->op == tape_op::returned;
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
        for (const std::uint32_t unit : model_->bulk(e->thread, e->address, e->length)) model_->put(work_, unit, 0);
        break;
      default:
        break;
    }
    hash = hash_of(*e, hash);
  }
  visit_new();
}

void schedule_explorer::visit(const overlapped& run, const reached& r) {
  const auto units = model_->pending();
  std::vector<std::uint64_t> options;
  for (const std::uint32_t unit : units) options.push_back(model_->options(unit));
  choices all(options, settings_.bound, base::mix(line_.what.seed) + point_);
  ++found_.points;
  found_.exhausted += all.exhaustive();
  line_.crashed = true;
  line_.at = {point_, std::vector<std::uint64_t>(units.size()), 0};
  std::vector<std::uint64_t> next(units.size());
  for (std::uint64_t k = 0; k < all.count() && !done(); ++k) {
    all.select(k, next);
    auto& now = line_.at.chosen;
    for (std::size_t i = 0; i < units.size(); ++i)
      if (next[i] != now[i]) model_->put(work_, units[i], now[i] = next[i]);
    if (std::string wrong = complaint(run, r); !wrong.empty()) report(std::move(wrong));
  }
  for (const std::uint32_t unit : units) model_->put(work_, unit, 0);
  line_.crashed = false;
}

std::string schedule_explorer::complaint(const overlapped& run, const reached& r) {
  ++found_.states;
  if (box_ != nullptr) ++box_->states;
  timeline none;
  if (box_ != nullptr && !experience_.states.find(work_.sum().all)) write_down(box_, "", format_schedule(line_));
  const judge::answer a = judge_.ask(none);
  found_.distinct_states += a.new_state;
  const verdict& v = judge_.of(a);
  if (v.lost) {
    ++found_.refused;
    return judge_.complaint(v, none, 0, 0, [this] { return stale(); });
  }
  if (!v.problem.empty()) return v.problem;
  if (orders_.allows(run.operations, run.before, v.digest, r.acknowledged, r.invoked)) return "";
  if (orders_.allows(run.operations, run.before, v.digest, 0, ~0u))
    return fmt::format(
        "an acknowledged operation is lost, or one that was not invoked is there (operations, as bits: {:#x} acknowledged, "
        "{:#x} invoked, {:#x} recovered)",
        r.acknowledged, r.invoked, orders_.which(run.operations, run.before, v.digest));
  return "what was recovered is no state that the run may have left";
}

// The lines that the work image does not have as they were stored last.
std::vector<std::uint32_t> schedule_explorer::stale() const {
  std::vector<std::uint32_t> lines;
  for (const std::uint32_t unit : model_->pending()) model_->add_stale(work_, unit, lines);
  return lines;
}

std::string schedule_explorer::complaint_at(const overlapped& run, const reached& r, const crash& c, std::string* story) {
  const auto units = model_->pending();
  if (units.size() != c.chosen.size()) return "";
  for (std::size_t i = 0; i < units.size(); ++i) {
    model_->put(work_, units[i], c.chosen[i]);
    if (story == nullptr) continue;
    for (const auto& f : model_->fates(units[i], c.chosen[i]))
      *story += fmt::format("  {} {:#x}: {:#018x} {}\n", f.streamed ? "stream" : "store ", f.offset, f.bits,
                            f.kept ? "kept" : "LOST");
  }
  return complaint(run, r);
}

std::string schedule_explorer::replay(const schedule_line& l, std::string* story) {
  replays_ = true;
  const decisions usual;
  schedule::listed first(usual);
  (void)make(first, usual);
  line_ = l;
  schedule::listed who(l.decided);
  const overlapped made = make(who, l.decided);
  if (story != nullptr) {
    *story += fmt::format("{} choices, {} of the list applied\n", who.seen().size(), who.applied() ? "all" : "not all");
    for (std::size_t i = 0; i < made.operations.size(); ++i)
      *story +=
          fmt::format("operation {}: kind {} a={} b={} after operations {:#x}\n", i,
                      static_cast<int>(made.operations[i].what), made.operations[i].a, made.operations[i].b, made.before[i]);
  }
  if (!l.crashed) {
    take(made);
    return found_.violations.empty() ? "" : found_.violations.front().what;
  }
  if (!made.problem.empty()) return made.problem;
  std::string wrong;
  walk(made, [&](const reached& r) {
    if (point_ != l.at.point) return;
    wrong = complaint_at(made, r, l.at, story);
  });
  return wrong;
}

}  // namespace

namespace {

result<schedule_findings> explore_here(const plan& p, const overlap& o, const schedule_settings& s, black_box* box) {
  auto made = subject::make(p);
  if (!made) return std::unexpected(made.error());
  schedule_findings found;
  const auto begun = clock::now();
  auto running = std::make_unique<schedule_explorer>(**made, p, o, s, found, box);
  const planted_bugs planted(p);
  const int signal = trapped([&] { running->explore(); }, patience_for(p.pool_size));
  found.seconds = since(begun);
  if (signal != 0) {
    found.violations.push_back({fmt::format("{} (signal {})", meaning_of(signal), signal), box != nullptr ? box->line : ""});
    (*made)->abandon();
    (void)running.release();
    (void)made->release();
  }
  return found;
}

// Threads that take turns are handed on fastest on one processor: the one that the system wakes this process on, an idle one
// if there is any.
void stay_on_one_processor() {
  cpu_set_t one;
  CPU_ZERO(&one);
  ::usleep(1000);
  const int now = ::sched_getcpu();
  CPU_SET(now < 0 ? 0 : now, &one);
  (void)::sched_setaffinity(0, sizeof one, &one);
}

}  // namespace

result<schedule_findings> explore_schedules(const plan& p, const overlap& o, const schedule_settings& s) {
  auto* const box =
      static_cast<black_box*>(::mmap(nullptr, sizeof(black_box), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  int ends[2];
  if (box == MAP_FAILED || ::pipe(ends) != 0)
    return base::fail_errno(errc::io, "cannot make what a process of its own needs");
  const pid_t child = ::fork();
  if (child < 0) return base::fail_errno(errc::io, "cannot start a process");
  if (child == 0) {
    ::close(ends[0]);
    stay_on_one_processor();
    const auto found = explore_here(p, o, s, box);
    const std::string text = found ? json_of(*found).dump() : nlohmann::json{{"error", found.error().message}}.dump();
    for (std::size_t at = 0; at < text.size();) {
      const ssize_t n = ::write(ends[1], text.data() + at, text.size() - at);
      if (n <= 0) break;
      at += static_cast<std::size_t>(n);
    }
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string text;
  char part[4096];
  for (ssize_t n; (n = ::read(ends[0], part, sizeof part)) > 0;) text.append(part, static_cast<std::size_t>(n));
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  const auto told = nlohmann::json::parse(text, nullptr, false);
  schedule_findings f;
  if (told.is_object() && told.contains("error")) return fail(errc::invalid_argument, told.at("error"));
  if (told.is_object()) {
    f = schedule_findings_of(told);
  } else {
    f.schedules = box->schedules, f.states = box->states;
    std::string line = box->line;
    for (std::uint64_t i = 0; i < box->decided; ++i)
      line += fmt::format(" {}:{}", box->decisions[i].number, box->decisions[i].thread);
    f.violations.push_back(
        {box->what[0] != 0 ? box->what : fmt::format("the exploring process died (status {:#x})", status), line});
  }
  ::munmap(box, sizeof(black_box));
  return f;
}

result<std::string> replay_schedule(const schedule_line& l, const schedule_settings& s, std::string* story) {
  auto made = subject::make(l.what);
  if (!made) return std::unexpected(made.error());
  schedule_findings found;
  black_box box{};
  schedule_explorer running(**made, l.what, l.with, s, found, &box);
  const planted_bugs planted(l.what);
  return running.replay(l, story);
}

}  // namespace stele::explore
