// The replay does the work; here its history is put into the user's words.
#include <fmt/format.h>
#include <testing/failure_text.h>

#include <algorithm>

namespace stele::testing {

using explore::replay_result;
using explore::run_crash;

namespace {

// The lines about crashes; those about lines and stores are indented.
std::string crashes_in(const std::string& explanation) {
  std::string text;
  for (std::size_t at = 0, end; at < explanation.size(); at = end + 1) {
    end = std::min(explanation.find('\n', at), explanation.size());
    if (explanation[at] != ' ') text += "  " + explanation.substr(at, end - at) + '\n';
  }
  return text;
}

// The states that were allowed, and what check() says against each.
std::string expected_states(const replay_result& r, const user_workload& w, const mismatch& last) {
  std::string text;
  const auto& digests = r.history.digests;
  for (std::uint64_t p = r.acknowledged; p <= r.invoked && p < digests.size(); ++p) {
    const std::string state =
        p == 0 ? "at the beginning" : "after " + w.describe(p, r.history.operations[p - 1]);
    text += fmt::format("  expected: the state {}", state);
    if (digests[p] < last.said.size() && !last.said[digests[p]].empty())
      text += fmt::format("; against it check() says: {}", last.said[digests[p]]);
    text += '\n';
  }
  return text;
}

}  // namespace

result<repeated_crash> repeat_crash(run_crash line, const std::string& name,
                                    const detail::structure_maker& make, unsigned per_transaction) {
  const auto last = std::make_shared<mismatch>();
  line.run_plan.make_workload = [&] {
    return std::make_unique<user_workload>(name, make(), per_transaction, last);
  };
  const auto seen = explore::replay(line);
  if (!seen) return std::unexpected(seen.error());
  repeated_crash out{seen->problem, crashes_in(seen->explanation), seen->explanation};
  if (out.problem.empty()) return out;
  const user_workload words(name, make(), per_transaction);
  if (!last->of_expected.empty())
    out.where += fmt::format("  check() says: {}\n", last->of_expected);
  else if (!last->said.empty() || out.problem.starts_with("the state after"))
    out.where += expected_states(*seen, words, *last);
  return out;
}

}  // namespace stele::testing
