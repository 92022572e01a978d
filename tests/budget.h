// How much a test goes through.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace stele::budget {

// Sanitizers take ten times as long, so it is a tenth there.
#ifdef STELE_SANITIZED
inline constexpr unsigned slowness = 10;
#else
inline constexpr unsigned slowness = 1;
#endif

// A count from the environment, so that long runs need no other build.
inline std::uint64_t count_from(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 0);
}

}  // namespace stele::budget
