// One mechanism after another: the run without a crash, then the explorer, in a
// child process; then each failure once more in a child of its own, for its
// words.
#include <cxxabi.h>
#include <explore/child_output.h>
#include <explore/explorer.h>
#include <explore/replay.h>
#include <fmt/format.h>
#include <testing/failure_text.h>
#include <testing/packed.h>
#include <testing/trial.h>
#include <testing/user_workload.h>
#include <tx/mechanism/catalog.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include <base/check.h>

namespace stele::testing {

using base::fail;
using explore::plan;
using explore::run_crash;

namespace {

std::unexpected<error> refuse(std::string sentence) {
  return fail(errc::invalid_argument, std::move(sentence));
}

result<> check_number(const char* name, std::uint64_t value, std::uint64_t least,
                      std::uint64_t most = ~std::uint64_t{0}) {
  if (value >= least && value <= most) return {};
  return refuse(most == ~std::uint64_t{0}
                    ? fmt::format("options::{} is {}: give at least {}", name, value, least)
                    : fmt::format("options::{} is {}: give a number from {} to {}", name, value,
                                  least, most));
}

result<> check_mechanisms(const std::vector<std::string>& names) {
  if (names.empty()) return refuse("options::mechanisms is empty: name one, as in {\"default\"}");
  for (const std::string& name : names) {
    if (name == "none")
      return refuse("the mechanism 'none' keeps nothing after a crash: choose another");
    if (const auto found = stele::detail::find_mechanism(name); !found)
      return std::unexpected(found.error());
  }
  return {};
}

result<> check_options(const options& how, bool in_own_transactions) {
  if (auto right = check_mechanisms(how.mechanisms); !right) return right;
  if (how.media != "memory" && how.media != "file")
    return refuse(fmt::format("options::media is '{}': choose memory or file", how.media));
  if (in_own_transactions && how.per_transaction != 1)
    return refuse(
        "options::per_transaction is of no use to a structure whose "
        "apply() runs its own "
        "transactions: leave it 1");
  struct {
    const char* name;
    std::uint64_t value, least, most;
  } const numbers[] = {{"operations", how.operations, 1, 1'000'000},
                       {"per_transaction", how.per_transaction, 1, 1'000'000},
                       {"threads", how.threads, 1, 64},
                       {"states", how.states, 1, ~std::uint64_t{0}},
                       {"recovery_depth", how.recovery_depth, 1, 16},
                       {"further_operations", how.further_operations, 0, 1'000'000},
                       {"most_failures", how.most_failures, 1, ~std::uint64_t{0}}};
  for (const auto& n : numbers)
    if (auto right = check_number(n.name, n.value, n.least, n.most); !right) return right;
  return {};
}

// Explores one structure, or replays one of its lines.
class session {
 public:
  session(std::string name, const detail::structure_maker& make, const options& how)
      : name_(std::move(name)), make_(make), how_(how) {
    // Two tests of a structure that differ here have lines of their own.
    if (how.per_transaction > 1) name_ += fmt::format("*{}", how.per_transaction);
    found_.structure = name_;
  }

  report run();

 private:
  plan plan_for(const std::string& mechanism) const;
  explore::settings settings() const;
  report explore_here(const std::string& mechanism) const;
  report replay_here(const run_crash& line) const;
  result<> in_child(const plan& p, const std::function<report()>& run);
  std::string words_of(const crash_failure& f) const;
  result<> replay(const std::string& line);
  void add_failure(std::string what, std::string line = "") {
    found_.failures.push_back({std::move(what), std::move(line)});
  }

  std::string name_;
  const detail::structure_maker& make_;
  const options& how_;
  report found_;
};

plan session::plan_for(const std::string& mechanism) const {
  plan p;
  p.mechanism = mechanism;
  p.workload = name_;
  p.make_workload = [name = name_, make = make_, n = how_.per_transaction] {
    return std::make_unique<user_workload>(name, make(), n);
  };
  p.media = how_.media;
  p.pool_size = how_.pool_size;
  p.operations = how_.operations;
  p.threads = how_.threads;
  p.log_count = std::max<std::size_t>(p.log_count, how_.threads);
  p.seed = how_.seed;
  p.further_operations = how_.further_operations;
  return p;
}

explore::settings session::settings() const {
  explore::settings s;
  s.bound = how_.states;
  s.recovery_depth = how_.recovery_depth;
  s.max_violations = how_.most_failures;
  return s;
}

// In the child process.
report session::explore_here(const std::string& mechanism) const {
  const plan p = plan_for(mechanism);
  report r;
  const trial_outcome trial = try_without_crash(p);
  r.not_fitting = trial.not_fitting;
  if (!trial.problem.empty()) {
    r.failures.push_back(
        {"without any crash: " + trial.problem, format_line(run_crash{.run_plan = p})});
    return r;
  }
  const auto found = explore::explore(p, settings());
  if (!found) {
    r.failures.push_back({found.error().message, ""});
    return r;
  }
  r.states = found->states, r.distinct_states = found->distinct;
  r.crash_points = found->epochs, r.exhausted_points = found->epochs_exhausted;
  r.recoveries = found->recoveries, r.refused = found->refused;
  r.seconds = found->seconds;
  for (const explore::violation& v : found->violations) r.failures.push_back({v.what, v.line});
  return r;
}

// Adds what the child reports.
result<> session::in_child(const plan& p, const std::function<report()>& run) {
  const auto out = explore::output_of_child([&] { return packed(run()); });
  if (!out) return std::unexpected(out.error());
  if (!out->death.empty()) {
    add_failure(fmt::format("under {}: {}", p.mechanism, out->death),
                format_line(run_crash{.run_plan = p}));
    return {};
  }
  const report r = unpacked(out->text);
  found_.states += r.states, found_.distinct_states += r.distinct_states;
  found_.crash_points += r.crash_points, found_.exhausted_points += r.exhausted_points;
  found_.recoveries += r.recoveries, found_.refused += r.refused;
  found_.not_fitting += r.not_fitting, found_.seconds += r.seconds;
  found_.replayed += r.replayed;
  for (const crash_failure& f : r.failures)
    add_failure(fmt::format("under {}: {}", p.mechanism, words_of(f)), f.replay);
  return {};
}

// The failure with its crash and what was expected there.
std::string session::words_of(const crash_failure& f) const {
  auto line = explore::parse_line<run_crash>(f.replay);
  if (!line || line->crashes.empty()) return f.what;
  const auto out = explore::output_of_child([&] {
    const auto again = repeat_crash(*line, name_, make_, how_.per_transaction);
    if (!again) return "\n  " + again.error().message;
    return again->problem.empty() ? std::string(
                                        "\n  repeated alone it is as it should be: the "
                                        "structure keeps something in ordinary memory")
                                  : '\n' + again->where;
  });
  std::string text = f.what + (out ? out->text : "");
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

// In the child process. The words of a failure are added by in_child().
report session::replay_here(const run_crash& line) const {
  report r;
  const std::string text = format_line(line);
  r.replayed = text + '\n';
  if (line.crashes.empty()) {
    const trial_outcome trial = try_without_crash(line.run_plan);
    if (!trial.problem.empty()) r.failures.push_back({"without any crash: " + trial.problem, text});
    return r;
  }
  const auto again = repeat_crash(line, name_, make_, how_.per_transaction);
  if (!again) {
    r.failures.push_back({again.error().message, ""});
    return r;
  }
  r.replayed += again->stores;
  if (!again->problem.empty()) r.failures.push_back({again->problem, text});
  return r;
}

result<> session::replay(const std::string& text) {
  auto line = explore::parse_line<run_crash>(text);
  if (!line) return std::unexpected(line.error());
  if (line->run_plan.workload != name_)
    return refuse(fmt::format("the replay line is of the structure '{}', and this one is '{}'",
                              line->run_plan.workload, name_));
  plan& p = line->run_plan;
  p.make_workload = plan_for(p.mechanism).make_workload;
  return in_child(p, [&] { return replay_here(*line); });
}

report session::run() {
  const char* const wanted = std::getenv("STELE_REPLAY");
  std::string line = how_.replay;
  if (line.empty() && wanted != nullptr) {
    const auto parsed = explore::parse_line<run_crash>(wanted);
    if (!parsed) {
      add_failure("STELE_REPLAY: " + parsed.error().message);
      return found_;
    }
    if (parsed->run_plan.workload == name_) line = wanted;
  }
  result<> done = line.empty() ? check_options(how_, make_()->in_own_transactions()) : replay(line);
  if (line.empty() && done)
    for (const std::string& mechanism : how_.mechanisms)
      if (done) done = in_child(plan_for(mechanism), [&] { return explore_here(mechanism); });
  if (!done) add_failure(done.error().message);
  return std::move(found_);
}

}  // namespace

std::vector<std::string> mechanisms() {
  std::vector<std::string> names;
  for (const auto& m : stele::detail::mechanisms())
    if (m.name != "none") names.push_back(m.name);
  return names;
}

namespace detail {

std::string word_of(const char* type_name) {
  if (type_name == nullptr) return "structure";  // a program without type information
  int status = 0;
  char* const plain = abi::__cxa_demangle(type_name, nullptr, nullptr, &status);
  std::string word = status == 0 ? plain : type_name;
  std::free(plain);
  const std::size_t template_arguments = word.find('<');
  const std::size_t scope = word.rfind("::", template_arguments);
  if (scope != std::string::npos) word.erase(0, scope + 2);
  std::ranges::replace_if(
      word, [](unsigned char c) { return std::isspace(c) != 0 || c == '/' || c == '\''; }, '_');
  return word;
}

report explore(std::string name, const structure_maker& make, const options& how) try {
  const bool one_word = !name.empty() && std::ranges::none_of(name, [](unsigned char c) {
    return std::isspace(c) != 0 || c == '/' || c == '\'' || c == '*';
  });
  if (!one_word) {
    report r{.structure = name};
    r.failures.push_back(
        {"the name of a structure is one word without /, * and quotes: '" + name + "' is not", ""});
    return r;
  }
  return session(std::move(name), make, how).run();
} catch (const std::exception& e) {
  report r{.structure = std::move(name)};
  r.failures.push_back({fmt::format("exploring throws: {}", e.what()), ""});
  return r;
}

}  // namespace detail
}  // namespace stele::testing
