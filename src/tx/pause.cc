// Pauses of an open pool, and what needs one: a transaction that runs alone, and the snapshots that
// keep pages before they are stored to. The parts are in session/; here is what a pause does with
// several of them. Allocates no memory, as session/pauses.h says.
#include <base/assert.h>
#include <tx/attempt.h>
#include <tx/open.h>
#include <tx/runtime.h>

#include <utility>

namespace stele::detail {

pool_pause runtime::pause(std::unique_lock<std::mutex> one, const thread_context* except) noexcept {
  pool_pause paused = pauses_.begin(threads_, std::move(one), except);
  if (engine_ != nullptr) engine_->flush_deferred();
  // Of a poisoned pool, what is not home stays in the overlays.
  STELE_ASSERT(state_->deferred_logs.load(std::memory_order_relaxed) == 0 ||
               state_->poisoned.load(std::memory_order_relaxed));
  threads_.retire_stopped(except, state_->poisoned);
  return paused;
}

bool runtime::is_paused_by_this_report() const noexcept {
  return in_place() && report_scope::exists(*this);
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
  if (policy() != concurrency::stm || v.runs_alone) return;
  pauses_.run_alone(v, [&](std::unique_lock<std::mutex> one) { return pause(std::move(one), &v); });
}

bool runtime::has_place_for_page_snapshot() const noexcept {
  STELE_ASSERT(is_paused());
  return page_snapshots_.has_place();
}

void runtime::add_page_snapshot(page_snapshot& s) noexcept {
  STELE_ASSERT(is_paused());
  page_snapshots_.add(s);
}

void runtime::remove_page_snapshot(page_snapshot& s) noexcept {
  STELE_ASSERT(is_paused());
  page_snapshots_.remove(s);
}

void runtime::keep_page(std::uint64_t offset) noexcept {
  STELE_ASSERT(offset >= state_->file.header().home_offset && offset < size());
  page_snapshots_.keep(offset);
}

}  // namespace stele::detail
