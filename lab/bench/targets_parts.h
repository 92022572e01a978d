// What measure_targets puts together.
#pragma once

#include <bench/compare.h>
#include <bench/targets.h>

namespace stele::bench {

using target_group = result<> (*)(const target_options& o,
                                  std::vector<performance_target>& targets);

// Transactions a second of the mechanism default over those of a rival, whose row may say behind
// its name what it does not protect. 0 when the build has no such rival: no performance_target is
// met then.
double over_rival(const report& r, std::string_view rival);

// The default mechanism, and those after "Blurred Persistence" (2016).
const std::vector<target_group>& default_targets();
// The mechanism log_structured.
const std::vector<target_group>& lsnvmm_targets();

}  // namespace stele::bench
