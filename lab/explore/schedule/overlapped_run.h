// A run whose operations overlap, in threads that the scheduler hands on: made into a tape, with what
// is needed to judge it.
//
// The plan's operations come first, one after the other. Then each of its threads applies `each`
// operations, beside one more thread that does other work on the pool; then all are joined and the
// pool is closed. On the tape `tx_begin` stands where the first part is over. `invoked` and `returned` stand with the number
// of an operation that overlaps (0, 1, ..: thread by thread), `returned` when it is acknowledged as durable; `tx_commit`
// stands where an ordered one has returned.
#pragma once

#include <explore/schedule/interleaving.h>
#include <explore/schedule/scheduler.h>

#include <string>
#include <vector>

namespace stele::explore {

// What the run of a plan has besides.
struct overlap {
  unsigned each = 2;        // operations a thread
  std::string beside = "";  // words, in this order: check, backup, grow, sync, read, backup:wait...
  bool background = false;  // the mechanism has threads of its own
  bool mixed = false;       // of ordered commits: those of every other thread are durable
  schedule::grain points = schedule::grain::locks;
};

struct overlapped {
  std::vector<std::byte> tape;
  std::vector<workloads::operation> operations;  // those that overlapped; one that did not fit is a read
  precedence before;
  std::uint64_t digest = 0;  // of what the run left
  std::string problem;       // empty: the run itself shows nothing wrong

  struct copy {  // a backup that was made meanwhile
    std::vector<std::byte> bytes;
    std::uint32_t must = 0, may = 0;  // operations that were over when it began, and invoked when it ended
  };
  std::vector<copy> copies;
  struct observation {  // what one read transaction saw of all there is
    std::uint64_t digest = 0;
    std::uint32_t must = 0, may = 0;  // likewise
  };
  std::vector<observation> seen;
};

class overlapped_runs {
 public:
  overlapped_runs(subject& s, const overlap& o);

  // Under one schedule. `stuck` as for schedule::begin. Errors: what making and opening a pool returns.
  [[nodiscard]] result<overlapped> make(schedule::strategy& who, std::uint64_t limit, std::function<void(const std::string&)> stuck);
  const std::vector<workloads::operation>& first() const noexcept { return first_; }

 private:
  struct progress;
  [[nodiscard]] result<> run(overlapped& run, progress& p);
  void apply_share(unsigned thread, overlapped& run, progress& p);
  void work_beside(overlapped& run, progress& p);
  [[nodiscard]] result<> do_beside(std::string_view work, overlapped& run, progress& p);
  [[nodiscard]] result<> back_up(overlapped& run, progress& p);
  [[nodiscard]] result<> read(overlapped& run, progress& p);
  bool ordered(unsigned thread, const progress& p) const noexcept;
  void acknowledge(std::uint32_t which, progress& p);
  [[nodiscard]] result<> sync(progress& p);

  subject& subject_;
  overlap overlap_;
  std::vector<workloads::operation> first_, together_;
};

}  // namespace stele::explore
