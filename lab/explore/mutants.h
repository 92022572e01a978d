// The mutation score: plants each bug in turn and checks whether the explorer finds it.
#pragma once

#include <explore/explorer.h>
#include <explore/mutant_table.h>

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace stele::explore {

// Where a mutant must be found: in each target. A target with several mechanisms shares one part,
// and one of them must find it.
struct mutant_target {
  std::string name;
  std::vector<std::string> mechanisms;
};
// `of` is that member of the mutant's entry.
std::vector<mutant_target> targets_of(std::string_view of);

// The pools, or the length of a run, without which a mutant's code hardly ever runs. Runs on pools
// with block checksums, a shared log, a file, an earlier version or runs in block logs are for
// those mutants alone.
struct pool_needs {
  bool checkpoints, block_checksums, large_slabs, shared_log, file, earlier_version, named_stores,
      redis, sqlite, long_run, runs;
};
pool_needs needs_of(base::mutant m) noexcept;

struct mutant_outcome {
  mutant_entry mutant;
  std::string mechanism;     // where it was planted: the mechanism, or the part that several share
  std::string what;          // the violation that killed it; empty: it survived
  std::string line;          // the line that replays it
  std::uint64_t states = 0;  // states explored before the violation
  bool killed() const noexcept { return !line.empty(); }
};

struct mutant_selection {
  std::string mechanism;  // "" or the mechanism that a mutant must be able to break
  std::string name;       // "" or one mutant
  std::uint64_t seed = 1;
  std::size_t share = 0, shares = 1;  // of all mutants, one in `shares`, by their number
  std::function<void(const mutant_outcome&)> on_outcome;
  std::function<bool()> cancelled;
};

// Plants each mutant in a child process. A survivor survived every run of the budget.
std::vector<mutant_outcome> explore_mutants(const mutant_selection& c);

// Killed mutants divided by all; 1 when there are none.
double score_of(const std::vector<mutant_outcome>& outcomes) noexcept;
nlohmann::json json_of(const std::vector<mutant_outcome>& outcomes);

}  // namespace stele::explore
