// Errors: whatever input, hardware or a user can cause comes back as a value that says what, where
// and what to do.
//
// Nothing in the library ends the program for such a cause. `failure` carries an error out of a
// transaction's body (an allocation that does not fit, say); `pool::update` rolls back, catches it
// and returns the error.
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
  invalid_argument,  // the call's arguments are off
  not_found,         // no such file, directory or name
  exists,            // creating would overwrite
  permission,        // the operating system refuses
  read_only,         // a write where only reading is possible
  in_use,            // another process or handle has the pool open
  not_a_pool,        // the file is no pool (foreign or empty)
  version,           // a pool of another format version
  corrupt,           // the pool contradicts itself
  lost,    // committed data that a mechanism which flushes less could not restore after a crash;
           // nothing is passed as good
  layout,  // the pool holds another layout name or root
  full,    // no space left in the pool or on the device
  io,      // the device or operating system failed
  unsupported,  // this machine or medium cannot do it
  nested,       // a transaction on another pool is running in this thread
  cancelled,    // the body asked for roll-back
  poisoned,     // an earlier I/O error at commit; reopen the pool
};

// The short name of a code, e.g. "in_use". Thread-safe.
const char* name_of(errc code) noexcept;

struct error {
  errc code;
  std::string message;  // one sentence or more: what, where, what to do
};

template <class T = void>
using result = std::expected<T, error>;

// Thrown by operations inside a transaction's body; never escapes `pool::update` or `pool::read`.
class failure : public std::exception {
 public:
  explicit failure(error e) : error_(std::move(e)) {}
  const char* what() const noexcept override { return error_.message.c_str(); }
  const error& why() const noexcept { return error_; }

 private:
  error error_;
};

// Rolls the running transaction back; `pool::update` returns errc::cancelled with this message.
[[noreturn]] void cancel(std::string message);

}  // namespace stele
