// The clock of items that expire.
#include <containers/kv_clock.h>

#include <algorithm>
#include <atomic>
#include <chrono>

namespace stele::detail {

namespace {

std::uint64_t system_milliseconds() noexcept {
  using namespace std::chrono;
  const auto now = duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
  return static_cast<std::uint64_t>(std::max<std::int64_t>(now, 0));
}

std::atomic<std::uint64_t (*)() noexcept> clock_source = system_milliseconds;
std::atomic<std::uint64_t> greatest = 0;

}  // namespace

std::uint64_t kv_now() noexcept {
  const std::uint64_t now = clock_source.load(std::memory_order_relaxed)();
  std::uint64_t seen = greatest.load(std::memory_order_relaxed);
  while (seen < now && !greatest.compare_exchange_weak(seen, now, std::memory_order_relaxed)) {
  }
  return std::max(seen, now);
}

std::uint64_t kv_clock_behind() noexcept {
  const std::uint64_t shown = kv_now();
  return shown - std::min(shown, clock_source.load(std::memory_order_relaxed)());
}

void set_kv_clock(std::uint64_t (*clock)() noexcept) noexcept {
  clock_source = clock == nullptr ? system_milliseconds : clock;
  greatest = 0;
}

}  // namespace stele::detail
