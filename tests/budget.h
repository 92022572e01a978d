// How many inputs, runs or kills a test makes.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace stele::budget {

#ifdef STELE_SANITIZED
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif
// Sanitizers are about ten times slower, so tests make a tenth.
inline constexpr unsigned slowness = sanitized ? 10 : 1;

// A count from an environment variable, so that long runs need no other build.
inline std::uint64_t count_from(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 0);
}

}  // namespace stele::budget
