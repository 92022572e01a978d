// Strategies: a list of choices (default choices elsewhere), and random priorities.
#pragma once

#include <base/rng.h>
#include <explore/schedule/scheduler.h>

#include <array>
#include <functional>
#include <vector>

namespace stele::schedule {

// At choice `number`, thread `thread` runs.
struct decision {
  std::uint64_t number;
  unsigned thread;
  friend bool operator==(const decision&, const decision&) = default;
};
using decisions = std::vector<decision>;

// Takes the listed decisions, and records the alternatives at each choice.
class scripted_strategy final : public strategy {
 public:
  struct alternative {
    std::uint32_t runnable, yielding;
    std::uint8_t default_thread;
    bool running_blocked;
    // Whether a decision for this thread is a preemption; it also is one if the thread is yielding.
    bool preempts(unsigned thread) const noexcept {
      return !running_blocked || (yielding >> thread & 1) != 0;
    }
  };
  explicit scripted_strategy(const decisions& list) : list_(list) {}
  unsigned choose(std::uint64_t number, unsigned default_thread, std::uint32_t runnable,
                  std::uint32_t yielding, bool running_blocked) override;
  const std::vector<alternative>& seen() const noexcept { return seen_; }
  // Whether the run reached every choice on the list.
  bool applied() const noexcept { return at_ == list_.size(); }

 private:
  const decisions& list_;
  std::size_t at_ = 0;
  std::vector<alternative> seen_;
};

// The thread with the highest priority runs; at some random choices that thread gets the lowest
// one. So does a thread that has given its turn away many times: two threads of high priority that
// wait for a third, and change something each time they look, would keep it from running for ever.
// Source: Burckhardt et al., "A Randomized Scheduler with Probabilistic Guarantees of Finding Bugs"
// (2010). Records the choices that differ from the default, so that a list can repeat the run.
class random_priorities final : public strategy {
 public:
  // `length`: about how many choices a run has. `changes`: how many priorities change. `made` is
  // called with each decision at once; it may store them where they survive the process.
  random_priorities(std::uint64_t seed, std::uint64_t length, unsigned changes,
                    std::function<void(const decision&)> made = {});
  unsigned choose(std::uint64_t number, unsigned default_thread, std::uint32_t runnable,
                  std::uint32_t yielding, bool running_blocked) override;
  const decisions& made() const noexcept { return made_; }

 private:
  static constexpr unsigned most_turns = 256;
  static constexpr std::uint64_t lowest_at_first = std::uint64_t{1} << 40;

  std::array<std::uint64_t, max_threads> priority_;
  std::array<unsigned, max_threads> turns_ = {};  // that the thread has given away
  std::vector<std::uint64_t> changes_;            // numbers of choices
  std::uint64_t lowest_ = lowest_at_first;
  unsigned last_ = 0;  // chosen
  decisions made_;
  std::function<void(const decision&)> on_decision_;
};

}  // namespace stele::schedule
