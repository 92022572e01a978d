// Findings as JSON (the keys that scripts rely on are in DESIGN.md, section 9) and as sentences.
#pragma once

#include <explore/explorer.h>
#include <nlohmann/json_fwd.hpp>

namespace stele::explore {

nlohmann::json json_of(const std::vector<violation>& all);
nlohmann::json json_of(const findings& f);
// Of crashes behind a cache: {"crashes", "distinct_states", "violations", "crashes_per_s", ...}.
nlohmann::json json_of_crashes(const findings& f);
findings findings_of(const nlohmann::json& j);
// Of the key "violations" of any findings.
std::vector<violation> violations_of(const nlohmann::json& j);

// "1,234,567 states (98 % distinct) ..." in one line.
std::string summary_of(const findings& f);
std::string crash_summary_of(const findings& f);

}  // namespace stele::explore
