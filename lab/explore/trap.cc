// Catches signals by a jump out of the handler. The handler has a stack of its own, so that endless
// recursion is caught too.
#include <explore/trap.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <utility>

namespace stele::explore {

namespace {

constexpr std::array fatal = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM};

sigjmp_buf jump_target;
pid_t trapping_thread = 0;
std::atomic<unsigned> seconds_since_reset{0};
unsigned watchdog_timeout_s = 0;
unsigned report_timeout_s = 0;  // 0: as long as it takes
alignas(64) std::array<std::byte, 1 << 16> handler_stack;

void on_signal(int signal) {
  if (signal == SIGALRM && seconds_since_reset.fetch_add(1) + 1 <= watchdog_timeout_s) return;
  if (trapping_thread == gettid()) siglongjmp(jump_target, signal);
  if (signal == SIGALRM) return;
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

void tick_every(long seconds) {
  const itimerval timer{{seconds, 0}, {seconds, 0}};
  ::setitimer(ITIMER_REAL, &timer, nullptr);
}

void use_handler_stack() {
  stack_t stack{};
  stack.ss_sp = handler_stack.data();
  stack.ss_size = handler_stack.size();
  ::sigaltstack(&stack, nullptr);
}

}  // namespace

int run_trapped(const std::function<void()>& body, unsigned timeout_s) {
  std::array<struct sigaction, fatal.size()> before;
  struct sigaction action{};
  action.sa_handler = on_signal;
  action.sa_flags = SA_ONSTACK | SA_NODEFER | SA_RESTART;
  use_handler_stack();
  for (std::size_t i = 0; i < fatal.size(); ++i) ::sigaction(fatal[i], &action, &before[i]);
  watchdog_timeout_s = timeout_s;
  seconds_since_reset = 0;
  trapping_thread = ::gettid();
  tick_every(1);
  const int signal = sigsetjmp(jump_target, 1);
  if (signal == 0) body();
  trapping_thread = 0;
  tick_every(0);
  for (std::size_t i = 0; i < fatal.size(); ++i) ::sigaction(fatal[i], &before[i], nullptr);
  if (signal != 0 && report_timeout_s != 0) {
    ::signal(SIGALRM, SIG_DFL);
    ::alarm(report_timeout_s);
  }
  return signal;
}

void limit_reports() noexcept {
  report_timeout_s = 5;
}

void reset_watchdog() noexcept {
  seconds_since_reset.store(0, std::memory_order_relaxed);
}

const char* describe_signal(int signal) noexcept {
  switch (signal) {
    case SIGSEGV:
    case SIGBUS:
      return "recovery or the workload followed a wild pointer";
    case SIGABRT:
      return "a check failed, or an exception escaped";
    case SIGALRM:
      return "it did not end within the time allowed";
    default:
      return "the program died";
  }
}

}  // namespace stele::explore
