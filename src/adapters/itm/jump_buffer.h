// The registers with which a block began, and going back to them.
//
// _ITM_beginTransaction (jump_buffer_x86_64.S, the only file of this adapter that knows a
// processor) fills a jump_buffer and calls stele_itm_begin; its answer is what the block sees.
// stele_itm_resume returns from that call of _ITM_beginTransaction once more, with another answer;
// the frame that called it must still be there.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stele::itm {

struct jump_buffer {
  std::uintptr_t stack;           // its caller's stack pointer when it has returned
  std::uintptr_t saved[6];        // the registers that calls keep
  std::uintptr_t return_address;  // where it returns to
};
static_assert(offsetof(jump_buffer, saved) == 8 && offsetof(jump_buffer, return_address) == 56 &&
              sizeof(jump_buffer) == 64);

// Word by word, as it was stored a moment ago: a wider load would wait until the stores before it
// have left the processor.
inline void copy_words(jump_buffer& to, const jump_buffer& from) noexcept {
  const auto word = [](const std::uintptr_t& w) { return __atomic_load_n(&w, __ATOMIC_RELAXED); };
  to.stack = word(from.stack);
  for (int i = 0; i < 6; ++i) to.saved[i] = word(from.saved[i]);
  to.return_address = word(from.return_address);
}

}  // namespace stele::itm

extern "C" {
std::uint32_t stele_itm_begin(std::uint32_t properties, const stele::itm::jump_buffer* from);
[[noreturn]] void stele_itm_resume(std::uint32_t actions, const stele::itm::jump_buffer* to);
}
