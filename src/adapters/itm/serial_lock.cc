// Running alone, and waiting for older blocks; see serial_lock.h.
#include <adapters/itm/serial_lock.h>
#include <sched.h>

namespace stele::itm {

constinit serial_lock the_serial_lock;

serial_lock::thread_state& serial_lock::register_thread() {
  for (thread_state* m = first_.load(std::memory_order_acquire); m != nullptr; m = m->next) {
    bool in_use = false;
    if (!m->in_use.compare_exchange_strong(in_use, true, std::memory_order_acquire)) continue;
    // What unregister_thread() leaves.
    STELE_ASSERT(!m->announced);
    STELE_ASSERT(m->snapshot.load(std::memory_order_relaxed) == 0);
    STELE_ASSERT(m->number != 0);
    return *m;
  }
  auto* const m = new thread_state;  // never freed
  m->number = last_number_.fetch_add(1) + 1;
  m->next = first_.load(std::memory_order_relaxed);
  while (!first_.compare_exchange_weak(m->next, m, std::memory_order_release)) {
  }
  if (m->next != nullptr) multithreaded_.store(true, std::memory_order_relaxed);
  // Orders with announce_outside_access(): a running block's snapshot is stored before this, or the
  // block sees multithreaded_.
  base::asymmetric_fence_heavy();
  STELE_ASSERT(m->number != 0);
  STELE_ASSERT_WHOLE(is_listed(*m));
  return *m;
}

bool serial_lock::is_listed(const thread_state& m) const noexcept {
  const thread_state* one = first_.load(std::memory_order_acquire);
  while (one != nullptr && one != &m) one = one->next;
  return one != nullptr;
}

bool serial_lock::counts_announced() const noexcept {
  unsigned announced = 0;
  for (const thread_state* m = first_.load(std::memory_order_acquire); m != nullptr; m = m->next)
    if (m->announced) ++announced;
  return announced == outside_accessors_.load(std::memory_order_relaxed);
}

void serial_lock::unregister_thread(thread_state& m) noexcept {
  STELE_ASSERT(m.in_use.load(std::memory_order_relaxed));
  // An announced thread is counted.
  STELE_ASSERT(!m.announced || outside_accessors_.load(std::memory_order_relaxed) != 0);
  if (m.announced) outside_accessors_.fetch_sub(1, std::memory_order_relaxed);
  m.announced = false;
  m.in_use.store(false, std::memory_order_release);
}

void serial_lock::wait_and_enter(thread_state& m) noexcept {
  while (thread_state* const other = serial_owner_.look()) {
    m.active.withdraw();
    serial_owner_.wait(other);
    m.active.announce(true);
  }
  STELE_ASSERT(m.active.made());
}

bool serial_lock::acquire_serial(thread_state& m) noexcept {
  STELE_ASSERT(m.active.made());
  STELE_ASSERT(!is_serial(m));  // nested, it would be released too early
  // A thread that enters later sees serial_owner_; one that is inside already is seen in the loop.
  if (!serial_owner_.try_close(nullptr, &m)) return false;
  for (const thread_state* other = first_.load(std::memory_order_acquire); other != nullptr;
       other = other->next)
    if (other != &m) other->active.await_withdrawal(::sched_yield);
  STELE_ASSERT(is_serial(m));
  return true;
}

void serial_lock::release_serial() noexcept {
  STELE_ASSERT(serial_wanted());
  serial_owner_.open();
  serial_owner_.notify_all();
}

void serial_lock::announce_outside_access(thread_state& m) noexcept {
  STELE_ASSERT(m.active.made());
  m.snapshot.store(1, std::memory_order_relaxed);
  if (!m.announced) [[unlikely]] {
    m.announced = true;
    outside_accessors_.fetch_add(1, std::memory_order_relaxed);
    // Orders outside_accessors_ before m's reads: a commit that does not see the new accessor is
    // seen by them.
    base::asymmetric_fence_heavy();
  }
  if (multithreaded_.load(std::memory_order_relaxed))
    // Orders the snapshot before m's reads: they see every commit that does not see the snapshot.
    std::atomic_thread_fence(std::memory_order_seq_cst);
  else
    base::asymmetric_fence_light();
}

void serial_lock::wait_for_older_slow(std::uint64_t commit) const noexcept {
  // Orders the commit before the loads of `snapshot`: a thread that is not seen here sees the
  // commit.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (const thread_state* other = first_.load(std::memory_order_acquire); other != nullptr;
       other = other->next) {
    for (unsigned looks = 0;; ++looks) {
      const std::uint64_t seen = other->snapshot.load(std::memory_order_acquire);
      if (seen == 0 || seen > commit) break;
      if (looks > 64) ::sched_yield();
    }
  }
}

void serial_lock::reset_after_fork(const thread_state* left) noexcept {
  for (thread_state* m = first_.load(std::memory_order_relaxed); m != nullptr; m = m->next) {
    if (m == left) continue;
    m->announced = false;
    m->active.withdraw();
    m->snapshot.store(0, std::memory_order_relaxed);
    m->in_use.store(false, std::memory_order_relaxed);
  }
  // Counted anew: another thread may have been between announcing itself and being counted.
  outside_accessors_.store(left != nullptr && left->announced, std::memory_order_relaxed);
  if (serial_owner_.peek() != left) serial_owner_.set(nullptr);
  STELE_ASSERT_ALWAYS(!serial_wanted() || left->active.made());
  STELE_ASSERT_WHOLE(counts_announced());
}

}  // namespace stele::itm
