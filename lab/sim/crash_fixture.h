// For tests of power failures: what each report must say.
#pragma once

#include <gtest/gtest.h>
#include <sim/crash.h>

#include <string>

namespace stele::sim {

// No crash left a state that is not allowed, and all transactions were committed.
inline void expect_allowed(const std::string& of, const crash_report& r) {
  for (const crash_violation& v : r.violations)
    ADD_FAILURE() << of << ", at " << v.at << " ps: " << v.what;
  EXPECT_EQ(r.done.transactions, r.transactions) << of << ": all of them are committed";
}

}  // namespace stele::sim
