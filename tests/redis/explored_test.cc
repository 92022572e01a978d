// The units of a Redis server under the explorer: every crash state of short runs recovers to the
// keys after a prefix of the units that has all acknowledged ones. On a real pool file, a power cut
// may fall at every write and sync, also after one of them has failed.
//
// STELE_REDIS_STATES is the least number of states of all runs together: runs with further seeds
// follow until there are so many.
#include <tests/explored_runs.h>

namespace stele::explore {
namespace {

constexpr std::size_t pool_size = 1048576;
constexpr explored_run runs[] = {{"default", "redis", 64, pool_size, 0, 40, 6},
                                 {"redo", "redis", 16, pool_size, 0, 24, 6},
                                 {"undo", "redis", 64, pool_size, 0, 24, 6},
                                 {"archapt-redo", "redis", 16, pool_size, 0, 24, 6},
                                 {"archapt-undo", "redis", 64, pool_size, 0, 24, 6},
                                 {"base", "redis", 16, pool_size, 0, 24, 6},
                                 {"default", "redis", 16, pool_size, 7, 40, 6},
                                 {"default", "redis", 512, pool_size, 3, 60, 6}};
constexpr explored_run file_runs[] = {{"default", "redis", 64, pool_size, 0, 30, 6},
                                      {"default", "redis", 16, pool_size, 5, 30, 6},
                                      {"redo", "redis", 64, pool_size, 0, 20, 6},
                                      {"undo", "redis", 16, pool_size, 4, 20, 6}};

TEST(redis_explored, every_crash_state_recovers) {
  EXPECT_GT(explored_states(runs, "memory", "STELE_REDIS_STATES", 16), 1000u);
}

TEST(redis_explored, every_power_cut_of_a_file_recovers) {
  EXPECT_GT(explored_states(file_runs, "file", "STELE_REDIS_STATES", 32), 1000u);
}

TEST(redis_explored, a_power_cut_after_a_failed_call_of_a_file_recovers) {
  EXPECT_GT(explored_failed_calls(file_runs, "STELE_REDIS_CALLS"), 1000u);
}

}  // namespace
}  // namespace stele::explore
