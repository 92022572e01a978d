// What measure_marks puts together.
#pragma once

#include <bench/marks.h>

namespace stele::bench {

using marks_part = result<> (*)(const marks_options& o, std::vector<figure>& figures);

// The default mechanism, and those after "Blurred Persistence" (2016).
const std::vector<marks_part>& default_marks();
// The mechanism log_structured.
const std::vector<marks_part>& lsnvmm_marks();

}  // namespace stele::bench
