// The fields of a schedule's line. Not beside the explorer of schedules, which is a program of its
// own: tests read its lines too.
#include <explore/schedule/schedules.h>

namespace stele::explore {

line_fields fields_of(schedule_line& l) {
  return joined(
      {fields_of(l.run_plan),
       fields_of_files(l.run_plan),
       {{"each",
         &l.concurrent.each,
         "operations of each thread that overlap",
         {.least = 1, .most = 32}},
        {"beside", &l.concurrent.beside,
         "what one more thread does: check, sync, backup, grow, read, update (durably, nothing), "
         "snapshot, hold (a snapshot, during the works after it), other (reads as another "
         "process), "
         "other-at-once; several with +; those behind | are another thread's"},
        {"background", &l.concurrent.background, "the mechanism has threads of its own"},
        {"mixed", &l.concurrent.mixed,
         "of ordered commits: those of every other thread are durable"},
        {"last-durable", &l.concurrent.last_durable,
         "of ordered commits: each thread's last is durable"},
        {"told", &l.concurrent.told, "of ordered commits: callbacks acknowledge them too"},
        {"attached", &l.concurrent.attached,
         "that other process has attached before the threads begin, and reads once"},
        {"points",
         &l.concurrent.points,
         "where another thread may go on",
         {.words = "locks|stores|loads"}},
        {"decisions",
         &l.decided,
         "",
         {.most = schedule::max_threads - 1},
         "NUMBER:THREAD, more after commas"},
        {"at", &l.crashes, "", {}, crash_form}}});
}

}  // namespace stele::explore
