// Which context a thread has in each open pool.
//
// A thread's own list; other threads do not use it. The pool of a registration may be closed, and
// its context gone, since numbers of pools are never reused: who looks one up knows that the pool
// is open.
#pragma once

#include <base/assert.h>
#include <base/reserve.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace stele::detail {

struct thread_context;

struct thread_registration {
  std::uint64_t id;  // of the pool
  thread_context* context;
};
// The one that this thread used last: what begins a transaction looks here first.
extern constinit thread_local thread_registration last_registration;

class registrations {
 public:
  // Null: the thread has none in this pool.
  const thread_registration* find(std::uint64_t id) const noexcept {
    const auto known = std::ranges::find(all_, id, &thread_registration::id);
    return known != all_.end() ? &*known : nullptr;
  }
  // The next add() allocates no memory. Throws std::bad_alloc.
  void reserve() { base::reserve_more(all_, 1); }
  const thread_registration& add(std::uint64_t id, thread_context& v) {
    STELE_ASSERT(find(id) == nullptr);
    return all_.emplace_back(id, &v);
  }
  // Whether there are so many that those of closed pools should go: a thread may open and close
  // many pools.
  bool are_many() const noexcept { return all_.size() >= 32; }
  template <class IsClosed>
  void erase_closed(IsClosed&& is_closed) {
    std::erase_if(all_, [&](const thread_registration& v) { return is_closed(v.id); });
  }
  auto begin() const noexcept { return all_.begin(); }
  auto end() const noexcept { return all_.end(); }

 private:
  std::vector<thread_registration> all_;
};

}  // namespace stele::detail
