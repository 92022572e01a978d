// Which crash states of a crash point are explored: all when they are few, else a seeded sample.
//
// The sample begins with nothing kept and everything kept. Then fixed and random choices alternate.
// The fixed ones: each line and each pair of neighbours alone kept and alone lost, and each
// program-order prefix of lines. The random ones mostly tear one line between lines that are whole
// or missing (a prefix, a suffix or all but an interval is kept), because protocols break there.
#pragma once

#include <base/rng.h>

#include <cstdint>
#include <span>
#include <vector>

namespace stele::explore {

class state_sampler {
 public:
  // options[i]: how many contents line i may have. `bound`: states at most.
  state_sampler(std::span<const std::uint64_t> options, std::uint64_t bound, std::uint64_t seed);

  bool exhaustive() const noexcept { return exhaustive_; }
  std::uint64_t count() const noexcept { return count_; }
  // The k-th choice: an option for each line. Call with k = 0, 1, 2, ...
  void select(std::uint64_t k, std::span<std::uint64_t> chosen);

 private:
  void select_fixed(std::uint64_t k, std::span<std::uint64_t> chosen) const;
  void select_random(std::span<std::uint64_t> chosen);
  std::uint64_t any_option(std::size_t line) { return random_.below(options_[line]); }
  std::uint64_t last_option(std::size_t line) const { return options_[line] - 1; }

  std::span<const std::uint64_t> options_;
  bool exhaustive_ = true;
  std::uint64_t count_ = 1;
  base::rng random_;
};

}  // namespace stele::explore
