// What long work tells of itself.
#pragma once

#include <cstdint>
#include <functional>

namespace stele {

// Called now and then from the thread that works, with what is done and what there is to do, in
// bytes. False: stop; what was begun leaves nothing behind.
using progress = std::function<bool(std::uint64_t done, std::uint64_t all)>;

}  // namespace stele
