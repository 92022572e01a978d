// How the bias is taken away.
#include <sched.h>
#include <tx/session/bias.h>

#include <algorithm>

namespace stele::detail {

// Until the thread's last transaction without locks has ended, being_revoked_ holds the bias, so
// that every thread that begins waits here.
void bias::revoke(const thread_context& v) {
  const std::lock_guard hold(mutex_);
  const thread_context* const other = holder_.peek();
  if (other == nullptr || other == &v) return;
  STELE_ASSERT(other != &being_revoked_);  // one revocation at a time
  STELE_ASSERT(!v.in_transaction.made());  // or two threads would wait for each other
  holder_.close(&being_revoked_);
  threshold_.store(std::min(2 * threshold_, max_threshold));
  if (!planted_in_schedule_explorer(base::mutant::bias_unawaited))
    other->in_transaction.await_withdrawal(::sched_yield);
  holder_.open();
}

// A thread that revokes the bias holds the mutex until then.
void bias::give_up(const thread_context& v) {
  STELE_ASSERT(!v.in_transaction.made());
  const std::lock_guard hold(mutex_);
  if (is_of(v)) holder_.open();
}

void bias::forget(const thread_context& v) noexcept {
  if (is_of(v)) holder_.set(nullptr);
}

}  // namespace stele::detail
