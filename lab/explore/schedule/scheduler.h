// A scheduler of real threads: one runs at a time, and who goes on at each point is a strategy's
// choice. So a run of threads is a function of its choices, and can be made again.
//
// Points are operations by which threads see each other: atomic operations (the program is compiled
// with calls for each, atomics.cc), mutexes, condition variables, futexes, yields, sleeps, creation
// and end of threads (interposed.cc). Between two points a thread runs alone. Memory is
// sequentially consistent: what a store buffer may do beyond that is not explored. Time is virtual:
// it passes with points and jumps when everybody sleeps; a sleeper may be chosen before its time.
//
// Source of the idea: Musuvathi et al., "Finding and Reproducing Heisenbugs in Concurrent Programs"
// (2008). Code under test knows nothing of it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace stele::schedule {

// Which operations are points at which another thread may go on. Each has those before it.
enum class granularity : std::uint8_t { locks, stores, loads };

class strategy {
 public:
  virtual ~strategy() = default;
  // Choice `number` of a run: a thread of `runnable`, or of `yielding`: those that let others go on
  // and nothing has changed for them. `default_thread` is the one that goes on when nothing is to
  // be tried: the running one, where it can. `running_blocked`: the running one cannot go on.
  virtual unsigned choose(std::uint64_t number, unsigned default_thread, std::uint32_t runnable,
                          std::uint32_t yielding, bool running_blocked) = 0;
};

// The calling thread becomes thread 0; threads that it and its children create are scheduled too,
// numbered in the order of their creation. `stuck(why)` is called, and does not return, when nobody
// can go on or when a run has more points than `limit`.
void begin(strategy& s, granularity g, std::uint64_t limit,
           std::function<void(const std::string&)> stuck);
// All other threads have ended.
void end() noexcept;
// Choices are asked for while it is on; otherwise a thread runs until it cannot go on.
void enable_choices(bool on) noexcept;
// Number of choices asked for, and of points passed, since begin().
std::uint64_t choices() noexcept;
std::uint64_t points() noexcept;

inline constexpr unsigned max_threads = 32;

}  // namespace stele::schedule
