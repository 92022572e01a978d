// The system call behind asymmetric_fence_heavy.
#include <base/asymmetric_gate.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace stele::base {

const bool has_membarrier =
    ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;

void asymmetric_fence_heavy() noexcept {
  if (has_membarrier) ::syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

}  // namespace stele::base
