// Runs a body that may die. A signal (a wild pointer, a failed check, an endless loop) becomes a
// return value.
//
// After a signal the body's objects stay as they were: locks may be held, a transaction may be
// running in this thread. The caller may only report the signal and end the run. A process explores
// again only after a run without a signal.
#pragma once

#include <cstddef>
#include <functional>

namespace stele::explore {

// Returns 0, or the signal that ended the body: SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT; SIGALRM
// when reset_watchdog() was not called for more than `timeout_s` seconds. One call at a time. A
// signal in another thread is not caught.
int run_trapped(const std::function<void()>& body, unsigned timeout_s);
constexpr unsigned timeout_for(std::size_t pool_size) noexcept {
  return 5 + static_cast<unsigned>(pool_size >> 22);
}
void reset_watchdog() noexcept;

// For a process of its own (child_output.h): after a signal in a body it has 5 s to report, then
// SIGALRM ends it. The signal may have come within malloc(), whose lock then stays held for ever.
void limit_reports() noexcept;

const char* describe_signal(int signal) noexcept;

}  // namespace stele::explore
