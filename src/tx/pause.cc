// Pauses of an open pool, and what needs one: a transaction that runs alone, and the snapshots that
// keep pages before they are stored to.
//
// A pause takes every log from its owner and waits for the transactions that run. A thread that
// begins meanwhile waits in acquire_log. Nothing here allocates memory: who pauses a pool may be
// ending a long read, or be a destructor.
#include <base/assert.h>
#include <base/asymmetric_gate.h>
#include <base/mutant.h>
#include <tx/attempt.h>
#include <tx/open.h>
#include <tx/runtime.h>

#include <algorithm>

namespace stele::detail {

// Takes every log from its owner, as acquire_log does. A thread that begins waits in acquire_log.
runtime::pause::pause(runtime& r) noexcept : pause(r, std::unique_lock(r.pause_mutex_), nullptr) {}
runtime::pause::pause(runtime& r, std::unique_lock<std::mutex> one,
                      const thread_context* except) noexcept
    : runtime_(r), one_(std::move(one)), except_(except) {
  STELE_ASSERT(one_.owns_lock() && one_.mutex() == &r.pause_mutex_);
  stop();
  base::asymmetric_fence_heavy();  // once for all logs
  wait();
  if (r.engine_ != nullptr) r.engine_->flush_deferred();
  // Of a poisoned pool, what is not home stays in the overlays.
  STELE_ASSERT(r.state_->deferred_logs.load(std::memory_order_relaxed) == 0 ||
               r.state_->poisoned.load(std::memory_order_relaxed));
  const std::lock_guard hold(r.registry_);
  for (log_slot& p : r.log_slots_) {
    const thread_context* const owner = p.owner.peek();
    STELE_ASSERT(owner == nullptr || owner == except_);
    if (!p.tx || owner != nullptr) continue;
    STELE_ASSERT(this_access.running != p.tx.get() || this_access.size == 0);
    if (p.tx->has_overlay() && !r.state_->poisoned.load()) p.tx->release_overlay();
    p.tx->return_cached_blocks();
  }
}

void runtime::pause::stop() noexcept {
  const std::lock_guard hold(runtime_.registry_);
  STELE_ASSERT(!runtime_.paused_);
  runtime_.paused_ = true;
  for (log_slot& p : runtime_.log_slots_) {
    const bool takes = except_ == nullptr || p.owner.peek() != except_;
    p.paused_owner = takes ? p.owner.exchange(nullptr) : nullptr;
  }
}

void runtime::pause::wait() noexcept {
  for (log_slot& p : runtime_.log_slots_)
    while (p.paused_owner != nullptr && is_in_transaction(p.paused_owner)) ::sched_yield();
}

// The thread_context of a thread that has ended does not exist any more: false.
bool runtime::pause::is_in_transaction(const thread_context* v) const noexcept {
  const std::lock_guard hold(runtime_.threads_mutex_);
  const auto known = std::ranges::find(runtime_.threads_, v, &std::unique_ptr<thread_context>::get);
  return known != runtime_.threads_.end() && v->in_transaction.seen();
}

runtime::pause::~pause() {
  const std::lock_guard hold(runtime_.registry_);
  STELE_ASSERT(runtime_.paused_ && one_.owns_lock());
  runtime_.paused_ = false;
  runtime_.log_released_.notify_all();
}

bool runtime::is_paused_by_this_report() const noexcept {
  return in_place_ && report_scope::exists(*this);
}

std::unexpected<error> runtime::reporting_error() const {
  return base::fail(errc::nested,
                    state_->file.path() +
                        " cannot be used by the report of its backup: with this mechanism and "
                        "policy all transactions wait until the backup has ended");
}

void runtime::run_alone(thread_context& v) noexcept {
  STELE_ASSERT(v.tx != nullptr && this_attempt.context == &v && this_attempt.ended != 0);
  STELE_ASSERT(this_access.size == 0);
  if (policy() != concurrency::stm || v.runs_alone || !alone_mutex_.try_lock()) return;
  STELE_ASSERT(!alone_);
  // A pause that waits holds this mutex until our transaction has ended.
  if (std::unique_lock one(pause_mutex_, std::try_to_lock); one.owns_lock()) {
    alone_.emplace(*this, std::move(one), &v);
    v.runs_alone = true;
  } else {
    alone_mutex_.unlock();
  }
}

void runtime::end_running_alone(thread_context& v) noexcept {
  STELE_ASSERT(v.runs_alone && alone_);
  v.runs_alone = false;
  alone_.reset();
  alone_mutex_.unlock();
}

bool runtime::has_place_for_page_snapshot() const noexcept {
  STELE_ASSERT(is_paused());
  return std::ranges::find(page_snapshots_, nullptr) != page_snapshots_.end();
}

bool runtime::counts_page_snapshots() const noexcept {
  const auto places = std::ranges::count(page_snapshots_, nullptr);
  return base::holds(page_snapshots_.size() - static_cast<std::size_t>(places) ==
                     page_snapshot_count_.load(std::memory_order_relaxed));
}

void runtime::add_page_snapshot(page_snapshot& s) noexcept {
  STELE_ASSERT(is_paused());
  STELE_ASSERT(std::ranges::find(page_snapshots_, &s) == page_snapshots_.end());
  page_snapshot** const place = std::ranges::find(page_snapshots_, nullptr);
  STELE_ASSERT(place != page_snapshots_.end());
  *place = &s;
  page_snapshot_count_.fetch_add(1, std::memory_order_release);
  STELE_ASSERT_WHOLE(counts_page_snapshots());
}

void runtime::remove_page_snapshot(page_snapshot& s) noexcept {
  STELE_ASSERT(is_paused());
  page_snapshot** const place = std::ranges::find(page_snapshots_, &s);
  STELE_ASSERT(place != page_snapshots_.end());
  *place = nullptr;
  page_snapshot_count_.fetch_sub(1, std::memory_order_release);
  STELE_ASSERT_WHOLE(counts_page_snapshots());
}

void runtime::keep_page(std::uint64_t offset) noexcept {
  STELE_ASSERT(offset >= state_->file.header().home_offset && offset < size());
  for (page_snapshot* const s : page_snapshots_)
    if (s != nullptr) s->before_store(offset);
}

}  // namespace stele::detail
