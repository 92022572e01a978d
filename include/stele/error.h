// Errors are values: they report what input, hardware or a user can cause, with what, where and
// what to do.
//
//   auto half = [](int n) -> stele::result<int> {
//     if (n % 2 == 0) return n / 2;
//     return std::unexpected(stele::error{stele::errc::invalid_argument, "half: n is odd"});
//   };
//   if (auto h = half(3); !h) std::fprintf(stderr, "%s\n", h.error().message.c_str());
//
// No such cause ends the program. `failure` carries an error out of a transaction's body, for
// example from an allocation that does not fit. `pool::update` catches it, rolls back and returns
// the error.
#pragma once

#if __cplusplus < 202100L
#error "stele needs C++23: compile with -std=c++23"
#include "stele needs C++23: compile with -std=c++23"  // a file that is not there ends the compilation here
#endif

#include <cstdint>
#include <exception>
#include <expected>
#include <string>
#include <utility>

namespace stele {

enum class errc : std::uint8_t {
  invalid_argument,  // an argument is out of range
  not_found,         // no such file, directory or name
  exists,            // the file or name exists already
  permission,        // the operating system denies access
  read_only,         // a write where only reads are allowed
  in_use,            // another process or handle has the pool open
  not_a_pool,        // the file is no pool (foreign or empty)
  version,           // a pool of another format version
  corrupt,           // the pool's content is inconsistent
  // Recovery could not restore committed data, with a mechanism that flushes less than every
  // commit. Damaged data is never reported as good.
  lost,
  layout,       // the pool has another layout name or root
  full,         // no space left in the pool or on the device
  io,           // the device or operating system failed
  unsupported,  // not possible on this machine or medium
  nested,       // a transaction is running in this thread that this cannot be part of
  cancelled,    // the body asked for a roll-back
  poisoned,     // an earlier I/O error at commit; reopen the pool
  conflict,     // a held transaction has met another one; retry() or roll_back()
};

// The short name of a code, e.g. "in_use". Thread-safe.
const char* name_of(errc code) noexcept;

struct error {
  errc code;
  std::string message;  // one sentence or more: what, where, what to do
};

template <class T = void>
using result = std::expected<T, error>;

// Thrown inside a transaction's body; never leaves `pool::update` or `pool::read`.
class failure : public std::exception {
 public:
  explicit failure(error e) : error_(std::move(e)) {}
  const char* what() const noexcept override { return error_.message.c_str(); }
  const error& why() const noexcept { return error_; }

 private:
  error error_;
};

// Rolls back the running transaction; `pool::update` returns errc::cancelled with this message.
[[noreturn]] void cancel(std::string message);

}  // namespace stele
