// Writes findings, and reads them from the process that made them.
#include <explore/report.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace stele::explore {

nlohmann::json json_of(const std::vector<violation>& all) {
  nlohmann::json violations = nlohmann::json::array();
  for (const violation& v : all) violations.push_back({{"what", v.what}, {"line", v.line}});
  return violations;
}

std::vector<violation> violations_of(const nlohmann::json& j) {
  std::vector<violation> all;
  for (const auto& v : j.at("violations")) all.push_back({v.at("what"), v.at("line")});
  return all;
}

std::string text_of(const replay_result& r) {
  return r.explanation + (!r.refused.empty()  ? "refused, as it may be: " + r.refused
                          : r.problem.empty() ? "recovered as it should be"
                                              : "VIOLATION: " + r.problem);
}

nlohmann::json json_of(const replay_result& r) {
  return {{"story", r.explanation}, {"problem", r.problem}};
}

nlohmann::json json_of(const findings& f) {
  return {{"states", f.states},
          {"distinct_states", f.distinct},
          {"recovered_states", f.recovered},
          {"epochs", f.epochs},
          {"epochs_exhausted", f.epochs_exhausted},
          {"recoveries_explored", f.recoveries},
          {"refused", f.refused},
          {"fell_back", f.fell_back},
          {"inconsistent_lines", f.inconsistent},
          {"detected_lines", f.detected},
          {"uncorrectable_lines", f.uncorrectable},
          {"violations", json_of(f.violations)},
          {"states_per_s", f.states_per_s()},
          {"seconds", f.seconds},
          {"cancelled", f.cancelled}};
}

nlohmann::json json_of_crashes(const findings& f) {
  return {{"crashes", f.states},
          {"distinct_states", f.distinct},
          {"recovered_states", f.recovered},
          {"recoveries_crashed", f.recoveries},
          {"refused", f.refused},
          {"fell_back", f.fell_back},
          {"inconsistent_lines", f.inconsistent},
          {"detected_lines", f.detected},
          {"uncorrectable_lines", f.uncorrectable},
          {"violations", json_of(f.violations)},
          {"crashes_per_s", f.states_per_s()},
          {"seconds", f.seconds},
          {"cancelled", f.cancelled}};
}

findings findings_of(const nlohmann::json& j) {
  findings f;
  f.states = j.at("states");
  f.distinct = j.at("distinct_states");
  f.recovered = j.at("recovered_states");
  f.epochs = j.at("epochs");
  f.epochs_exhausted = j.at("epochs_exhausted");
  f.recoveries = j.at("recoveries_explored");
  f.refused = j.at("refused");
  f.fell_back = j.at("fell_back");
  f.inconsistent = j.at("inconsistent_lines"), f.detected = j.at("detected_lines"),
  f.uncorrectable = j.at("uncorrectable_lines");
  f.seconds = j.at("seconds");
  f.cancelled = j.at("cancelled");
  f.violations = violations_of(j);
  return f;
}

namespace {
std::string refused_clause(const findings& f) {
  std::string text = f.refused == 0 ? "" : fmt::format("{} refused for what was lost, ", f.refused);
  if (f.fell_back != 0) text += fmt::format("{} went back to a checkpoint, ", f.fell_back);
  return text;
}
std::string skipped_clause(const findings& f) {
  if (f.inconsistent == 0 && f.detected == 0) return "";
  return fmt::format(
      "skipped lines that the cache still had: {}; found stale by checksums: {}, of them not to be "
      "restored: {}; ",
      f.inconsistent, f.detected, f.uncorrectable);
}
}  // namespace

std::string summary_of(const findings& f) {
  const double exhausted = f.epochs == 0 ? 0
                                         : 100.0 * static_cast<double>(f.epochs_exhausted) /
                                               static_cast<double>(f.epochs);
  return fmt::format(
      "{} states ({} distinct, {} after recovery) at {} crash points, {:.0f} % of them exhausted; "
      "{}{} recoveries explored in "
      "turn; {:.0f} states/s; {} violations",
      f.states, f.distinct, f.recovered, f.epochs, exhausted, refused_clause(f), f.recoveries,
      f.states_per_s(), f.violations.size());
}

std::string crash_summary_of(const findings& f) {
  return fmt::format(
      "{} crashes ({} distinct, {} after recovery), {}{} recoveries crashed in turn; {}{:.0f} "
      "crashes/s; {} violations",
      f.states, f.distinct, f.recovered, refused_clause(f), f.recoveries, skipped_clause(f),
      f.states_per_s(), f.violations.size());
}

}  // namespace stele::explore
