// Zipf-distributed ranks by the constant-time generator of Gray et al. ("Quickly Generating
// Billion-Record Synthetic Databases", SIGMOD 1994), as in YCSB. Rank i of n has probability
// proportional to 1 / (i + 1)^theta.
#pragma once

#include <base/rng.h>

#include <cstdint>

namespace stele::workloads {

class zipf {
 public:
  // O(n). 0 < theta < 1, n > 0.
  zipf(std::uint64_t n, double theta);

  // A rank in [0, n); 0 is the most frequent. Thread-safe for distinct generators.
  std::uint64_t draw(base::rng& random) const;

 private:
  std::uint64_t n_;
  double alpha_;
  double zeta_n_;
  double eta_;
  double second_;  // where rank 1 ends, in units of 1 / zeta_n
};

}  // namespace stele::workloads
