// Findings as JSON and as sentences. Scripts rely on the JSON keys.
#pragma once

#include <explore/replay.h>
#include <nlohmann/json.hpp>

namespace stele::explore {

nlohmann::json json_of(const std::vector<violation>& all);
nlohmann::json json_of(const findings& f);
// Of crashes behind a cache: {"crashes", "distinct_states", "violations", "crashes_per_s", ...}.
nlohmann::json json_of_crashes(const findings& f);
findings findings_of(const nlohmann::json& j);
// From the key "violations" of any findings.
std::vector<violation> violations_of(const nlohmann::json& j);

// What a child process reports, as JSON; {"error": sentence} becomes an error. `found` is no object
// if the child died; `death` says how.
struct child_report {
  nlohmann::json found;
  std::string death;
};
[[nodiscard]] result<child_report> report_of_child(const std::function<nlohmann::json()>& run);

// What came of a replay, for people and as JSON.
std::string text_of(const replay_result& r);
nlohmann::json json_of(const replay_result& r);

// One line: "1234567 states (1000 distinct, ...".
std::string summary_of(const findings& f);
std::string crash_summary_of(const findings& f);

}  // namespace stele::explore
