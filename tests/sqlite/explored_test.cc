// SQLite under the explorer: every crash state of short runs recovers to the rows after a prefix of
// the commits that has all acknowledged ones, and SQLite finds its databases in order.
//
// STELE_SQLITE_STATES is the least number of states of all runs together: runs with further seeds
// follow until there are so many. On a real pool file, a power cut may fall at every write and
// sync, also after one of them has failed.
#include <tests/explored_runs.h>

namespace stele::explore {
namespace {

constexpr explored_run runs[] = {
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
constexpr explored_run file_runs[] = {
    {"default", "sqlite", 1024, 524288},         {"default", "sqlite-512", 256, 524288, 4},
    {"redo", "sqlite-512", 256, 524288, 5},      {"undo", "sqlite", 1024, 524288},
    {"archapt-redo", "sqlite", 256, 1048576, 3},
};

TEST(sqlite_explored, every_crash_state_recovers) {
  EXPECT_GT(explored_states(runs, "memory", "STELE_SQLITE_STATES", 16), 1000u);
}

TEST(sqlite_explored, every_power_cut_of_a_file_recovers) {
  EXPECT_GT(explored_states(file_runs, "file", "STELE_SQLITE_STATES", 32), 1000u);
}

TEST(sqlite_explored, a_power_cut_after_a_failed_call_of_a_file_recovers) {
  EXPECT_GT(explored_failed_calls(file_runs, "STELE_SQLITE_CALLS"), 1000u);
}

}  // namespace
}  // namespace stele::explore
