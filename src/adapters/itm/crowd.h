// The threads that run atomic blocks: beside each other, or one of them alone; and who has to be waited for.
//
// Alone runs what cannot be rolled back, and what has lost too often. Beside each other the stm keeps blocks apart; what it
// does not know is memory that a commit makes private to its thread, which an older block of another thread may still be
// reading, or putting old words back into. So a block says so before it first touches ordinary memory (publish), and a commit
// waits (await_older) for those who said so and have not seen it.
//
// Invariants: whoever waits to be alone, or for older blocks, does not itself keep another from ending; entries of the list are
// never freed, only used again. Entering takes no locked instruction: who wants to be alone pays with membarrier. A commit takes
// a fence only when another thread is one that touches ordinary memory; becoming such a thread costs a membarrier, once.
#pragma once

#include <base/epochs.h>

#include <atomic>
#include <cstdint>

namespace stele::itm {

class crowd {
 public:
  // One thread.
  struct alignas(64) member {
    std::atomic<bool> inside{false};
    std::atomic<std::uint64_t> seen{0};  // not 0: in touch with ordinary memory, and has seen commits below this
    std::atomic<bool> taken{true};
    bool touches = false;  // it has published before
    unsigned number = 0;
    member* next = nullptr;
  };

  member& join();
  void quit(member& m) noexcept;

  // Waits while somebody is alone.
  void enter(member& m) noexcept {
    m.inside.store(true, std::memory_order_relaxed);
    base::light_fence();
    if (alone_.load(std::memory_order_acquire) != nullptr) [[unlikely]]
      wait_and_enter(m);
  }
  void leave(member& m) noexcept {
    if (m.seen.load(std::memory_order_relaxed) != 0) m.seen.store(0, std::memory_order_release);
    m.inside.store(false, std::memory_order_release);
  }
  // m is inside. False: somebody else is, or is about to be; m must leave, or both wait for ever.
  bool become_alone(member& m) noexcept;
  void end_alone() noexcept;
  bool alone_wanted() const noexcept { return alone_.load(std::memory_order_relaxed) != nullptr; }
  bool is_alone(const member& m) const noexcept { return alone_.load(std::memory_order_relaxed) == &m; }

  // Before the first touch; afterwards m makes sure that what it has read is current, and says what it has seen.
  void publish(member& m) noexcept;
  void await_older(const member& m, std::uint64_t commit) const noexcept {
    base::light_fence();
    if (touching_.load(std::memory_order_relaxed) != unsigned{m.touches}) [[unlikely]]
      await_others(commit);
  }

  // In a child of fork, where `left` is the only thread.
  void forget_others(const member* left) noexcept;

 private:
  void wait_and_enter(member& m) noexcept;
  void await_others(std::uint64_t commit) const noexcept;

  std::atomic<member*> first_{nullptr};
  std::atomic<member*> alone_{nullptr};
  std::atomic<bool> several_{false};      // another thread has run a block
  std::atomic<unsigned> touching_{0};     // members that have published
  std::atomic<unsigned> numbers_{0};
};

extern constinit crowd everybody;

}  // namespace stele::itm
