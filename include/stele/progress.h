// The callback by which a long operation reports its progress and can be stopped.
//
//   auto copied = pool.backup("copy.stele", [](std::uint64_t done, std::uint64_t all) {
//     std::printf("%lu of %lu bytes\n", done, all);
//     return true;  // false: stop, and leave no file
//   });
#pragma once

#include <cstdint>
#include <functional>

namespace stele {

// Called from time to time by the working thread, with bytes done and bytes in all. If it returns
// false, the operation stops and undoes what it has begun.
using progress = std::function<bool(std::uint64_t done, std::uint64_t all)>;

}  // namespace stele
