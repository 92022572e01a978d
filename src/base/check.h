// check() ends the program with a message where continuing would damage a pool. It is for
// programmers' errors only. An error that input, hardware or a user can cause is a stele::error.
#pragma once

#include <stele/error.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <system_error>

namespace stele::base {

[[noreturn, gnu::cold]] inline void check_failed(const char* message, const char* file, int line) {
  std::fprintf(stderr, "stele: %s (%s:%d)\n", message, file, line);
  std::abort();
}

inline void check(bool condition, const char* message, const char* file = __builtin_FILE(),
                  int line = __builtin_LINE()) {
  if (!condition) [[unlikely]]
    check_failed(message, file, line);
}

inline std::unexpected<error> fail(errc code, std::string message) {
  return std::unexpected(error{code, std::move(message)});
}

// The error for a failed system call: "open /x: no such file or directory".
inline std::unexpected<error> fail_errno(errc code, const std::string& what, int number = errno) {
  return fail(code, what + ": " + std::generic_category().message(number));
}

}  // namespace stele::base
