// The keys of a run: how operations draw them, and what an initial structure holds. A function of
// the parameters alone; there are fewer than 2^32 keys, so that products of two fit a word.
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

  // A key by the choice asked for. With zipf the frequent keys lie scattered.
  std::uint64_t draw(base::rng& random) const {
    return zipf_ ? scattered(zipf_->draw(random)) : random.below(parameters_.keys);
  }
  bool draws_read(base::rng& random) const {
    return parameters_.read_share > 0 && random.unit() < parameters_.read_share;
  }

  // The i-th key in an order without locality: a permutation of all keys.
  std::uint64_t scattered(std::uint64_t i) const noexcept {
    return (i * stride_ + start_) % parameters_.keys;
  }

  // Whether an initially half full structure holds the key, and the word that fills the value
  // there.
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
