// The system call behind asymmetric_fence_heavy.
#include <base/asymmetric_gate.h>
#include <base/check.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace stele::base {

static long membarrier(int command) noexcept {
  return ::syscall(SYS_membarrier, command, 0, 0);
}

const bool has_membarrier = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;

// The light fences are none then, so there is nothing to fall back to. The kernel asks for memory
// and may find none; any other error is of a sandbox that came after the registration.
void asymmetric_fence_heavy() noexcept {
  while (has_membarrier && membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0) {
    check(errno == ENOMEM, "membarrier(2) is refused, which was allowed when the program began");
    ::sched_yield();
  }
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

}  // namespace stele::base
