// Which crash states of a crash point are looked at: all of them when they are few, else a seeded
// selection.
//
// The selection begins with nothing kept and everything kept. Then two kinds take turns: each line
// and each two neighbours alone kept and alone lost, and each program-order prefix of lines; and
// random ones, where most often one line is torn between whole or missing ones (a prefix, a suffix
// or all but a piece is kept), since that is where protocols break.
#pragma once

#include <base/rng.h>

#include <cstdint>
#include <span>
#include <vector>

namespace stele::explore {

class state_sampler {
 public:
  // options[i]: how many contents line i may have.
  state_sampler(std::span<const std::uint64_t> options, std::uint64_t bound, std::uint64_t seed);

  bool exhaustive() const noexcept { return exhaustive_; }
  std::uint64_t count() const noexcept { return count_; }
  // The k-th choice, an option for each line; k counts up from 0.
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
