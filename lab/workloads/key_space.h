// The keys of a run: how operations draw them, and which keys a structure holds at the start. It
// depends on the parameters only. There are fewer than 2^32 keys, so the product of two fits a
// word.
#pragma once

#include <base/rng.h>
#include <workloads/workload.h>
#include <workloads/zipf.h>

#include <optional>

namespace stele::workloads {

class key_space {
 public:
  explicit key_space(const parameters& p);

  std::uint64_t size() const noexcept { return parameters_.keys; }
  const parameters& params() const noexcept { return parameters_; }

  // Draws a key by the requested choice. With zipf, the frequent keys are scattered; with fresh,
  // the key is of no key space, and new but for a chance of one in 2^40.
  std::uint64_t draw(base::rng& random) const {
    if (draws_fresh()) return random();
    return zipf_ ? scattered(zipf_->draw(random)) : random.below(parameters_.keys);
  }
  bool draws_fresh() const noexcept { return parameters_.choice == key_choice::fresh; }
  bool draws_read(base::rng& random) const {
    return parameters_.read_share > 0 && random.unit() < parameters_.read_share;
  }

  // The i-th key of a permutation of all keys without locality.
  std::uint64_t scattered(std::uint64_t i) const noexcept {
    return (i * stride_ + start_) % parameters_.keys;
  }

  // Whether a structure that starts half full holds the key, and the word that fills its value.
  bool present_at_start(std::uint64_t key) const noexcept {
    return (base::mix(parameters_.seed ^ base::mix(key)) & 1) != 0;
  }
  std::uint64_t word_at_start(std::uint64_t key) const noexcept {
    return base::mix(parameters_.seed + key);
  }

 private:
  parameters parameters_;
  std::uint64_t stride_;
  std::uint64_t start_;
  std::optional<zipf> zipf_;
};

}  // namespace stele::workloads
