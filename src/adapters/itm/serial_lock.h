// The threads that run atomic blocks: beside each other, or one of them alone; and who has to be
// waited for.
//
// Alone runs what cannot be rolled back, and what has lost too often. Beside each other the stm
// keeps blocks apart; what it does not know is memory that a commit makes private to its thread,
// which an older block of another thread may still be reading, or putting old words back into. So a
// block says so before it first touches ordinary memory (publish), and a commit waits
// (wait_for_older) for those who said so and have not seen it.
//
// Invariants: whoever waits to be alone, or for older blocks, does not itself keep another from
// ending; entries of the list are never freed, only used again. Entering takes no locked
// instruction: who wants to be alone pays with membarrier. A commit takes a fence only when another
// thread is one that touches ordinary memory; becoming such a thread costs a membarrier, once.
#pragma once

#include <base/epochs.h>

#include <atomic>
#include <cstdint>

namespace stele::itm {

class serial_lock {
 public:
  // One thread.
  struct alignas(64) thread_state {
    std::atomic<bool> active{false};
    std::atomic<std::uint64_t> snapshot{
        0};  // not 0: in touch with ordinary memory, and has seen commits below this
    std::atomic<bool> in_use{true};
    bool announced = false;  // it has published before
    unsigned number = 0;
    thread_state* next = nullptr;
  };

  thread_state& register_thread();
  void unregister_thread(thread_state& m) noexcept;

  // Waits while somebody is alone.
  void enter(thread_state& m) noexcept {
    m.active.store(true, std::memory_order_relaxed);
    base::asymmetric_fence_light();
    if (serial_owner_.load(std::memory_order_acquire) != nullptr) [[unlikely]]
      wait_and_enter(m);
  }
  void leave(thread_state& m) noexcept {
    if (m.snapshot.load(std::memory_order_relaxed) != 0)
      m.snapshot.store(0, std::memory_order_release);
    m.active.store(false, std::memory_order_release);
  }
  // m is inside. False: somebody else is, or is about to be; m must leave, or both wait for ever.
  bool acquire_serial(thread_state& m) noexcept;
  void release_serial() noexcept;
  bool serial_wanted() const noexcept {
    return serial_owner_.load(std::memory_order_relaxed) != nullptr;
  }
  bool is_serial(const thread_state& m) const noexcept {
    return serial_owner_.load(std::memory_order_relaxed) == &m;
  }

  // Before the first touch; afterwards m makes sure that what it has read is current, and says what
  // it has seen.
  void announce_outside_access(thread_state& m) noexcept;
  void wait_for_older(const thread_state& m, std::uint64_t commit) const noexcept {
    base::asymmetric_fence_light();
    if (outside_accessors_.load(std::memory_order_relaxed) != unsigned{m.announced}) [[unlikely]]
      wait_for_older_slow(commit);
  }

  // In a child of fork, where `left` is the only thread.
  void reset_after_fork(const thread_state* left) noexcept;

 private:
  void wait_and_enter(thread_state& m) noexcept;
  void wait_for_older_slow(std::uint64_t commit) const noexcept;

  std::atomic<thread_state*> first_{nullptr};
  std::atomic<thread_state*> serial_owner_{nullptr};
  std::atomic<bool> multithreaded_{false};      // another thread has run a block
  std::atomic<unsigned> outside_accessors_{0};  // members that have published
  std::atomic<unsigned> last_number_{0};
};

extern constinit serial_lock the_serial_lock;

}  // namespace stele::itm
