// The SIGBUS handler and its guarded ranges. The handler takes no lock: slots are atomics, and a
// range is removed before its memory is unmapped.
#include <base/assert.h>
#include <media/sigbus_guard.h>
#include <signal.h>
#include <sys/mman.h>

#include <cstdint>
#include <iterator>
#include <utility>

namespace stele::media {

namespace {

struct guarded_range {
  std::atomic<bool> taken{false};
  std::atomic<std::uintptr_t> begin{0}, end{0};
  std::atomic<std::atomic<bool>*> lost{nullptr};
};
guarded_range guarded_ranges[1024];
struct sigaction previous_action;

constexpr std::uintptr_t page = 4096;

bool replace_page(std::uintptr_t address) noexcept {
  for (guarded_range& g : guarded_ranges) {
    if (address < g.begin.load(std::memory_order_acquire) ||
        address >= g.end.load(std::memory_order_acquire))
      continue;
    std::atomic<bool>* const lost = g.lost.load(std::memory_order_acquire);
    if (lost == nullptr) continue;
    lost->store(true);
    void* const at = reinterpret_cast<void*>(address / page * page);
    return ::mmap(at, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                  0) == at;
  }
  return false;
}

void handle(int signal, siginfo_t* info, void* context) noexcept {
  if (replace_page(reinterpret_cast<std::uintptr_t>(info->si_addr))) return;
  if ((previous_action.sa_flags & SA_SIGINFO) != 0)
    return previous_action.sa_sigaction(signal, info, context);
  if (previous_action.sa_handler != SIG_DFL && previous_action.sa_handler != SIG_IGN)
    return previous_action.sa_handler(signal);
  // The instruction faults again, and the process ends as it would have without the handler.
  ::signal(SIGBUS, SIG_DFL);
}

void install() noexcept {
  static const bool once = [] {
    struct sigaction action = {};
    action.sa_sigaction = handle;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    return ::sigaction(SIGBUS, &action, &previous_action) == 0;
  }();
  (void)once;
}

}  // namespace

sigbus_guard::sigbus_guard(const std::byte* begin, std::size_t size,
                           std::atomic<bool>& lost) noexcept {
  STELE_ASSERT_ALWAYS(begin != nullptr && size != 0 &&
                      reinterpret_cast<std::uintptr_t>(begin) % page == 0);
  install();
  for (int i = 0; i < static_cast<int>(std::size(guarded_ranges)) && slot_ < 0; ++i)
    if (bool expected = false; guarded_ranges[i].taken.compare_exchange_strong(expected, true))
      slot_ = i;
  if (slot_ < 0) return;
  guarded_range& g = guarded_ranges[slot_];
  const auto first = reinterpret_cast<std::uintptr_t>(begin);
  g.lost.store(&lost, std::memory_order_release);
  g.begin.store(first, std::memory_order_release);
  g.end.store(first + size, std::memory_order_release);
}

sigbus_guard::sigbus_guard(sigbus_guard&& other) noexcept : slot_(std::exchange(other.slot_, -1)) {}
sigbus_guard& sigbus_guard::operator=(sigbus_guard&& other) noexcept {
  std::swap(slot_, other.slot_);
  return *this;
}

sigbus_guard::~sigbus_guard() {
  if (slot_ < 0) return;
  STELE_ASSERT_ALWAYS(slot_ < static_cast<int>(std::size(guarded_ranges)));
  guarded_range& g = guarded_ranges[slot_];
  g.end.store(0, std::memory_order_release);
  g.begin.store(0, std::memory_order_release);
  g.lost.store(nullptr, std::memory_order_release);
  g.taken.store(false, std::memory_order_release);
}

}  // namespace stele::media
