// Redis is written in C: no exception may leave a function that it calls.
#pragma once

#include <new>

namespace stele::redis {

// Ends the process for lack of memory, as Redis does, within an operation that can neither continue
// nor be rolled back.
[[noreturn]] void end_without_memory() noexcept;

// The function, with bad_alloc turned into end_without_memory().
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
