// Counts the answers that the module gives during the life of a counter: a client that was blocked
// must get exactly one, and a failed command must know whether it has answered. An array counts
// with its last element. An inner counter hides its answers from the outer one. Main thread only.
#pragma once

namespace stele::redis {

class reply_counter {
 public:
  reply_counter() noexcept;
  ~reply_counter();
  reply_counter(const reply_counter&) = delete;
  reply_counter& operator=(const reply_counter&) = delete;

  // Whether exactly one whole answer was given.
  bool is_one() const noexcept;
  // Whether no part of any was given.
  bool is_none() const noexcept;

 private:
  long whole_before_, missing_before_;
};

}  // namespace stele::redis
