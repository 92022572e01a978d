// Saves the registers at the begin of a block and restores them.
//
// _ITM_beginTransaction (jump_buffer_x86_64.S, the only file of this adapter that depends on the
// processor) fills a jump_buffer and calls stele_itm_begin; the block receives its result.
// stele_itm_resume returns from that call of _ITM_beginTransaction once more, with another result.
// The calling frame must still exist.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stele::itm {

struct jump_buffer {
  std::uintptr_t stack;           // stack pointer of the caller after the return
  std::uintptr_t saved[6];        // the callee-saved registers
  std::uintptr_t return_address;  // where _ITM_beginTransaction returns to
};
static_assert(offsetof(jump_buffer, saved) == 8 && offsetof(jump_buffer, return_address) == 56 &&
              sizeof(jump_buffer) == 64);

// Copies word by word, as the words were just stored: a wider load would have to wait until those
// stores have left the processor.
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
