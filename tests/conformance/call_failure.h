// Makes system calls on pool files fail.
#pragma once

#include <media/os.h>

#include <atomic>

namespace stele::testing {

// The k-th call fails, or that call and all later ones.
class call_failure final : public media::os::syscall_hook {
 public:
  call_failure(std::uint64_t k, bool permanent, int number)
      : k_(k), permanent_(permanent), number_(number) {
    media::os::install_hook(this);
  }
  ~call_failure() override { media::os::install_hook(nullptr); }
  int before(const media::os::request&) noexcept override {
    const std::uint64_t n = ++seen_;
    const bool fails = n == k_ || (permanent_ && n > k_);
    if (fails) hit_ = true;
    return fails ? number_ : 0;
  }
  bool hit() const { return hit_; }

 private:
  const std::uint64_t k_;
  const bool permanent_;
  const int number_;
  std::atomic<std::uint64_t> seen_{0};
  std::atomic<bool> hit_{false};
};

}  // namespace stele::testing
