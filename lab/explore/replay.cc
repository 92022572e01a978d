// Goes to one crash after another.
#include <explore/crash_runs.h>
#include <explore/explored_tape.h>
#include <explore/replay.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include <base/check.h>

namespace stele::explore {

using base::fail;

line_fields fields_of(run_crash& c) {
  return joined(
      {fields_of(c.run_plan),
       fields_of_files(c.run_plan),
       {{"at", &c.crashes, "", {}, crash_form}, {"recovery-ops", &c.recovery_operations}}});
}

namespace {

// Goes to one crash after another and explains each.
class replayer {
 public:
  explicit replayer(subject& s) : subject_(s) {}
  result<> run_one(const run_crash& l, replay_result& r);

 private:
  result<> go_to(std::span<const std::byte> tape, const hashed_image& start, std::uint64_t position,
                 const crash& c);
  result<> choose(const crash& c);
  void explain(const crash& c);

  subject& subject_;
  verdict_cache verdict_cache_;
  std::unique_ptr<explored_tape> tape_;
  std::string explanation_;
};

result<> replayer::go_to(std::span<const std::byte> tape, const hashed_image& start,
                         std::uint64_t position, const crash& c) {
  tape_ = std::make_unique<explored_tape>(subject_, verdict_cache_);
  tape_->begin(start, position);
  auto reader = media::tape_reader::from_memory(tape);
  while (auto event = *reader->next()) {
    if (!tape_->take(*event)) continue;
    if (tape_->point == c.point) {
      explanation_ += fmt::format(
          "crash before event '{}' of thread {}, with {} operations acknowledged and {} invoked\n",
          media::name_of(event->op), event->thread, tape_->acknowledged, tape_->invoked);
      return choose(c);
    }
    tape_->leave_point();
  }
  if (tape_->point != c.point)
    return fail(
        errc::invalid_argument,
        fmt::format("there is no crash point {}; the last one is {}", c.point, tape_->point));
  explanation_ += "crash at the end\n";
  return choose(c);
}

result<> replayer::choose(const crash& c) {
  const auto units = tape_->model->pending();
  if (c.chosen.size() != units.size())
    return fail(errc::invalid_argument,
                fmt::format("{} {}s are pending at crash point {}, the choice names {}",
                            units.size(), tape_->model->unit_name(), c.point, c.chosen.size()));
  for (std::size_t i = 0; i < units.size(); ++i) {
    if (c.chosen[i] >= tape_->model->options(units[i]))
      return fail(errc::invalid_argument,
                  fmt::format("{} {} has {} contents, not {}", tape_->model->unit_name(), i,
                              tape_->model->options(units[i]), c.chosen[i]));
    tape_->choose(units[i], c.chosen[i]);
  }
  explain(c);
  return {};
}

void replayer::explain(const crash& c) {
  const auto units = tape_->model->pending();
  for (std::size_t i = 0; i < units.size(); ++i) {
    const auto store_outcomes = tape_->model->store_outcomes(units[i], c.chosen[i]);
    const auto kept = std::count_if(store_outcomes.begin(), store_outcomes.end(),
                                    [](const auto& f) { return f.kept; });
    explanation_ +=
        fmt::format("  {} {:#x}: {} of {} stores reached media\n", tape_->model->unit_name(),
                    units[i] * tape_->model->unit_size(), kept, store_outcomes.size());
    for (const auto& f : store_outcomes)
      explanation_ += fmt::format("    {} {} {:#x} = {:#018x}\n", f.kept ? "kept" : "LOST",
                                  f.streamed ? "stream" : "store ", f.offset, f.bits);
  }
}

result<> replayer::run_one(const run_crash& l, replay_result& r) {
  run_history t;
  auto tape = subject_.record(t);
  hashed_image start = subject_.empty_image();
  start.assign(subject_.initial_image());
  if (!tape) {
    r.problem = tape.error().message;
    return {};
  }
  std::uint64_t position = 0;
  for (std::size_t i = 0; i < l.crashes.size(); ++i) {
    auto there = go_to(*tape, start, position, l.crashes[i]);
    r.explanation = explanation_;
    r.acknowledged = tape_->acknowledged, r.invoked = tape_->invoked;
    if (!there) return there;
    const verdict& v = tape_->image_judge.verdict_of(tape_->image_judge.evaluate(t));
    r.problem = tape_->violation_of(v, t);
    if (v.lost && r.problem.empty()) r.refused = v.problem;
    if (!r.problem.empty() || v.lost || i + 1 == l.crashes.size()) break;
    position = static_cast<std::uint64_t>(t.find(v.digest));
    start.assign(tape_->work);
    hashed_image image = subject_.empty_image();
    image.assign(start);
    run_history after = subject_.branch(t, position, l.recovery_operations);
    tape = subject_.record_recovery(image, after, position);
    if (!tape) {
      r.problem = "using the recovered pool fails: " + tape.error().message;
      break;
    }
    t = std::move(after);
  }
  r.history = std::move(t);
  return {};
}

}  // namespace

result<replay_result> replay(const run_crash& l) {
  return replay_crash<replayer>(l);
}

}  // namespace stele::explore
