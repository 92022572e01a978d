// Shared by the functions of stele.h: turns errors into a code and a message, and keeps exceptions
// out of C frames.
//
// A failed call inside a body (a conflict, a full pool) is recorded in the stele_tx, and the body's
// further calls return the same code. When the body's frame has ended, run_body throws the
// exception again, so that the transaction is run again or rolled back. This file knows no pools
// and stores; pool.cc, transaction.cc and kv.cc do.
#pragma once

#include <base/assert.h>
#include <stele/pool.h>
#include <stele/stele.h>

#include <cstring>
#include <exception>
#include <string>
#include <type_traits>

// The transaction of a C body.
struct stele_tx {
  stele::detail::runtime* pool;
  int state = STELE_OK;         // state of the attempt
  std::exception_ptr thrown{};  // the exception that set it
};

namespace stele::capi {

// The transaction whose body runs in this thread, or null.
extern constinit thread_local stele_tx* running;

constexpr int code_of(errc code) noexcept {
  return -1 - static_cast<int>(code);
}

// Stores the message for stele_error_message and returns the code.
int set_last_error(int code, const char* message) noexcept;
int set_last_error(const error& e) noexcept;
// The same for the current exception. Inside a body it also ends the attempt.
int set_error_from_exception() noexcept;

// Throws failure(errc::invalid_argument).
[[noreturn]] void throw_invalid_argument(std::string message);
template <class T>
T* required(T* pointer, const char* name) {
  if (pointer == nullptr) throw_invalid_argument(std::string("the argument ") + name + " is null");
  return pointer;
}
durability durability_of(int d);
pool_options options_of(const stele_options* options);

inline int code_of(const result<>& r) noexcept {
  return r ? STELE_OK : set_last_error(r.error());
}

// Calls f() -> result<>. Inside a running transaction an error of f ends the attempt.
template <class F>
int call(F&& f) noexcept {
  if (running != nullptr && running->state != STELE_OK) return running->state;
  try {
    const result<> r = f();
    if (!r && running != nullptr) throw failure(r.error());
    return code_of(r);
  } catch (...) {
    return set_error_from_exception();
  }
}

// Calls f() in the transaction tx.
template <class F>
int call_in_transaction(const stele_tx* tx, F&& f) noexcept {
  if (tx == nullptr || tx != running)
    return set_last_error(
        STELE_INVALID_ARGUMENT,
        "the argument tx is not the transaction of the body that this thread is running");
  // An exception ends the attempt; run_body throws it again.
  STELE_ASSERT((tx->state == STELE_OK) == (tx->thrown == nullptr));
  if (tx->state != STELE_OK) return tx->state;
  try {
    f();
    return STELE_OK;
  } catch (...) {
    return set_error_from_exception();
  }
}

// Sets the thread's transaction while a body runs.
class body_scope {
 public:
  explicit body_scope(stele_tx& tx) noexcept : outer_(running) {
    STELE_ASSERT(outer_ != &tx && tx.state == STELE_OK);
    running = &tx;
  }
  ~body_scope() { running = outer_; }
  body_scope(const body_scope&) = delete;
  body_scope& operator=(const body_scope&) = delete;

 private:
  stele_tx* outer_;
};

// One attempt: throws the exception that the body's calls have met, else returns the body's value.
template <class Body>
int attempt_body(detail::runtime& pool, Body& body) {
  stele_tx tx{&pool};
  int own = 0;
  {
    const body_scope here(tx);
    own = body(&tx);
    STELE_ASSERT(running == &tx);  // bodies end in the opposite order of their beginnings
  }
  if (tx.thrown) std::rethrow_exception(tx.thrown);
  STELE_ASSERT(tx.state == STELE_OK && running != &tx);
  return own;
}

// Runs body(stele_tx*) -> int as a transaction on `pool`, or inside the running one.
template <class Body>
int run_body(detail::runtime& pool, bool writes, durability d, Body&& body) noexcept {
  if (running != nullptr && running->pool == &pool) {
    if (running->state != STELE_OK) return running->state;
    STELE_ASSERT(running->thrown == nullptr);
    const int own = body(running);
    return running->state != STELE_OK ? running->state : own;
  }
  int own = 0;
  const auto attempt = [&]() -> result<> {
    own = 0;
    own = attempt_body(pool, body);
    if (own == 0) return {};
    return std::unexpected(error{
        errc::cancelled, "the body ended with " + std::to_string(own) + "; nothing was changed"});
  };
  const int code = call([&] {
    return writes ? detail::update_pool(pool, d, attempt) : detail::read_pool(pool, attempt);
  });
  return own != 0 ? own : code;
}

// Copies the members that the caller's version of the struct has.
template <class T>
void copy_known(T* to, std::size_t known, const T& from) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::memcpy(required(to, "to"), &from, known < sizeof(T) ? known : sizeof(T));
}

}  // namespace stele::capi
