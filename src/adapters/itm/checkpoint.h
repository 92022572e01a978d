// The registers with which a block began, and going back to them.
//
// _ITM_beginTransaction (checkpoint_x86_64.S, the only file of this adapter that knows a processor) fills a checkpoint and calls
// stele_itm_begin; its answer is what the block sees. stele_itm_resume returns from that call of _ITM_beginTransaction once more,
// with another answer; the frame that called it must still be there.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stele::itm {

struct checkpoint {
  std::uintptr_t stack;      // its caller's stack pointer when it has returned
  std::uintptr_t saved[6];   // the registers that calls keep
  std::uintptr_t go_on;      // where it returns to
};
static_assert(offsetof(checkpoint, saved) == 8 && offsetof(checkpoint, go_on) == 56 && sizeof(checkpoint) == 64);

// Word by word, as it was stored a moment ago: a wider load would wait until the stores before it have left the processor.
inline void keep(checkpoint& to, const checkpoint& from) noexcept {
  const auto word = [](const std::uintptr_t& w) { return __atomic_load_n(&w, __ATOMIC_RELAXED); };
  to.stack = word(from.stack);
  for (int i = 0; i < 6; ++i) to.saved[i] = word(from.saved[i]);
  to.go_on = word(from.go_on);
}

}  // namespace stele::itm

extern "C" {
std::uint32_t stele_itm_begin(std::uint32_t properties, const stele::itm::checkpoint* from);
[[noreturn]] void stele_itm_resume(std::uint32_t actions, const stele::itm::checkpoint* to);
}
