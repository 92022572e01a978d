// SQLite under the explorer: every crash state of short runs recovers to the rows after a prefix of
// the commits that has all acknowledged ones, and SQLite finds its databases in order.
//
// STELE_SQLITE_STATES is the least number of states of all runs together: runs with further seeds
// follow until there are so many. On a real pool file, a power cut may fall at every write and
// sync, also after one of them has failed.
#include <explore/explorer.h>
#include <explore/report.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <tests/budget.h>

#include <cstdio>

namespace stele::explore {
namespace {

struct run_of {
  const char *mechanism, *workload;
  std::size_t value_size, pool_size;
  std::uint64_t sync_every = 0, operations = 16;
};
constexpr run_of runs[] = {
    {"default", "sqlite", 1024, 524288},
    {"default", "sqlite-512", 256, 524288, 5},
    {"redo", "sqlite-512", 256, 524288},
    {"redo", "sqlite", 1024, 524288, 5},
    {"undo", "sqlite", 1024, 524288},
    {"undo", "sqlite-512", 256, 524288},
    {"archapt-redo", "sqlite", 256, 1048576},
    {"archapt-undo", "sqlite-512", 256, 1048576},
    {"default", "sqlite", 1024, 524288, 3},
    {"undo", "sqlite", 256, 524288, 4},
    {"default", "sqlite", 1024, 524288, 15, 40},
};

// The power cuts' share of the runs.
constexpr run_of file_runs[] = {
    {"default", "sqlite", 1024, 524288},         {"default", "sqlite-512", 256, 524288, 4},
    {"redo", "sqlite-512", 256, 524288, 5},      {"undo", "sqlite", 1024, 524288},
    {"archapt-redo", "sqlite", 256, 1048576, 3},
};

plan plan_of(const run_of& r, std::uint64_t seed) {
  plan p;
  p.mechanism = r.mechanism;
  p.workload = r.workload;
  p.value_size = r.value_size;
  p.pool_size = r.pool_size;
  p.sync_every = r.sync_every;
  p.operations = r.operations;
  p.further_operations = 4;
  p.seed = seed;
  return p;
}

std::uint64_t explored_states(const plan& p, std::uint64_t bound) {
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

TEST(sqlite_explored, every_crash_state_recovers) {
  const std::uint64_t wanted = budget::count_from("STELE_SQLITE_STATES", 1);
  std::uint64_t states = 0;
  for (std::uint64_t seed = 1; states < wanted && !HasFailure(); ++seed)
    for (const run_of& r : runs) states += explored_states(plan_of(r, seed), 16);
  fmt::print("  {} states\n", states);
}

TEST(sqlite_explored, every_power_cut_of_a_file_recovers) {
  const std::uint64_t wanted = budget::count_from("STELE_SQLITE_STATES", 1);
  std::uint64_t states = 0;
  for (std::uint64_t seed = 1; states < wanted && !HasFailure(); ++seed)
    for (const run_of& r : file_runs) {
      plan p = plan_of(r, seed);
      p.media = "file";
      states += explored_states(p, 32);
    }
  fmt::print("  {} states\n", states);
}

TEST(sqlite_explored, a_power_cut_after_a_failed_call_of_a_file_recovers) {
  std::uint64_t states = 0;
  for (std::uint64_t call = 1; call <= budget::count_from("STELE_SQLITE_CALLS", 40);
       call += call < 8 ? 1 : 4)
    for (const file_fault fault : {file_fault::refused, file_fault::write_back}) {
      plan p = plan_of(file_runs[call % 2], 1);
      p.media = "file";
      p.fail_call = call;
      p.fault = fault;
      states += explored_states(p, 8);
    }
  fmt::print("  {} states\n", states);
  EXPECT_GT(states, 1000u);
}

}  // namespace
}  // namespace stele::explore
