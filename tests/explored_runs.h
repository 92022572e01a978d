// Runs of the explorer in tests of front ends: a violation is a failure, with the line that replays
// it.
#pragma once

#include <explore/explorer.h>
#include <explore/report.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <tests/budget.h>

#include <cstdio>
#include <span>

namespace stele::explore {

// The number of states.
inline std::uint64_t explored_states(const plan& p, std::uint64_t bound) {
  settings s;
  s.bound = bound;
  s.recovery_bound = 4;
  const auto found = explore_isolated(p, s);
  if (!found) {
    ADD_FAILURE() << found.error().message;
    return 0;
  }
  if (p.fail_call == 0)
    fmt::print("  {}/{} on {}: {}\n", p.mechanism, p.workload, p.media, summary_of(*found));
  std::fflush(stdout);
  for (const violation& v : found->violations)
    ADD_FAILURE() << v.what << "\n  stele crash replay \"" << v.line << '"';
  return found->states;
}

struct explored_run {
  const char *mechanism, *workload;
  std::size_t value_size, pool_size;
  std::uint64_t sync_every = 0, operations = 16;
  unsigned further_operations = 4;
};

inline plan plan_of(const explored_run& r, const char* media, std::uint64_t seed) {
  plan p;
  p.mechanism = r.mechanism;
  p.workload = r.workload;
  p.media = media;
  p.value_size = r.value_size;
  p.pool_size = r.pool_size;
  p.sync_every = r.sync_every;
  p.operations = r.operations;
  if (p.media == "memory") p.reopen_after = r.operations / 2 + 1;
  p.further_operations = r.further_operations;
  p.seed = seed;
  return p;
}

// The runs, with further seeds until there are as many states as the environment variable `wanted`
// says.
inline std::uint64_t explored_states(std::span<const explored_run> runs, const char* media,
                                     const char* wanted, std::uint64_t bound) {
  const std::uint64_t least = budget::count_from(wanted, 1);
  std::uint64_t states = 0;
  for (std::uint64_t seed = 1; states < least && !::testing::Test::HasFailure(); ++seed)
    for (const auto& r : runs) states += explored_states(plan_of(r, media, seed), bound);
  fmt::print("  {} states\n", states);
  return states;
}

// Power cuts after one failed call, on files: of each of the first calls, then of every fourth, as
// many as the environment variable `wanted` says. The first two runs are taken in turns.
inline std::uint64_t explored_failed_calls(std::span<const explored_run> runs, const char* wanted) {
  std::uint64_t states = 0;
  for (std::uint64_t call = 1; call <= budget::count_from(wanted, 40); call += call < 8 ? 1 : 4)
    for (const file_fault fault : {file_fault::refused, file_fault::write_back}) {
      plan p = plan_of(runs[call % 2], "file", 1);
      p.fail_call = call;
      p.fault = fault;
      states += explored_states(p, 8);
    }
  fmt::print("  {} states\n", states);
  return states;
}

}  // namespace stele::explore
