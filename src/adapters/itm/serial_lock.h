// The serial lock: threads run atomic blocks concurrently, or one thread runs alone. It also
// decides which older blocks a commit waits for.
//
// Blocks that cannot be rolled back, and blocks that lost too many attempts, run alone. The stm
// isolates concurrent blocks, except in one case: a commit makes memory private to its thread, and
// an older block of another thread still reads it or writes old words back to it. So a block
// announces itself before its first access to ordinary memory (announce_outside_access), and a
// commit waits (wait_for_older) for announced blocks that have not seen it.
//
// Invariants: a thread that waits to run alone, or for older blocks, prevents no other thread from
// ending its block. List entries are never freed, only reused. Entering passes an asymmetric gate,
// which a thread that wants to run alone closes. A commit takes a fence only if another thread has
// announced accesses to ordinary memory; the first announcement of a thread costs one membarrier.
#pragma once

#include <base/assert.h>

#include <base/asymmetric_gate.h>

#include <atomic>
#include <cstdint>

namespace stele::itm {

class serial_lock {
 public:
  // The state of one thread.
  struct alignas(64) thread_state {
    base::announcement<> active;
    // Not 0: accesses ordinary memory, and has seen all commits below this number.
    std::atomic<std::uint64_t> snapshot{0};
    std::atomic<bool> in_use{true};
    bool announced = false;  // has announced itself before
    unsigned number = 0;
    thread_state* next = nullptr;
  };

  thread_state& register_thread();
  void unregister_thread(thread_state& m) noexcept;

  // Waits while another thread runs alone.
  void enter(thread_state& m) noexcept {
    STELE_ASSERT(m.in_use.load(std::memory_order_relaxed));
    STELE_ASSERT(!m.active.made());
    m.active.announce(true);
    if (serial_owner_.look() != nullptr) [[unlikely]]
      wait_and_enter(m);
  }
  void leave(thread_state& m) noexcept {
    STELE_ASSERT(m.active.made());
    // The thread that runs alone opens the gate before it leaves; else no thread could enter again.
    STELE_ASSERT(!is_serial(m));
    if (m.snapshot.load(std::memory_order_relaxed) != 0)
      m.snapshot.store(0, std::memory_order_release);
    m.active.withdraw();
  }
  // m must have entered. False: another thread runs alone or is about to; m must leave, or both
  // would wait forever.
  bool acquire_serial(thread_state& m) noexcept;
  void release_serial() noexcept;
  bool serial_wanted() const noexcept { return serial_owner_.peek() != nullptr; }
  bool is_serial(const thread_state& m) const noexcept { return serial_owner_.peek() == &m; }

  // Called before the first access. Afterwards m must validate what it has read, and store in
  // `snapshot` what it has seen.
  void announce_outside_access(thread_state& m) noexcept;
  void wait_for_older(const thread_state& m, std::uint64_t commit) const noexcept {
    // A waiting thread has left, so it waits neither for itself nor blocks another one.
    STELE_ASSERT(!m.active.made());
    STELE_ASSERT(m.snapshot.load(std::memory_order_relaxed) == 0);
    base::asymmetric_fence_light();
    if (outside_accessors_.load(std::memory_order_relaxed) != unsigned{m.announced}) [[unlikely]]
      wait_for_older_slow(commit);
  }

  // Called in a child of fork, where `left` is the only thread.
  void reset_after_fork(const thread_state* left) noexcept;

 private:
  void wait_and_enter(thread_state& m) noexcept;
  void wait_for_older_slow(std::uint64_t commit) const noexcept;
  // For assertions. The second: while no other thread announces itself or ends.
  bool is_listed(const thread_state& m) const noexcept;
  bool counts_announced() const noexcept;

  std::atomic<thread_state*> first_{nullptr};
  base::asymmetric_gate<thread_state*> serial_owner_;  // null: open
  std::atomic<bool> multithreaded_{false};             // another thread has run a block
  std::atomic<unsigned> outside_accessors_{0};         // threads that have announced themselves
  std::atomic<unsigned> last_number_{0};
};

extern constinit serial_lock the_serial_lock;

}  // namespace stele::itm
