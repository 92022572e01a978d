// Chooses the thread that runs next.
#include <explore/schedule/strategies.h>

#include <algorithm>

namespace stele::schedule {

unsigned scripted_strategy::choose(std::uint64_t number, unsigned default_thread,
                                   std::uint32_t runnable, std::uint32_t yielding,
                                   bool running_blocked) {
  seen_.push_back({runnable, yielding, static_cast<std::uint8_t>(default_thread), running_blocked});
  if (at_ == list_.size() || list_[at_].number != number) return default_thread;
  const unsigned thread = list_[at_++].thread;
  return ((runnable | yielding) >> thread & 1) != 0 ? thread : default_thread;
}

random_priorities::random_priorities(std::uint64_t seed, std::uint64_t length, unsigned changes,
                                     std::function<void(const decision&)> made)
    : on_decision_(std::move(made)) {
  base::rng random(seed);
  for (auto& p : priority_) p = lowest_at_first + 1 + random.below(std::uint64_t{1} << 40);
  for (unsigned i = 0; i < changes; ++i) changes_.push_back(random.below(length + 1));
  std::ranges::sort(changes_);
}

unsigned random_priorities::choose(std::uint64_t number, unsigned default_thread,
                                   std::uint32_t runnable, std::uint32_t yielding,
                                   bool running_blocked) {
  if (running_blocked && ++turns_[last_] == most_turns) {
    turns_[last_] = 0;
    priority_[last_] = --lowest_;
  }
  const bool changes = std::ranges::binary_search(changes_, number);
  if (changes) runnable |= yielding;
  const auto highest = [&] {
    unsigned best = max_threads;
    for (unsigned i = 0; i < max_threads; ++i)
      if ((runnable >> i & 1) != 0 && (best == max_threads || priority_[i] > priority_[best]))
        best = i;
    return best;
  };
  if (changes && !running_blocked) priority_[highest()] = --lowest_;
  const unsigned next = last_ = highest();
  if (next == default_thread) return next;
  made_.push_back({number, next});
  if (on_decision_) on_decision_(made_.back());
  return next;
}

}  // namespace stele::schedule
