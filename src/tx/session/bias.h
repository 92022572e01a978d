// The biased lock of an open pool (docs/decisions/26-bias-under-stm.md). Policies single_writer and
// stm: the thread that has the bias takes no locks, because no other thread runs transactions.
//
// A thread that begins announces its transaction and then looks. If another thread has the bias, it
// withdraws and revokes it: it waits until that thread's transaction has ended. Where a thread gets
// the bias, the others' announcements are looked at afterwards (base/asymmetric_gate.h).
#pragma once

#include <base/assert.h>
#include <base/mutant.h>
#include <tx/session/thread_context.h>

#include <atomic>
#include <mutex>

namespace stele::detail {

class bias {
 public:
  // Consecutive commits of one thread before it gets the bias. The grant and the revocation cost a
  // system call each.
  static constexpr unsigned threshold = base::schedule_explorer_build ? 2 : 512;
  static constexpr unsigned max_threshold = base::schedule_explorer_build ? 2 : 1u << 20;

  // The thread that has it, for one that has announced its transaction; null: none.
  const thread_context* look() const noexcept { return holder_.look(); }
  // For a thread in a transaction: no other transaction runs before it ends.
  bool is_of(const thread_context& v) const noexcept { return holder_.peek() == &v; }
  // stm, at the end of a transaction of v.
  bool is_earned_by(const thread_context& v) const noexcept {
    if (v.lone_commits >= threshold) [[unlikely]]
      return v.lone_commits >= threshold_.load(std::memory_order_relaxed);
    return false;
  }

  // Precondition: v is the only thread, and others that come wait for its caller.
  void give(thread_context& v) noexcept { holder_.set(&v); }
  // Gives the bias to v unless others_run() is true, or another thread changes the bias meanwhile.
  // The caller excludes others that grant it. Precondition: nobody else has it.
  template <class OthersRun>
  void grant(thread_context& v, OthersRun&& others_run) noexcept {
    v.lone_commits = 0;
    const std::unique_lock hold(mutex_, std::try_to_lock);
    if (!hold.owns_lock()) return;
    STELE_ASSERT(base::holds(holder_.peek() == nullptr || holder_.peek() == &v));
    // A thread that begins from here on sees the bias; one already in a transaction is seen below.
    holder_.close(&v);
    if (others_run() && !planted_in_schedule_explorer(base::mutant::bias_beside_others))
      holder_.set(nullptr);
  }
  // Takes the bias from another thread. v is in no transaction.
  void revoke(const thread_context& v);
  void give_up(const thread_context& v);          // by its thread, in no transaction
  void forget(const thread_context& v) noexcept;  // v's thread ends; under mutex()
  std::mutex& mutex() noexcept { return mutex_; }

 private:
  base::asymmetric_gate<thread_context*> holder_;
  // stm. Doubles with each revocation: where threads take turns, a bias is not worth its calls.
  std::atomic<unsigned> threshold_{threshold};
  std::mutex mutex_;  // held by who takes the bias away
  thread_context being_revoked_;
};

}  // namespace stele::detail
