// Explores runs of overlapping commits: schedule by schedule, with every crash that each may have.
//
// First systematically: every schedule that preempts a running thread at most `preemptions` times
// (Musuvathi and Qadeer, "Iterative Context Bounding", 2007), with every choice where a thread
// blocks; a sample of them when there are more than asked for. Then by random priorities, one
// schedule a seed. A run is first judged without a crash: some order of its operations explains its
// end and its backups, and no thread waits for ever. Then the real recovery recovers the crash
// states at each fence and acknowledgement, and the orders that real time allows decide whether
// they are right. A prefix of a tape that was explored in another run is not explored again.
#pragma once

#include <explore/replay.h>
#include <explore/schedule/concurrent_run.h>
#include <explore/schedule/strategies.h>

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace stele::explore {

struct schedule_settings {
  unsigned preemptions = 2;
  // Systematic schedules; all of them are made if there are no more.
  std::uint64_t max_systematic = 20'000;
  std::uint64_t random = 0;         // schedules by random priorities
  std::uint64_t seed = 1;           // of the random schedules
  std::uint64_t bound = 64;         // crash states for each crash point; more are sampled
  std::uint64_t limit = 2'000'000;  // points of a run; a run with more is endless
  std::size_t max_violations = 1;
  double seconds = 0;  // time limit; 0: none
};

// What a line names: plan, overlap, schedule, and a crash if there is one.
struct schedule_line {
  static constexpr std::string_view engine = "schedules";
  plan run_plan;
  concurrency_plan concurrent;
  schedule::decisions decided;
  std::vector<crash> crashes = {};  // one, or none
};
line_fields fields_of(schedule_line& l);

struct schedule_findings {
  std::uint64_t schedules = 0, distinct = 0;  // runs; tapes with something new
  std::uint64_t systematic = 0;               // systematic ones of `schedules`
  bool complete = false;      // all systematic ones were made, in one run of the explorer
  std::uint64_t choices = 0;  // the most in a run
  std::uint64_t points = 0, exhausted = 0, states = 0, distinct_states = 0, recovered = 0;
  std::uint64_t refused = 0;  // crashes that recovery may refuse and did: skipped lines
  double seconds = 0, judging_seconds = 0;
  std::vector<violation> violations;

  schedule_findings& operator+=(const schedule_findings& f);
};
std::string summary_of(const schedule_findings& f);
nlohmann::json json_of(const schedule_findings& f);
schedule_findings schedule_findings_of(const nlohmann::json& j);

// Runs in a child process, which may die. Errors: wrong names in the plan; what making a pool
// returns.
[[nodiscard]] result<schedule_findings> explore_schedules(const plan& p, const concurrency_plan& o,
                                                          const schedule_settings& s);
[[nodiscard]] result<replay_result> replay(const schedule_line& l, const schedule_settings& s);

}  // namespace stele::explore
