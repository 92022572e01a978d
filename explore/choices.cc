// Exhaustive and sampled selections; see choices.h.
#include <explore/choices.h>

#include <algorithm>

namespace stele::explore {

choices::choices(std::span<const std::uint64_t> options, std::uint64_t bound, std::uint64_t seed)
    : options_(options), random_(seed) {
  for (std::uint64_t n : options) {
    exhaustive_ = exhaustive_ && n <= bound / count_;
    if (!exhaustive_) break;
    count_ *= n;
  }
  if (!exhaustive_) count_ = bound;
}

void choices::select(std::uint64_t k, std::span<std::uint64_t> chosen) {
  if (exhaustive_) {
    for (std::size_t i = 0; i < chosen.size(); ++i) chosen[i] = k % options_[i], k /= options_[i];
  } else if (k < 2 + 5 * chosen.size()) {
    select_fixed(k, chosen);
  } else {
    select_random(chosen);
  }
}

void choices::select_fixed(std::uint64_t k, std::span<std::uint64_t> chosen) const {
  const std::size_t n = chosen.size();
  const bool inverted = k % 2 != 0;
  std::size_t from = 0, to = 0;  // the lines kept, or lost when inverted
  if (k >= 2 + 4 * n) {
    to = static_cast<std::size_t>(k - 2 - 4 * n);
  } else if (k >= 2) {
    from = static_cast<std::size_t>((k - 2) / 4);
    to = std::min(n, from + ((k - 2) % 4 < 2 ? 1 : 2));
  }
  const bool prefix = k >= 2 + 4 * n;
  for (std::size_t i = 0; i < n; ++i) chosen[i] = (i >= from && i < to) != (inverted && !prefix) ? all(i) : 0;
}

void choices::select_random(std::span<std::uint64_t> chosen) {
  const std::uint64_t way = random_.below(4);
  const std::size_t torn = random_.below(chosen.size());
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (way == 3) {
      const std::uint64_t kind = random_.below(3);
      chosen[i] = kind == 0 ? 0 : kind == 1 ? all(i) : any(i);
    } else if (i == torn) {
      chosen[i] = any(i);
    } else {
      chosen[i] = way == 0 || (way == 1 && i < torn) ? all(i) : 0;
    }
  }
}

}  // namespace stele::explore
