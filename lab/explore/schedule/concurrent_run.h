// A run whose operations overlap, in threads that the scheduler hands on: made into a tape, with
// what is needed to judge it.
//
// The plan's operations come first, one after the other. Then each of its threads applies `each`
// operations, beside one more thread that does other work on the pool; then all are joined and the
// pool is closed. On the tape `tx_begin` stands where the first part is over. `invoked` and
// `returned` stand with the number of an operation that overlaps (0, 1, ..: thread by thread),
// `returned` when it is acknowledged as durable; `tx_commit` stands where an ordered one has
// returned.
#pragma once

#include <explore/schedule/interleaving.h>
#include <explore/schedule/scheduler.h>

#include <string>
#include <vector>

namespace stele::explore {

// What the run of a plan has besides.
struct concurrency_plan {
  unsigned each = 2;        // operations a thread
  std::string beside = "";  // words, in this order: check, backup, grow, sync, read, backup:wait...
  bool background = false;  // the mechanism has threads of its own
  bool mixed = false;       // of ordered commits: those of every other thread are durable
  schedule::granularity points = schedule::granularity::locks;
};

struct concurrent_run {
  std::vector<std::byte> tape;
  std::vector<workloads::operation>
      operations;  // those that overlapped; one that did not fit is a read
  precedence before;
  std::uint64_t digest = 0;  // of what the run left
  std::string problem;       // empty: the run itself shows nothing wrong

  struct backup {  // a backup that was made meanwhile
    std::vector<std::byte> bytes;
    std::uint32_t must = 0,
                  may = 0;  // operations that were over when it began, and invoked when it ended
  };
  std::vector<backup> backups;
  struct observation {  // what one read transaction saw of all there is
    std::uint64_t digest = 0;
    std::uint32_t must = 0, may = 0;  // likewise
  };
  std::vector<observation> seen;
};

class concurrent_runner {
 public:
  concurrent_runner(subject& s, const concurrency_plan& o);

  // Under one schedule. `stuck` as for schedule::begin. Errors: what making and opening a pool
  // returns.
  [[nodiscard]] result<concurrent_run> make(schedule::strategy& chooser, std::uint64_t limit,
                                            std::function<void(const std::string&)> stuck);
  const std::vector<workloads::operation>& sequential() const noexcept { return sequential_; }

 private:
  struct progress;
  [[nodiscard]] result<> run(concurrent_run& run, progress& p);
  void apply_share(unsigned thread, concurrent_run& run, progress& p);
  void work_beside(concurrent_run& run, progress& p);
  [[nodiscard]] result<> do_beside(std::string_view work, concurrent_run& run, progress& p);
  [[nodiscard]] result<> back_up(concurrent_run& run, progress& p);
  [[nodiscard]] result<> read(concurrent_run& run, progress& p);
  bool ordered(unsigned thread, const progress& p) const noexcept;
  void acknowledge(std::uint32_t which, progress& p);
  [[nodiscard]] result<> sync(progress& p);

  subject& subject_;
  concurrency_plan concurrency_;
  std::vector<workloads::operation> sequential_, concurrent_;
};

}  // namespace stele::explore
