// For the body of a loop that polls.
#pragma once

#include <media/cpu.h>

#include <thread>

namespace stele::media {

// Every 64th call lets another thread run: there may be more threads than processors.
inline void spin_pause(unsigned& calls) noexcept {
  if (++calls % 64 != 0)
    cpu::relax();
  else
    std::this_thread::yield();
}

}  // namespace stele::media
