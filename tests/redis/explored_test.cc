// The units of a Redis server under the explorer: every crash state of short runs recovers to the
// keys after a prefix of the units that has all acknowledged ones. On a real pool file, a power cut
// may fall at every write and sync, also after one of them has failed.
//
// STELE_REDIS_STATES is the least number of states of all runs together: runs with further seeds
// follow until there are so many.
#include <tests/explored_runs.h>

namespace stele::explore {
namespace {

struct run_of {
  const char* mechanism;
  std::size_t value_size;
  std::uint64_t sync_every, operations;
  const char* media = "memory";
};
constexpr run_of runs[] = {
    {"default", 64, 0, 40},      {"redo", 16, 0, 24},         {"undo", 64, 0, 24},
    {"archapt-redo", 16, 0, 24}, {"archapt-undo", 64, 0, 24}, {"base", 16, 0, 24},
    {"default", 16, 7, 40},      {"default", 512, 3, 60},
};
constexpr run_of file_runs[] = {{"default", 64, 0, 30, "file"},
                                {"default", 16, 5, 30, "file"},
                                {"redo", 64, 0, 20, "file"},
                                {"undo", 16, 4, 20, "file"}};

plan plan_of(const run_of& r, std::uint64_t seed) {
  plan p;
  p.mechanism = r.mechanism;
  p.workload = "redis";
  p.media = r.media;
  p.value_size = r.value_size;
  p.pool_size = 1048576;
  p.sync_every = r.sync_every;
  p.operations = r.operations;
  p.further_operations = 6;
  p.threads = 1;
  p.seed = seed;
  return p;
}

TEST(redis_explored, every_crash_state_recovers) {
  EXPECT_GT(explored_states(runs, plan_of, "STELE_REDIS_STATES", 16), 1000u);
}

TEST(redis_explored, every_power_cut_of_a_file_recovers) {
  EXPECT_GT(explored_states(file_runs, plan_of, "STELE_REDIS_STATES", 32), 1000u);
}

TEST(redis_explored, a_power_cut_after_a_failed_call_of_a_file_recovers) {
  EXPECT_GT(explored_failed_calls(file_runs, plan_of, "STELE_REDIS_CALLS"), 1000u);
}

}  // namespace
}  // namespace stele::explore
