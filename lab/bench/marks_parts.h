// What measure_marks puts together.
#pragma once

#include <bench/compare.h>
#include <bench/marks.h>

namespace stele::bench {

using marks_part = result<> (*)(const marks_options& o, std::vector<figure>& figures);

// Transactions a second of the mechanism default over those of a rival, whose row may say behind its name what it does not protect. 0 when the
// build has no such rival: no figure is met then.
double over_rival(const report& r, std::string_view rival);

// The default mechanism, and those after "Blurred Persistence" (2016).
const std::vector<marks_part>& default_marks();
// The mechanism log_structured.
const std::vector<marks_part>& lsnvmm_marks();

}  // namespace stele::bench
