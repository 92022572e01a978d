// Runs of overlapping commits, schedule by schedule, and every crash that may befall them.
//
// Systematically: every schedule (or, where there are more than asked for, a sample of those) in
// which a running thread is stopped at most `preemptions` times in favour of another (Musuvathi and
// Qadeer, "Iterative Context Bounding", 2007), whoever goes on where a thread cannot. Then by
// random priorities, seed by seed. A run is judged without a crash (some order of its operations
// explains its end; a backup made meanwhile; nobody waits for ever), then at each fence and
// acknowledgement by its crash states, recovered by the real recovery, against the orders that real
// time allows. A beginning of a tape that was looked at in another run is not again.
#pragma once

#include <explore/replay.h>
#include <explore/schedule/concurrent_run.h>
#include <explore/schedule/strategies.h>

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace stele::explore {

struct schedule_settings {
  unsigned preemptions = 2;
  std::uint64_t max_systematic =
      20'000;  // schedules of the systematic kind; they are all made if they are no more
  std::uint64_t random = 0;         // schedules by random priorities
  std::uint64_t seed = 1;           // of those
  std::uint64_t bound = 64;         // crash states a crash point; more are sampled
  std::uint64_t limit = 2'000'000;  // points of a run, or it does not end
  std::size_t max_violations = 1;
  double seconds = 0;  // then it ends; 0: when it is done
};

// What a line names: plan, overlap, schedule, and a crash or none.
struct schedule_line {
  plan run_plan;
  concurrency_plan concurrent;
  schedule::decisions decided;
  bool crashed = false;
  crash at;
};
std::string format_schedule(const schedule_line& l);
// Errors: invalid_argument, naming the word that is not understood.
[[nodiscard]] result<schedule_line> parse_schedule(const std::string& text);

struct schedule_findings {
  std::uint64_t schedules = 0, distinct = 0;  // runs; tapes that were different
  std::uint64_t systematic = 0;               // of these, with bounded preemptions
  bool complete = false;                      // all of those were made, in one run of the explorer
  std::uint64_t choices = 0;                  // the most of a run
  std::uint64_t points = 0, exhausted = 0, states = 0, distinct_states = 0, recovered = 0;
  std::uint64_t refused =
      0;  // crashes that recovery said no to, where it may: lines that were skipped
  double seconds = 0, judging_seconds = 0;
  std::vector<violation> violations;

  schedule_findings& operator+=(const schedule_findings& f);
};
std::string summary_of(const schedule_findings& f);
nlohmann::json json_of(const schedule_findings& f);
schedule_findings schedule_findings_of(const nlohmann::json& j);

// In a process of its own, which may die. Errors: what the plan names wrongly; what making a pool
// returns.
[[nodiscard]] result<schedule_findings> explore_schedules(const plan& p, const concurrency_plan& o,
                                                          const schedule_settings& s);
// Empty: nothing is wrong with it.
[[nodiscard]] result<std::string> replay_schedule(const schedule_line& l,
                                                  const schedule_settings& s,
                                                  std::string* explanation);

}  // namespace stele::explore
