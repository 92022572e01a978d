// The members of pool<Root> that only call the runtime.
#pragma once

#include <stele/pool.h>

namespace stele::detail {

[[nodiscard]] result<> sync_pool(runtime& r);
[[nodiscard]] result<> close_pool(runtime& r);
// Errors: poisoned; read_only, if the pool's name does not lead to its file any more.
[[nodiscard]] result<> check_usable(runtime& r);
std::uint64_t newest_commit(const runtime& r) noexcept;
void notify_when_durable(runtime& r, std::uint64_t commit,
                         std::function<void(result<>)> on_durable);
[[nodiscard]] result<> back_up(runtime& r, const std::string& path, const progress& report);
[[nodiscard]] result<> grow(runtime& r, std::size_t size_bytes);
[[nodiscard]] result<> check_storage(runtime& r);
pool_counters counters_of(const runtime& r) noexcept;
pool_space space_of(runtime& r);
durability_level durability_of(const runtime& r) noexcept;
std::string mechanism_of(const runtime& r);

}  // namespace stele::detail

namespace stele {

template <class Root>
result<> pool<Root>::sync() {
  return detail::sync_pool(handle_.core());
}
template <class Root>
ticket pool<Root>::committed() const noexcept {
  return {detail::newest_commit(handle_.core())};
}
template <class Root>
result<> pool<Root>::wait(ticket) {
  return detail::sync_pool(handle_.core());
}
template <class Root>
void pool<Root>::when_durable(ticket t, std::function<void(result<>)> on_durable) {
  detail::notify_when_durable(handle_.core(), t.commit, std::move(on_durable));
}
template <class Root>
result<> pool<Root>::backup(const std::string& path, const progress& report) {
  return detail::back_up(handle_.core(), path, report);
}
template <class Root>
result<> pool<Root>::grow(std::size_t size_bytes) {
  return detail::grow(handle_.core(), size_bytes);
}
template <class Root>
result<> pool<Root>::check() {
  if (auto status = detail::check_storage(handle_.core()); !status) return status;
  if constexpr (requires(const Root& root) { root.check(); })
    return read([](const Root& root) { return root.check(); });
  else
    return {};
}
template <class Root>
pool_counters pool<Root>::counters() const noexcept {
  return detail::counters_of(handle_.core());
}
template <class Root>
pool_space pool<Root>::space() const {
  return detail::space_of(handle_.core());
}
template <class Root>
durability_level pool<Root>::durability_in_force() const noexcept {
  return detail::durability_of(handle_.core());
}
template <class Root>
std::string pool<Root>::mechanism() const {
  return detail::mechanism_of(handle_.core());
}
template <class Root>
result<> pool<Root>::close() {
  return detail::close_pool(handle_.core());
}

}  // namespace stele
