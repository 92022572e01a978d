// How callbacks of commits are chosen and called.
#include <base/assert.h>
#include <tx/session/durable_callbacks.h>

#include <utility>

namespace stele::detail {

namespace {

result<> copy_result(const result<>& how) noexcept {
  if (how) return {};
  return std::unexpected(
      durable_callbacks::make_error(how.error().code, [&] { return how.error().message; }));
}

}  // namespace

void durable_callbacks::add(std::uint64_t txid, callback call) {
  const std::lock_guard hold(mutex_);
  by_txid_.emplace(txid, std::move(call));
  waiting_.store(true, std::memory_order_release);
}

void durable_callbacks::end(const result<>& how) noexcept {
  call(std::unique_lock(mutex_), ~std::uint64_t{0}, how);
}

// Takes over nodes of by_txid_, so it allocates no memory.
void durable_callbacks::call(std::unique_lock<std::mutex> hold, std::uint64_t through,
                             const result<>& how) noexcept {
  STELE_ASSERT(hold.owns_lock() && hold.mutex() == &mutex_);
  decltype(by_txid_) now;
  while (!by_txid_.empty() && by_txid_.begin()->first <= through)
    now.insert(now.end(), by_txid_.extract(by_txid_.begin()));
  waiting_.store(!by_txid_.empty(), std::memory_order_release);
  hold.unlock();
  for (const auto& [txid, told] : now) told(copy_result(how));
}

}  // namespace stele::detail
