// A gate that threads pass at the cost of a store and a load; the thread that closes it pays for
// the order.
//
// A thread announces itself, then looks at the gate. Open: it is inside until it withdraws the
// announcement. Closed: it withdraws at once. Another thread closes the gate, then looks at the
// announcements and waits for the threads inside. Invariant: of a thread that announces itself and
// one that closes, at least one sees the other.
//
// Leaving and opening release, looking acquires: what a thread did inside happens before what the
// closer does once it has seen the thread outside, and that before what threads do inside later.
//
// It does not exclude two closers from each other.
#pragma once

#include <atomic>
#include <concepts>

namespace stele::base {

// The invariant is Dekker's, and needs a full fence on both sides between the store and the load.
// These two are such fences, with all of the cost on one side (P1202; "AsymmetricThreadFence.h" of
// folly):
//
// - The light fence keeps the compiler from loading the gate before it has stored the announcement.
//   The processor may still do so: x86 (TSO) has the announcement in the store buffer meanwhile.
// - The heavy fence is a full fence of the closer, between its store and its loads, and makes every
//   running thread of the process execute one (membarrier(2), PRIVATE_EXPEDITED: an interrupt). A
//   thread that does not run passes one when it is switched. Threads of other processes pass none;
//   a pool is open in one process.
//
// Why this is right: the fence that membarrier makes a thread execute has a place in the thread's
// program order. If that is before the look, the look sees the closed gate. If not, the
// announcement, which comes before the look, comes before that fence too, and the closer sees it.
// The C++ model does not know membarrier; in its terms both are atomic_thread_fence(seq_cst), and
// that is what they are where the system call does not exist.
extern const bool has_membarrier;

inline void asymmetric_fence_light() noexcept {
  if (has_membarrier) [[likely]]
    std::atomic_signal_fence(std::memory_order_seq_cst);
  else
    std::atomic_thread_fence(std::memory_order_seq_cst);
}
void asymmetric_fence_heavy() noexcept;

// What one thread says of itself: whether it is inside, or as of what.
template <class State = bool>
class announcement {
 public:
  explicit constexpr announcement(State outside = {}) noexcept : state_(outside) {}

  // Next the thread looks at the gate.
  void announce(State inside) noexcept {
    state_.store(inside, std::memory_order_relaxed);
    asymmetric_fence_light();
  }
  void withdraw(State outside = {}) noexcept { state_.store(outside, std::memory_order_release); }
  static_assert(std::atomic<State>::is_always_lock_free, "the fences order single accesses");
  State made() const noexcept { return state_.load(std::memory_order_relaxed); }  // by its thread
  // By other threads, which have closed the gate.
  State seen() const noexcept { return state_.load(std::memory_order_acquire); }
  void await_withdrawal(auto&& pause) const noexcept
    requires std::same_as<State, bool>
  {
    while (seen()) pause();
  }

 private:
  std::atomic<State> state_;
};

// What announced threads look at: whether the gate is closed, or for whom it is open.
template <class State = bool>
class asymmetric_gate {
 public:
  static_assert(std::atomic<State>::is_always_lock_free);
  // By a thread that has announced itself.
  State look() const noexcept { return state_.load(std::memory_order_acquire); }
  // By other threads; it may change at any time.
  State peek() const noexcept { return state_.load(std::memory_order_relaxed); }

  // From the return on, a thread that announces itself sees this state, and `seen` of an
  // announcement tells whether its thread is inside.
  void close(State s) noexcept {
    set(s);
    asymmetric_fence_heavy();
  }
  // Only if the state is `from`.
  bool try_close(State from, State s) noexcept {
    if (!state_.compare_exchange_strong(from, s, std::memory_order_acq_rel)) return false;
    asymmetric_fence_heavy();
    return true;
  }
  void open(State s = {}) noexcept { state_.store(s, std::memory_order_release); }
  // For threads that found it closed: waits until the state is another; wakes them.
  void wait(State s) const noexcept { state_.wait(s, std::memory_order_acquire); }
  void notify_all() noexcept { state_.notify_all(); }

  // Without a fence: nobody is awaited, or the caller passes the heavy fence, once for several
  // gates.
  void set(State s) noexcept { state_.store(s, std::memory_order_relaxed); }
  State exchange(State s) noexcept { return state_.exchange(s, std::memory_order_relaxed); }

 private:
  std::atomic<State> state_{};
};

}  // namespace stele::base
