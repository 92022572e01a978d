// A scheduler of real threads. One thread runs at a time, and a strategy chooses at each point
// which thread runs next. A run of threads is therefore a function of its choices, and can be
// repeated.
//
// Points are operations by which threads affect each other: atomic operations (the program is
// compiled with a call for each, atomics.cc), mutexes, condition variables, futexes, yields,
// sleeps, creation and end of threads (interposed.cc). Between two points a thread runs alone.
// Memory is sequentially consistent: reorderings by a store buffer are not explored. Time is
// virtual: it passes with points and jumps when all threads sleep. A sleeping thread may be chosen
// before its time.
//
// Source of the idea: Musuvathi et al., "Finding and Reproducing Heisenbugs in Concurrent Programs"
// (2008). Code under test knows nothing of it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace stele::schedule {

// The operations that are points, where another thread may run. Each level includes those before
// it.
enum class granularity : std::uint8_t { locks, stores, loads };

class strategy {
 public:
  virtual ~strategy() = default;
  // Makes choice `number` of a run: returns a thread of `runnable` or of `yielding`. A yielding
  // thread lets others run, and nothing has changed for it since. `default_thread` is the thread
  // that runs when nothing is to be tried: the running thread, if it can go on. `running_blocked`:
  // it cannot.
  virtual unsigned choose(std::uint64_t number, unsigned default_thread, std::uint32_t runnable,
                          std::uint32_t yielding, bool running_blocked) = 0;
};

// The calling thread becomes thread 0. Threads that it and its children create are scheduled too,
// numbered in the order of creation. `stuck(why)` is called when no thread can run or when a run
// has more points than `limit`; it must not return.
void begin(strategy& s, granularity g, std::uint64_t limit,
           std::function<void(const std::string&)> stuck);
// Precondition: all other threads have ended.
void end() noexcept;
// While this is on, the strategy chooses at each point; otherwise a thread runs until it blocks.
void enable_choices(bool on) noexcept;
// The number of choices made, and of points passed, since begin().
std::uint64_t choices() noexcept;
std::uint64_t points() noexcept;

inline constexpr unsigned max_threads = 32;

}  // namespace stele::schedule
