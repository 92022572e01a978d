// The open pools of this process: for threads that end, for fork, and to check stores outside
// transactions.
//
// A child of fork can read the list whatever the parent's threads did: each change is one store.
// `Pool` has open_entry<Pool>& entry().
#pragma once

#include <base/assert.h>
#include <base/forks.h>
#include <sched.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <new>

namespace stele::detail {

template <class Pool>
class open_list;

// A pool's place in the list.
template <class Pool>
class open_entry {
 public:
  explicit open_entry(std::uint64_t number) noexcept : id(number) {}

  const std::uint64_t id;  // never reused
  const base::process_mark mark;

 private:
  friend class open_list<Pool>;
  Pool* next_ = nullptr;
  unsigned ending_threads_ = 0;  // that give back what they have here; under the list's mutex
};

template <class Pool>
class open_list {
 public:
  std::mutex mutex;

  void add(Pool& p) noexcept {
    STELE_ASSERT_ALWAYS(p.entry().next_ == nullptr && first_ != &p);
    p.entry().next_ = first_;
    std::atomic_signal_fence(std::memory_order_release);
    first_ = &p;
  }
  // On return no thread that ends uses the pool.
  void remove(Pool& p) noexcept {
    std::unique_lock hold(mutex);
    Pool** at = &first_;
    while (*at != &p) {
      STELE_ASSERT_ALWAYS(*at != nullptr);
      at = &(*at)->entry().next_;
    }
    *at = p.entry().next_;
    while (p.entry().ending_threads_ != 0 && !p.entry().mark.is_of_parent()) {
      hold.unlock();
      ::sched_yield();
      hold.lock();
    }
  }
  // The pool of this number, which is not removed before let_go(); null: it is not open. A thread
  // that ends must not hold the mutex while it waits for the pool's locks: one of these may be held
  // by a thread that waits for a transaction, whose body may need the mutex.
  Pool* keep(std::uint64_t id) noexcept {
    const std::lock_guard hold(mutex);
    Pool* const open = find(id);
    if (open != nullptr) ++open->entry().ending_threads_;
    return open;
  }
  void let_go(Pool& p) noexcept {
    const std::lock_guard hold(mutex);
    STELE_ASSERT(p.entry().ending_threads_ != 0);
    --p.entry().ending_threads_;
  }
  // The first one for which f() is true; in a child, of its parent's too. Under the mutex, but for
  // a child's only thread.
  template <class F>
  Pool* find_mapped(F&& f) const {
    for (Pool* p = first_; p != nullptr; p = p->entry().next_)
      if (f(*p)) return p;
    return nullptr;
  }
  // The one of this process that has this number. Under the mutex.
  Pool* find(std::uint64_t id) const {
    return find_mapped(
        [id](Pool& p) { return !p.entry().mark.is_of_parent() && p.entry().id == id; });
  }
  // By the one thread of a child of fork, which has none of the parent's threads: calls f for each
  // of the parent's pools.
  template <class F>
  void enter_child(F&& f) noexcept {
    ::new (&mutex) std::mutex;
    for (Pool* p = first_; p != nullptr; p = p->entry().next_) f(*p);
  }

 private:
  Pool* first_ = nullptr;
};

}  // namespace stele::detail
