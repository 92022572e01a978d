// A run whose operations overlap, in threads that the scheduler controls. The run is recorded on a
// tape, with what is needed to judge it.
//
// The plan's operations come first, one after the other. Then each of the plan's threads applies
// `each` operations, while one more thread may do other work on the pool. Then all threads are
// joined and the pool is closed. On the tape `tx_begin` stands at the end of the first part.
// `invoked` and `returned` carry the number of an overlapping operation (0, 1, ..., thread by
// thread); `returned` stands where the operation is acknowledged as durable. `tx_commit` stands
// where an ordered operation has returned.
// returned.
#pragma once

#include <explore/schedule/interleaving.h>
#include <explore/schedule/scheduler.h>
#include <stele/snapshot.h>

#include <string>
#include <vector>

namespace stele::explore {

// How the operations of a run overlap, besides its plan.
struct concurrency_plan {
  unsigned each = 2;  // operations of each thread
  // Joined by +: check, backup, grow, sync, read, update, snapshot, hold (a snapshot, until the
  // works after it are done), other, other-at-once. Behind a | come the works of one more thread.
  std::string beside = "";
  bool background = false;    // the mechanism has threads of its own
  bool mixed = false;         // with ordered commits: every other thread commits durably
  bool last_durable = false;  // with ordered commits: the last one of each thread is durable
  bool told = false;          // with ordered commits: callbacks acknowledge them too
  bool attached = false;      // another process has attached before the threads begin
  schedule::granularity points = schedule::granularity::locks;
};

struct concurrent_run {
  std::vector<std::byte> tape;
  // The overlapping operations; one that did not fit is a read.
  std::vector<workloads::operation> operations;
  precedence before;
  std::uint64_t digest = 0;  // of the pool at the end of the run
  std::string problem;       // empty: the run itself shows nothing wrong

  struct backup {  // a backup made during the run
    std::vector<std::byte> bytes;
    // Masks: operations that had ended when it began; operations invoked when it ended.
    std::uint32_t must = 0, may = 0;
  };
  std::vector<backup> backups;
  struct observation {  // what one read transaction saw of the whole structure
    std::uint64_t digest = 0;
    std::uint32_t must = 0, may = 0;  // likewise
  };
  std::vector<observation> seen;
};

class concurrent_runner {
 public:
  concurrent_runner(subject& s, const concurrency_plan& o);

  // Makes the run under one schedule. `stuck` as for schedule::begin. Errors: what making and
  // opening a pool returns.
  [[nodiscard]] result<concurrent_run> make(schedule::strategy& chooser, std::uint64_t limit,
                                            std::function<void(const std::string&)> stuck);
  // After a run; one that did not fit is a read.
  const std::vector<workloads::operation>& sequential() const noexcept { return sequential_; }

 private:
  struct progress;
  [[nodiscard]] result<> run(concurrent_run& run, progress& p);
  void apply_share(unsigned thread, concurrent_run& run, progress& p);
  struct held_snapshot {
    pool_snapshot at;
    std::uint64_t digest;  // seen when it was taken
  };
  void work_beside(std::string_view works, concurrent_run& run, progress& p);
  [[nodiscard]] result<> do_beside(std::string_view work, concurrent_run& run, progress& p,
                                   std::vector<held_snapshot>& held);
  [[nodiscard]] result<> back_up(concurrent_run& run, progress& p);
  [[nodiscard]] result<> read(concurrent_run& run, progress& p);
  [[nodiscard]] result<> read_snapshot(concurrent_run& run, progress& p);
  [[nodiscard]] result<> hold_snapshot(concurrent_run& run, progress& p,
                                       std::vector<held_snapshot>& held);
  [[nodiscard]] static result<> release_snapshots(workloads::workload& w,
                                                  std::vector<held_snapshot>& held);
  // Another process attaches, reads twice, and is gone; or reads once, if it has attached before.
  [[nodiscard]] result<> read_elsewhere(concurrent_run& run, progress& p, bool at_once);
  template <class Read>
  [[nodiscard]] static result<> observe(Read&& read, concurrent_run& run, const progress& p);
  bool ordered(unsigned thread, unsigned operation, const progress& p) const noexcept;
  void acknowledge(std::uint32_t which, progress& p);
  void acknowledge_when_told(unsigned operation, progress& p);
  [[nodiscard]] result<> sync(progress& p);
  [[nodiscard]] result<> update_nothing(progress& p);

  subject& subject_;
  concurrency_plan concurrency_;
  unsigned copies_ = 0;  // by backups, of which several may run
  std::vector<workloads::operation> sequential_, concurrent_;
};

}  // namespace stele::explore
