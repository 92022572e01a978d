// Findings as JSON and as sentences. Scripts rely on the JSON keys.
#pragma once

#include <explore/explorer.h>
#include <nlohmann/json_fwd.hpp>

namespace stele::explore {

nlohmann::json json_of(const std::vector<violation>& all);
nlohmann::json json_of(const findings& f);
// Of crashes behind a cache: {"crashes", "distinct_states", "violations", "crashes_per_s", ...}.
nlohmann::json json_of_crashes(const findings& f);
findings findings_of(const nlohmann::json& j);
// From the key "violations" of any findings.
std::vector<violation> violations_of(const nlohmann::json& j);

// One line: "1234567 states (1000 distinct, ...".
std::string summary_of(const findings& f);
std::string crash_summary_of(const findings& f);

}  // namespace stele::explore
