// System calls on pool files that fail.
#pragma once

#include <media/os.h>

#include <atomic>

namespace stele::testing {

// Fails the k-th call, or that and all that follow.
class failing final : public media::os::watcher {
 public:
  failing(std::uint64_t k, bool for_good, int number) : k_(k), for_good_(for_good), number_(number) { media::os::watch(this); }
  ~failing() override { media::os::watch(nullptr); }
  int before(const media::os::request&) noexcept override {
    const std::uint64_t n = ++seen_;
    const bool fails = n == k_ || (for_good_ && n > k_);
    if (fails) hit_ = true;
    return fails ? number_ : 0;
  }
  bool hit() const { return hit_; }

 private:
  const std::uint64_t k_;
  const bool for_good_;
  const int number_;
  std::atomic<std::uint64_t> seen_{0};
  std::atomic<bool> hit_{false};
};

}  // namespace stele::testing
