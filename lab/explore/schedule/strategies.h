// Ways to choose who goes on: a list of choices (all others as usual), and random priorities.
#pragma once

#include <base/rng.h>
#include <explore/schedule/scheduler.h>

#include <array>
#include <functional>
#include <vector>

namespace stele::schedule {

// At choice `number` thread `thread` goes on.
struct decision {
  std::uint64_t number;
  unsigned thread;
  friend bool operator==(const decision&, const decision&) = default;
};
using decisions = std::vector<decision>;

// Takes the decisions given, and notes what could have been decided besides.
class scripted_strategy final : public strategy {
 public:
  struct alternative {
    std::uint32_t runnable, yielding;
    std::uint8_t default_thread;
    bool running_blocked;
    // Of a decision for this thread: who rests is not whose turn it is.
    bool preempts(unsigned thread) const noexcept {
      return !running_blocked || (yielding >> thread & 1) != 0;
    }
  };
  explicit scripted_strategy(const decisions& list) : list_(list) {}
  unsigned choose(std::uint64_t number, unsigned default_thread, std::uint32_t runnable,
                  std::uint32_t yielding, bool running_blocked) override;
  const std::vector<alternative>& seen() const noexcept { return seen_; }
  // All of the list was there to be decided.
  bool applied() const noexcept { return at_ == list_.size(); }

 private:
  const decisions& list_;
  std::size_t at_ = 0;
  std::vector<alternative> seen_;
};

// The thread with the highest priority goes on; at some random choices the running one gets the
// lowest. Source: Burckhardt et al., "A Randomized Scheduler with Probabilistic Guarantees of
// Finding Bugs" (2010). Notes where it did not do as usual, so that a list repeats it.
class random_priorities final : public strategy {
 public:
  // `length`: about how many choices a run has; `changes`: how many priorities change. `made` gets
  // the decisions one by one: it may be memory that outlives the process.
  random_priorities(std::uint64_t seed, std::uint64_t length, unsigned changes,
                    std::function<void(const decision&)> made = {});
  unsigned choose(std::uint64_t number, unsigned default_thread, std::uint32_t runnable,
                  std::uint32_t yielding, bool running_blocked) override;
  const decisions& made() const noexcept { return made_; }

 private:
  std::array<std::uint64_t, max_threads> priority_;
  std::vector<std::uint64_t> changes_;  // numbers of choices
  std::uint64_t lowest_ = max_threads;
  decisions made_;
  std::function<void(const decision&)> on_decision_;
};

}  // namespace stele::schedule
