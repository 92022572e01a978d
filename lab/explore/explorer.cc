// Visiting crash points and choosing states; see explorer.h for what is demanded of them.
#include <explore/choices.h>
#include <explore/explorer.h>
#include <explore/planted.h>
#include <explore/replay.h>
#include <explore/scene.h>
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
      : subject_(s), settings_(set), found_(f), random_(s.named_by().seed + 77) {}

  void run();
  // Where it is now, as a line that replays it.
  std::string line() const { return format_line({subject_.named_by(), path_}); }

 private:
  void explore_tape(std::span<const std::byte> tape, const hashed_image& start, timeline& t, std::uint64_t position,
                    unsigned level);
  void visit_point(scene& s, timeline& t, unsigned level);
  // How many more recoveries are recorded at a crash point: of states that recovery has to repair, and of those
  // that it makes something new of.
  struct allowance {
    unsigned replayed, fresh;
    bool take(const judge::answer& a) noexcept {
      unsigned& left = a.replayed ? replayed : fresh;
      if (left == 0 || !(a.replayed || a.new_recovered)) return false;
      --left;
      return true;
    }
  };
  void visit_state(scene& s, timeline& t, unsigned level, allowance& left);
  void descend(scene& s, timeline& t, std::uint64_t position, unsigned level);
  void report(std::string what);
  bool check_answer(scene& s, timeline& t, const verdict& v);
  void tell_progress();
  bool done() const { return found_.cancelled || found_.violations.size() >= settings_.most_violations; }

  subject& subject_;
  const settings& settings_;
  findings& found_;
  experience experience_;
  base::rng random_;
  std::vector<std::unique_ptr<scene>> scenes_;  // by level
  std::vector<crash> path_;                     // the state being visited
  std::vector<std::uint64_t> options_;
  clock::time_point begun_ = clock::now(), told_ = begun_;
};

std::uint64_t count_points(std::span<const std::byte> tape) {
  std::uint64_t points = 1;
  auto reader = media::tape_reader::over(tape);
  while (auto e = *reader->next())
    points += e->op == media::tape_op::fence || e->op == media::tape_op::bulk || e->op == media::tape_op::returned;
  return points;
}

void explorer::run() {
  timeline t;
  const auto tape = subject_.record(t);
  if (!tape) return report(tape.error().message);
  found_.points_total = count_points(*tape);
  explore_tape(*tape, subject_.start(), t, 0, 0);
  found_.recovered = experience_.verdicts.size();
  found_.seconds = std::chrono::duration<double>(clock::now() - begun_).count();
}

void explorer::explore_tape(std::span<const std::byte> tape, const hashed_image& start, timeline& t, std::uint64_t position,
                            unsigned level) {
  while (scenes_.size() <= level) scenes_.push_back(std::make_unique<scene>(subject_, experience_));
  scene& s = *scenes_[level];
  s.begin(start, position);
  path_.resize(level + 1);
  auto reader = media::tape_reader::over(tape);
  while (auto event = *reader->next()) {
    if (!s.take(*event)) continue;
    visit_point(s, t, level);
    if (done()) return;
    s.leave_point();
  }
  visit_point(s, t, level);
}

void explorer::visit_point(scene& s, timeline& t, unsigned level) {
  const auto units = s.model->pending();
  std::vector<std::uint64_t> options;
  for (const std::uint32_t unit : units) options.push_back(s.model->options(unit));
  choices all(options, level == 0 ? settings_.bound : settings_.recovery_bound,
              base::mix(subject_.named_by().seed) + s.point);
  ++found_.epochs;
  found_.epochs_exhausted += all.exhaustive();
  if (level == 0) ++found_.points;
  path_[level].point = s.point;
  path_[level].chosen.assign(units.size(), 0);
  std::vector<std::uint64_t> next(units.size());
  const unsigned samples = level == 0 ? settings_.recovery_samples : random_.below(16) == 0;
  allowance left{samples, samples};
  for (std::uint64_t k = 0; k < all.count() && !done(); ++k) {
    all.select(k, next);
    auto& now = path_[level].chosen;
    for (std::size_t i = 0; i < units.size(); ++i)
      if (next[i] != now[i]) s.choose(units[i], now[i] = next[i]);
    visit_state(s, t, level, left);
  }
  for (const std::uint32_t unit : units) s.choose(unit, 0);
  if (!done() && std::memcmp(s.work.data(), s.settled.data(), s.work.size()) != 0)
    report("something was stored to the pool past the medium");
  tell_progress();
}

void explorer::visit_state(scene& s, timeline& t, unsigned level, allowance& left) {
  ++found_.states;
  const judge::answer a = s.judging.ask(t);
  found_.distinct += a.new_state;
  if (!check_answer(s, t, s.judging.of(a)) || s.judging.of(a).lost) return;
  if (level + 1 >= settings_.recovery_depth || !left.take(a)) return;
  descend(s, t, static_cast<std::uint64_t>(t.find(s.judging.of(a).digest)), level);
  path_.resize(level + 1);
}

bool explorer::check_answer(scene& s, timeline& t, const verdict& v) {
  std::string wrong = s.complaint(v, t);
  found_.refused += v.lost && wrong.empty();
  found_.fell_back += v.fell_back && path_.size() == 1;
  if (wrong.empty()) return true;
  report(std::move(wrong));
  return false;
}

// Records the recovery of the state in s.work, and what is done next, and explores that.
void explorer::descend(scene& s, timeline& t, std::uint64_t position, unsigned level) {
  hashed_image start = subject_.blank(), image = subject_.blank();
  start.assign(s.work);
  image.assign(s.work);
  const std::size_t count = std::min<std::size_t>(settings_.recovery_operations, subject_.named_by().further);
  timeline after = subject_.branch(t, position, count);
  ++found_.recoveries;
  path_.push_back({0, {}, count});
  const auto tape = subject_.record_recovery(image, after, position);
  if (tape) return explore_tape(*tape, start, after, position, level + 1);
  path_.pop_back();
  report("using the recovered pool fails: " + tape.error().message);
}

void explorer::report(std::string what) {
  found_.violations.push_back({std::move(what), line()});
}

void explorer::tell_progress() {
  if (settings_.cancelled && settings_.cancelled()) found_.cancelled = true;
  if (!settings_.progress || clock::now() - told_ < std::chrono::milliseconds(200)) return;
  told_ = clock::now();
  found_.seconds = std::chrono::duration<double>(told_ - begun_).count();
  found_.recovered = experience_.verdicts.size();
  settings_.progress(found_);
}

}  // namespace

result<findings> explore(const plan& p, const settings& s) {
  auto made = subject::make(p);
  if (!made) return std::unexpected(made.error());
  findings found;
  auto running = std::make_unique<explorer>(**made, s, found);
  const planted_bugs planted(p);
  const int signal = trapped([&] { running->run(); }, patience_for(p.pool_size));
  if (signal != 0) {
    found.violations.push_back({fmt::format("{} (signal {})", meaning_of(signal), signal), running->line()});
    (*made)->abandon();
    (void)running.release();
    (void)made->release();
  }
  return found;
}

}  // namespace stele::explore
