// Exhaustive and sampled selections; see state_sampler.h.
#include <explore/state_sampler.h>

#include <algorithm>

namespace stele::explore {

state_sampler::state_sampler(std::span<const std::uint64_t> options, std::uint64_t bound,
                             std::uint64_t seed)
    : options_(options), random_(seed) {
  for (std::uint64_t n : options) {
    exhaustive_ = exhaustive_ && n <= bound / count_;
    if (!exhaustive_) break;
    count_ *= n;
  }
  if (!exhaustive_) count_ = bound;
}

void state_sampler::select(std::uint64_t k, std::span<std::uint64_t> chosen) {
  if (exhaustive_) {
    for (std::size_t i = 0; i < chosen.size(); ++i) chosen[i] = k % options_[i], k /= options_[i];
  } else if (const std::uint64_t fixed = k < 2 ? k : 2 + (k - 2) / 2;
             (k < 2 || k % 2 == 0) && fixed < 2 + 5 * chosen.size()) {
    select_fixed(fixed, chosen);
  } else {
    select_random(chosen);
  }
}

void state_sampler::select_fixed(std::uint64_t k, std::span<std::uint64_t> chosen) const {
  const std::size_t n = chosen.size();
  const bool inverted = k % 2 != 0;
  std::size_t from = 0, to = 0;  // the lines that are kept, or lost when inverted
  if (k >= 2 + 4 * n) {
    to = static_cast<std::size_t>(k - 2 - 4 * n);
  } else if (k >= 2) {
    from = static_cast<std::size_t>((k - 2) / 4);
    to = std::min(n, from + ((k - 2) % 4 < 2 ? 1 : 2));
  }
  const bool prefix = k >= 2 + 4 * n;
  for (std::size_t i = 0; i < n; ++i)
    chosen[i] = (i >= from && i < to) != (inverted && !prefix) ? last_option(i) : 0;
}

void state_sampler::select_random(std::span<std::uint64_t> chosen) {
  const std::uint64_t way = random_.below(6);
  const std::size_t torn = random_.below(chosen.size()),
                    other = way == 5 ? random_.below(chosen.size() + 1) : 0;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (way == 3) {
      const std::uint64_t kind = random_.below(3);
      chosen[i] = kind == 0 ? 0 : kind == 1 ? last_option(i) : any_option(i);
    } else if (i == torn) {
      chosen[i] = any_option(i);
    } else {
      const bool between = i > std::min(torn, other) && i < std::max(torn, other);
      chosen[i] =
          way == 0 || (way == 1 && i < torn) || (way == 4 && i > torn) || (way == 5 && !between)
              ? last_option(i)
              : 0;
    }
  }
}

}  // namespace stele::explore
