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
  std::uint64_t seen = greatest.load(std::memory_order_relaxed);
  for (;;) {
    // Read after `seen`, so that a thread that paused here does not take its own delay for a step.
    const std::uint64_t now = clock_source.load(std::memory_order_relaxed)();
    if (seen >= now && seen - now <= kv_clock_greatest_step_back_ms) return seen;
    if (greatest.compare_exchange_weak(seen, now, std::memory_order_relaxed)) return now;
  }
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
