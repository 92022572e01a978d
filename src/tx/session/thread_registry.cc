// How threads come and go, and how a pause takes their logs.
#include <base/mutant.h>
#include <sched.h>
#include <tx/session/thread_registry.h>

#include <algorithm>

namespace stele::detail {

thread_context& thread_registry::add() {
  const std::scoped_lock hold(mutex_, threads_mutex_);
  threads_.push_back(std::make_unique<thread_context>());
  return *threads_.back();
}

void thread_registry::remove(thread_context& v) noexcept {
  for (log_slot& p : slots_)
    if (p.owner.peek() == &v) {
      if (p.tx) p.tx->return_cached_blocks();
      p.owner.open();
    }
  const std::lock_guard hold_threads(threads_mutex_);
  [[maybe_unused]] const std::size_t erased =
      std::erase_if(threads_, [&](const auto& known) { return known.get() == &v; });
  STELE_ASSERT(erased == 1);
  STELE_ASSERT_WHOLE(!owns_a_log(v));
  released_.notify_one();
}

bool thread_registry::owns_a_log(const thread_context& v) const noexcept {
  return std::ranges::any_of(slots_, [&](const log_slot& p) { return p.owner.peek() == &v; });
}

bool thread_registry::runs_transaction() const noexcept {
  return std::ranges::any_of(threads_, [](const auto& v) { return v->in_transaction.seen(); });
}

bool thread_registry::others_run(const thread_context& v) const noexcept {
  const std::lock_guard hold(threads_mutex_);
  return std::ranges::any_of(
      threads_, [&](const auto& o) { return o.get() != &v && o->in_transaction.seen(); });
}

const thread_context* thread_registry::user_of(const log_slot& p) const noexcept {
  if (const thread_context* const owner = p.owner.peek(); owner != nullptr) return owner;
  if (!paused_ || planted(base::mutant::retire_paused)) return nullptr;
  const auto known =
      std::ranges::find(threads_, p.paused_owner, &std::unique_ptr<thread_context>::get);
  return known != threads_.end() ? p.paused_owner : nullptr;
}

void thread_registry::reclaim_idle_caches(const thread_context& v) noexcept {
  const std::lock_guard hold(mutex_);
  for (log_slot& p : slots_) {
    thread_context* const owner = p.owner.peek();
    if (owner == nullptr || owner == &v) continue;
    p.owner.close(nullptr);  // as in acquire()
    if (owner->in_transaction.seen())
      p.owner.open(owner);
    else if (p.tx)
      p.tx->return_cached_blocks();
  }
}

// As acquire() takes one.
void thread_registry::stop(const thread_context* except) noexcept {
  const std::lock_guard hold(mutex_);
  STELE_ASSERT(!paused_);
  paused_ = true;
  for (log_slot& p : slots_) {
    const bool takes = except == nullptr || p.owner.peek() != except;
    p.paused_owner = takes ? p.owner.exchange(nullptr) : nullptr;
  }
}

void thread_registry::await_stopped() const noexcept {
  for (const log_slot& p : slots_)
    while (p.paused_owner != nullptr && is_in_transaction(p.paused_owner)) ::sched_yield();
}

// The thread_context of a thread that has ended does not exist any more: false.
bool thread_registry::is_in_transaction(const thread_context* v) const noexcept {
  const std::lock_guard hold(threads_mutex_);
  const auto known = std::ranges::find(threads_, v, &std::unique_ptr<thread_context>::get);
  return known != threads_.end() && v->in_transaction.seen();
}

void thread_registry::retire_stopped(const thread_context* except,
                                     const std::atomic<bool>& poisoned) noexcept {
  const std::lock_guard hold(mutex_);
  for (log_slot& p : slots_) {
    const thread_context* const owner = p.owner.peek();
    STELE_ASSERT(owner == nullptr || owner == except);
    if (!p.tx || owner != nullptr) continue;
    STELE_ASSERT(this_access.running != p.tx.get() || this_access.size == 0);
    if (p.tx->has_overlay() && !poisoned.load()) p.tx->release_overlay();
    p.tx->return_cached_blocks();
  }
}

void thread_registry::resume() noexcept {
  const std::lock_guard hold(mutex_);
  STELE_ASSERT(paused_);
  paused_ = false;
  released_.notify_all();
}

void thread_registry::reopen() noexcept {
  const std::lock_guard hold(mutex_);
  STELE_ASSERT(closed_);
  closed_ = false;
}

void thread_registry::count_ended_read(const statistics& counts) noexcept {
  const std::lock_guard hold(mutex_);
  ended_reads_.add(counts);
}

void thread_registry::add_counts(pool_counters& c) const noexcept {
  for (const log_slot& p : slots_) p.counts.add_to(c);
  ended_reads_.add_to(c);
}

std::uint64_t thread_registry::newest_commit() const noexcept {
  std::uint64_t newest = 0;
  for (const log_slot& p : slots_) newest = std::max(newest, p.counts.newest());
  return newest;
}

}  // namespace stele::detail
