// Choosing who goes on.
#include <explore/schedule/strategies.h>

#include <algorithm>

namespace stele::schedule {

unsigned listed::choose(std::uint64_t number, unsigned usual, std::uint32_t able, std::uint32_t resting, bool free) {
  seen_.push_back({able, resting, static_cast<std::uint8_t>(usual), free});
  if (at_ == list_.size() || list_[at_].number != number) return usual;
  const unsigned thread = list_[at_++].thread;
  return ((able | resting) >> thread & 1) != 0 ? thread : usual;
}

by_priority::by_priority(std::uint64_t seed, std::uint64_t length, unsigned changes,
                         std::function<void(const decision&)> made)
    : told_(std::move(made)) {
  base::rng random(seed);
  for (auto& p : priority_) p = most_threads + 1 + random.below(std::uint64_t{1} << 40);
  for (unsigned i = 0; i < changes; ++i) changes_.push_back(random.below(length + 1));
  std::ranges::sort(changes_);
}

unsigned by_priority::choose(std::uint64_t number, unsigned usual, std::uint32_t able, std::uint32_t resting, bool free) {
  const bool changes = std::ranges::binary_search(changes_, number);
  if (changes) able |= resting;
  const auto highest = [&] {
    unsigned best = most_threads;
    for (unsigned i = 0; i < most_threads; ++i)
      if ((able >> i & 1) != 0 && (best == most_threads || priority_[i] > priority_[best])) best = i;
    return best;
  };
  if (changes && !free) priority_[highest()] = lowest_ = lowest_ == 0 ? 0 : lowest_ - 1;
  const unsigned next = highest();
  if (next == usual) return next;
  made_.push_back({number, next});
  if (told_) told_(made_.back());
  return next;
}

}  // namespace stele::schedule
