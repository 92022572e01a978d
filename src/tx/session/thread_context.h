// What a pool keeps for one thread. Its thread stores to it in each transaction.
#pragma once

#include <base/asymmetric_gate.h>
#include <tx/moment.h>

#include <atomic>
#include <memory>

namespace stele::detail {

class long_read;
class transaction;

struct alignas(64) thread_context {
  thread_context();
  ~thread_context();

  base::announcement<> in_transaction;  // between begin and end of a transaction
  // single_writer: a reader that home stores must wait for. Not an announcement: readers are
  // blocked by each update, for which the heavy fence would cost too much, so both sides pay a full
  // fence.
  std::atomic<bool> reading{false};
  transaction* tx = nullptr;  // of the log that this thread owned last
  bool holds_writer = false;  // single_writer: the writer lock
  bool runs_alone = false;    // runtime::run_alone
  unsigned lone_commits = 0;  // commits in a row without another thread's between them; stm
  std::unique_ptr<detail::long_read> long_read;  // of the running transaction
  std::unique_ptr<moment> foreign_moment;        // likewise; kept by another process

  void count_lone_commit(bool follows_own) noexcept {
    lone_commits = follows_own ? lone_commits + 1 : 0;
  }
  // For assertions, of a thread of its own: nothing of a transaction is left, as at its begin.
  bool is_between_transactions() const noexcept {
    return !holds_writer && !runs_alone && long_read == nullptr && foreign_moment == nullptr;
  }
};

}  // namespace stele::detail
