// One pool for the checks, two more runs for the comparison of their tapes.
#include <base/rng.h>
#include <explore/trap.h>
#include <fmt/format.h>
#include <testing/trial.h>
#include <testing/user_workload.h>
#include <tx/runtime.h>

#include <base/check.h>

namespace stele::testing {

using base::fail;
using explore::plan;
using explore::subject;
using workloads::operation;

namespace {

std::unexpected<error> problem(std::string sentence) {
  return fail(errc::invalid_argument, std::move(sentence));
}

class trial {
 public:
  explicit trial(const plan& p) : plan_(p) {}

  result<> run();
  std::uint64_t not_fitting() const noexcept { return not_fitting_; }
  // Where it is, for the sentence about a signal.
  const std::string& place() const noexcept { return place_; }

 private:
  result<> make();
  result<> draw();
  result<> perform();
  result<> perform_one(std::uint64_t number, std::uint64_t& model);
  result<> check(std::uint64_t model);
  result<> refuses(std::uint64_t model);
  result<> find_leaks();
  result<> repeats();
  user_workload& workload() { return static_cast<user_workload&>(subject_->workload()); }

  const plan& plan_;
  std::unique_ptr<subject> subject_;
  std::vector<operation> operations_;
  std::uint64_t not_fitting_ = 0;
  std::string place_ = "set_up()";
};

result<> trial::run() {
  if (auto made = make(); !made) return made;
  if (auto drawn = draw(); !drawn) return drawn;
  const auto tape = subject_->record_with(false, [&](explore::hashed_image&) { return perform(); });
  if (!tape) return std::unexpected(tape.error());
  if (not_fitting_ == operations_.size())
    return problem(
        fmt::format("none of the {} operations fits into a pool of {} bytes: give a "
                    "larger options::pool_size",
                    not_fitting_, plan_.pool_size));
  return repeats();
}

result<> trial::make() {
  auto made = subject::make(plan_);
  if (!made && made.error().code == errc::full)
    return problem(
        fmt::format("set_up() does not fit into a pool of {} bytes: give a larger "
                    "options::pool_size ({})",
                    plan_.pool_size, made.error().message));
  if (!made) return std::unexpected(made.error());
  subject_ = std::move(*made);
  return {};
}

// The operations of the recorded run, and whether draw() gives the same ones
// again.
result<> trial::draw() {
  base::rng random(plan_.seed);
  for (std::uint64_t i = 0; i < plan_.operations; ++i)
    operations_.push_back(workload().draw(random));
  std::uint64_t model = workload().of().first_model();
  for (std::uint64_t i = 0; i < plan_.operations; ++i) {
    explore::reset_watchdog();
    place_ = fmt::format("operation {} on the model", i + 1);
    const auto same = call_user("draw() or apply() of the model", [&]() -> result<bool> {
      const bool repeats = workload().draws_the_same(operations_[i].a, model);
      if (repeats) model = workload().model_after(model, operations_[i].a);
      return repeats;
    });
    if (!same) return fail(same.error().code, fmt::format("{}: {}", place_, same.error().message));
    if (!*same)
      return problem(
          fmt::format("draw() gives another operation {} when it is "
                      "called again: it must depend on nothing "
                      "but the random numbers that it is given",
                      i + 1));
  }
  return {};
}

result<> trial::perform() {
  std::uint64_t model = workload().of().first_model();
  place_ = "the structure at the beginning, before any operation";
  if (auto right = check(model); !right) return right;
  for (std::uint64_t i = 0; i < operations_.size(); ++i)
    if (auto right = perform_one(i, model); !right) return right;
  return workload().core().close();
}

result<> trial::perform_one(std::uint64_t number, std::uint64_t& model) {
  place_ = workload().describe(number + 1, operations_[number]);
  explore::reset_watchdog();
  const std::uint64_t before = model;
  const auto done = subject_->apply(operations_[number], number, 0, false);
  if (!done && done.error().code != errc::full)
    return problem(fmt::format("{} fails: {}", place_, done.error().message));
  not_fitting_ += !done;
  if (done) model = workload().model_after(model, operations_[number].a);
  place_ = "the structure after " + place_;
  if (auto right = check(model); !right) return right;
  if (model != before)
    if (auto refused = refuses(before); !refused) return refused;
  return find_leaks();
}

result<> trial::check(std::uint64_t model) {
  const auto wrong = call_user("check()", [&] { return workload().of().check(model); });
  if (!wrong) return problem(fmt::format("{}: {}", place_, wrong.error().message));
  return wrong->empty()
             ? result<>{}
             : problem(fmt::format("{} is not as the model; check() says: {}", place_, *wrong));
}

// A check() that overlooks what an operation changed would find no crash wrong.
result<> trial::refuses(std::uint64_t model) {
  const auto wrong = call_user("check()", [&] { return workload().of().check(model); });
  if (!wrong) return problem(fmt::format("{}: {}", place_, wrong.error().message));
  return wrong->empty() ? problem(fmt::format("check() does not see what was changed: it "
                                              "also accepts {} against "
                                              "the model before that operation; compare "
                                              "all that the model holds",
                                              place_))
                        : result<>{};
}

result<> trial::find_leaks() {
  const auto found = call_user("visit_blocks()", [&] { return workload().of().leaks(); });
  if (!found) return problem(fmt::format("{}: {}", place_, found.error().message));
  if (!found->leaked.empty())
    return problem(
        fmt::format("{} has leaked a block of {} bytes: it is in "
                    "use, and visit_blocks() does not name it",
                    place_, found->leaked[0].size_bytes));
  if (!found->dangling.empty())
    return problem(fmt::format(
        "{} reaches an object that has been destroyed: visit_blocks() names it", place_));
  return {};
}

// The second run is at other addresses.
result<> trial::repeats() {
  place_ = "the recorded run";
  explore::reset_watchdog();
  explore::run_history first, second;
  const auto one = subject_->record(first);
  if (!one) return std::unexpected(one.error());
  const explore::hashed_image elsewhere = subject_->empty_image();
  const auto other = subject_->record(second);
  if (!other) return std::unexpected(other.error());
  if (*one == *other) return {};
  return problem(
      "two runs of the same operations store different bytes: the "
      "structure depends on something "
      "besides them (random numbers of its own, time, the address "
      "of an object), so no failure "
      "could be repeated");
}

}  // namespace

trial_outcome try_without_crash(const plan& p) {
  auto running = std::make_unique<trial>(p);
  result<> done;
  const int signal = explore::run_trapped(
      [&] {
        explore::reset_watchdog();
        done = call_user("the structure", [&] { return running->run(); });
      },
      explore::timeout_for(p.pool_size));
  if (signal != 0) {
    trial_outcome out{fmt::format("{}: {} (signal {})", running->place(),
                                  explore::describe_signal(signal), signal)};
    (void)running.release();  // what the signal interrupted cannot be destroyed
    return out;
  }
  return {done ? "" : done.error().message, running->not_fitting()};
}

}  // namespace stele::testing
