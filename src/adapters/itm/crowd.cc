// Being alone, and waiting for older blocks; see crowd.h.
#include <adapters/itm/crowd.h>
#include <sched.h>

namespace stele::itm {

constinit crowd everybody;

crowd::member& crowd::join() {
  for (member* m = first_.load(std::memory_order_acquire); m != nullptr; m = m->next) {
    bool taken = false;
    if (m->taken.compare_exchange_strong(taken, true, std::memory_order_acquire)) return *m;
  }
  auto* const m = new member;  // for the life of the process
  m->number = numbers_.fetch_add(1) + 1;
  m->next = first_.load(std::memory_order_relaxed);
  while (!first_.compare_exchange_weak(m->next, m, std::memory_order_release)) {
  }
  if (m->next != nullptr) several_.store(true, std::memory_order_relaxed);
  base::heavy_fence();  // a running block's publish comes before this, or it sees that there are several
  return *m;
}

void crowd::quit(member& m) noexcept {
  if (m.touches) touching_.fetch_sub(1, std::memory_order_relaxed);
  m.touches = false;
  m.taken.store(false, std::memory_order_release);
}

void crowd::wait_and_enter(member& m) noexcept {
  while (member* const other = alone_.load(std::memory_order_acquire)) {
    m.inside.store(false, std::memory_order_release);
    alone_.wait(other, std::memory_order_acquire);
    m.inside.store(true, std::memory_order_relaxed);
    base::light_fence();
  }
}

bool crowd::become_alone(member& m) noexcept {
  member* nobody = nullptr;
  if (!alone_.compare_exchange_strong(nobody, &m, std::memory_order_acq_rel)) return false;
  base::heavy_fence();  // whoever enters from here on sees that; whoever is inside already is seen here
  for (const member* other = first_.load(std::memory_order_acquire); other != nullptr; other = other->next)
    while (other != &m && other->inside.load(std::memory_order_acquire)) ::sched_yield();
  return true;
}

void crowd::end_alone() noexcept {
  alone_.store(nullptr, std::memory_order_release);
  alone_.notify_all();
}

void crowd::publish(member& m) noexcept {
  m.seen.store(1, std::memory_order_relaxed);
  if (!m.touches) [[unlikely]] {
    m.touches = true;
    touching_.fetch_add(1, std::memory_order_relaxed);
    base::heavy_fence();  // a commit that does not see that there is one more is seen by what m reads from here on
  }
  if (several_.load(std::memory_order_relaxed))
    std::atomic_thread_fence(std::memory_order_seq_cst);  // before what it reads: a commit that it misses sees it
  else
    base::light_fence();
}

void crowd::await_others(std::uint64_t commit) const noexcept {
  std::atomic_thread_fence(std::memory_order_seq_cst);  // after the commit: who is not seen here sees it
  for (const member* other = first_.load(std::memory_order_acquire); other != nullptr; other = other->next) {
    for (unsigned looks = 0;; ++looks) {
      const std::uint64_t seen = other->seen.load(std::memory_order_acquire);
      if (seen == 0 || seen > commit) break;
      if (looks > 64) ::sched_yield();
    }
  }
}

void crowd::forget_others(const member* left) noexcept {
  for (member* m = first_.load(std::memory_order_relaxed); m != nullptr; m = m->next) {
    if (m == left) continue;
    if (m->touches) touching_.fetch_sub(1, std::memory_order_relaxed);
    m->touches = false;
    m->inside.store(false, std::memory_order_relaxed);
    m->seen.store(0, std::memory_order_relaxed);
    m->taken.store(false, std::memory_order_relaxed);
  }
  if (alone_.load(std::memory_order_relaxed) != left) alone_.store(nullptr, std::memory_order_relaxed);
}

}  // namespace stele::itm
