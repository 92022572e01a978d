// Visits crash points and chooses states; explorer.h says which recovered states are right.
#include <explore/explored_tape.h>
#include <explore/explorer.h>
#include <explore/planted.h>
#include <explore/replay.h>
#include <explore/state_sampler.h>
#include <explore/trap.h>
#include <fmt/format.h>

#include <memory>

#include <base/check.h>

namespace stele::explore {

namespace {

using clock = std::chrono::steady_clock;

class explorer {
 public:
  explorer(subject& s, const settings& set, findings& f)
      : subject_(s), settings_(set), found_(f), random_(s.run_plan().seed + 77) {}

  void run();
  // The state being visited, as a line that replays it.
  std::string line() const {
    return format_line(run_crash{subject_.run_plan(), path_, settings_.recovery_operations});
  }

 private:
  void explore_tape(std::span<const std::byte> tape, const hashed_image& start, run_history& t,
                    std::uint64_t position, unsigned level);
  void visit_point(explored_tape& s, run_history& t, unsigned level);
  // How many more recoveries are recorded at a crash point: of states where recovery changes home,
  // and of others that it turns into a new image.
  struct recovery_budget {
    unsigned replayed, fresh;
    bool take(const judge::judgement& a) noexcept {
      unsigned& left = a.replayed ? replayed : fresh;
      if (left == 0 || !(a.replayed || a.new_recovered)) return false;
      --left;
      return true;
    }
  };
  void visit_state(explored_tape& s, run_history& t, unsigned level, recovery_budget& left);
  void explore_recovery(explored_tape& s, run_history& t, std::uint64_t position, unsigned level);
  void report(std::string what);
  bool check_verdict(explored_tape& s, run_history& t, const verdict& v);
  void report_progress();
  bool done() const {
    return found_.cancelled || found_.violations.size() >= settings_.max_violations;
  }

  subject& subject_;
  const settings& settings_;
  findings& found_;
  verdict_cache verdict_cache_;
  base::rng random_;
  std::vector<std::unique_ptr<explored_tape>> tapes_;  // by level
  std::vector<crash> path_;                            // the state being visited
  std::vector<std::uint64_t> options_;
  clock::time_point begun_ = clock::now(), last_progress_ = begun_;
};

std::uint64_t count_points(std::span<const std::byte> tape) {
  std::uint64_t points = 1;
  auto reader = media::tape_reader::from_memory(tape);
  while (auto e = *reader->next())
    points += e->op == media::tape_op::fence || e->op == media::tape_op::bulk ||
              e->op == media::tape_op::returned;
  return points;
}

void explorer::run() {
  run_history t;
  const auto tape = subject_.record(t);
  if (!tape) return report(tape.error().message);
  found_.points_total = count_points(*tape);
  explore_tape(*tape, subject_.initial_image(), t, 0, 0);
  found_.recovered = verdict_cache_.verdicts.size();
  found_.seconds = std::chrono::duration<double>(clock::now() - begun_).count();
}

void explorer::explore_tape(std::span<const std::byte> tape, const hashed_image& start,
                            run_history& t, std::uint64_t position, unsigned level) {
  while (tapes_.size() <= level)
    tapes_.push_back(std::make_unique<explored_tape>(subject_, verdict_cache_));
  explored_tape& s = *tapes_[level];
  s.begin(start, position);
  path_.resize(level + 1);
  auto reader = media::tape_reader::from_memory(tape);
  while (auto event = *reader->next()) {
    if (!s.take(*event)) continue;
    visit_point(s, t, level);
    if (done()) return;
    s.leave_point();
  }
  visit_point(s, t, level);
}

void explorer::visit_point(explored_tape& s, run_history& t, unsigned level) {
  const auto units = s.model->pending();
  std::vector<std::uint64_t> options;
  for (const std::uint32_t unit : units) options.push_back(s.model->options(unit));
  state_sampler all(options, level == 0 ? settings_.bound : settings_.recovery_bound,
                    base::mix(subject_.run_plan().seed) + s.point);
  ++found_.epochs;
  found_.epochs_exhausted += all.exhaustive();
  if (level == 0) ++found_.points;
  path_[level].point = s.point;
  path_[level].chosen.assign(units.size(), 0);
  std::vector<std::uint64_t> next(units.size());
  const unsigned samples = level == 0 ? settings_.recovery_samples : random_.below(16) == 0;
  recovery_budget left{samples, samples};
  for (std::uint64_t k = 0; k < all.count() && !done(); ++k) {
    all.select(k, next);
    auto& now = path_[level].chosen;
    for (std::size_t i = 0; i < units.size(); ++i)
      if (next[i] != now[i]) s.choose(units[i], now[i] = next[i]);
    visit_state(s, t, level, left);
  }
  for (const std::uint32_t unit : units) s.choose(unit, 0);
  if (!done() && std::memcmp(s.work.data(), s.durable.data(), s.work.size()) != 0)
    report("something was stored to the pool past the medium");
  report_progress();
}

void explorer::visit_state(explored_tape& s, run_history& t, unsigned level,
                           recovery_budget& left) {
  ++found_.states;
  const judge::judgement a = s.image_judge.evaluate(t);
  found_.distinct += a.new_state;
  if (!check_verdict(s, t, s.image_judge.verdict_of(a)) || s.image_judge.verdict_of(a).lost) return;
  if (level + 1 >= settings_.recovery_depth || !left.take(a)) return;
  explore_recovery(s, t, static_cast<std::uint64_t>(t.find(s.image_judge.verdict_of(a).digest)),
                   level);
  path_.resize(level + 1);
}

bool explorer::check_verdict(explored_tape& s, run_history& t, const verdict& v) {
  std::string wrong = s.violation_of(v, t);
  found_.refused += v.lost && wrong.empty();
  found_.fell_back += v.fell_back && path_.size() == 1;
  if (wrong.empty()) return true;
  report(std::move(wrong));
  return false;
}

// Records the recovery of the state in s.work, and the operations after it, and explores that tape.
void explorer::explore_recovery(explored_tape& s, run_history& t, std::uint64_t position,
                                unsigned level) {
  hashed_image start = subject_.empty_image(), image = subject_.empty_image();
  start.assign(s.work);
  image.assign(s.work);
  run_history after = subject_.branch(t, position, settings_.recovery_operations);
  ++found_.recoveries;
  path_.emplace_back();
  const auto tape = subject_.record_recovery(image, after, position);
  if (tape) return explore_tape(*tape, start, after, position, level + 1);
  path_.pop_back();
  report("using the recovered pool fails: " + tape.error().message);
}

void explorer::report(std::string what) {
  found_.violations.push_back({std::move(what), line()});
}

void explorer::report_progress() {
  if (settings_.cancelled && settings_.cancelled()) found_.cancelled = true;
  if (!settings_.progress || clock::now() - last_progress_ < std::chrono::milliseconds(200)) return;
  last_progress_ = clock::now();
  found_.seconds = std::chrono::duration<double>(last_progress_ - begun_).count();
  found_.recovered = verdict_cache_.verdicts.size();
  settings_.progress(found_);
}

}  // namespace

result<findings> explore(const plan& p, const settings& s) {
  auto made = subject::make(p);
  if (!made) return std::unexpected(made.error());
  findings found;
  auto running = std::make_unique<explorer>(**made, s, found);
  const planted_bugs planted(p);
  const int signal = run_trapped([&] { running->run(); }, timeout_for(p.pool_size));
  if (signal != 0) {
    found.violations.push_back(
        {fmt::format("{} (signal {})", describe_signal(signal), signal), running->line()});
    (*made)->abandon();
    (void)running.release();
    (void)made->release();
  }
  return found;
}

}  // namespace stele::explore
