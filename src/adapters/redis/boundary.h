// Functions that the server, which is in C, calls: no exception may leave them.
#pragma once

#include <new>

namespace stele::redis {

// Ends the process, as Redis does when it is refused memory itself: something was begun that can
// neither go on nor be taken back.
[[noreturn]] void end_without_memory() noexcept;

// The function, ended so when it is refused memory.
template <auto Function>
struct bounded_function;
template <class Answer, class... Words, Answer (*Function)(Words...)>
struct bounded_function<Function> {
  static Answer call(Words... words) noexcept {
    try {
      return Function(words...);
    } catch (const std::bad_alloc&) {
      end_without_memory();
    }
  }
};
template <auto Function>
constexpr auto bounded = &bounded_function<Function>::call;

}  // namespace stele::redis
