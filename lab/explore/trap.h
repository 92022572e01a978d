// Runs a body that may die: a signal (a wild pointer, a failed check, a loop without end) becomes a
// number.
//
// After a signal the body's objects are as they were left: locks may be held, a transaction may be
// running in this thread. So the caller may say what happened and end the run, and nothing else; a
// process explores again only when none was caught.
#pragma once

#include <cstddef>
#include <functional>

namespace stele::explore {

// 0, or the signal that ended the body: SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT; SIGALRM for more
// than `timeout_s` seconds without a call of reset_watchdog(). One at a time; a signal in another
// thread is not caught.
int run_trapped(const std::function<void()>& body, unsigned timeout_s);
constexpr unsigned timeout_for(std::size_t pool_size) noexcept {
  return 5 + static_cast<unsigned>(pool_size >> 22);
}
void reset_watchdog() noexcept;

const char* describe_signal(int signal) noexcept;

}  // namespace stele::explore
