// The run of a user's structure without a crash: what is wrong there is said
// first, because an exploration would only find it in a roundabout way.
#pragma once

#include <explore/subject.h>

#include <string>

namespace stele::testing {

struct trial_outcome {
  std::string problem;  // empty: the run may be explored
  std::uint64_t not_fitting = 0;
};
// Runs the operations of `p`, whose workload is a user_workload. Checks that
// draw() repeats its operations and that the run repeats its stores; after each
// operation, that check() accepts the model and refuses the one before, and
// that no block is leaked. A signal becomes a problem; then the process only
// reports it.
trial_outcome try_without_crash(const explore::plan& p);

}  // namespace stele::testing
