// Counts the answers that the module gives while a counter lives, so that a command that serves a
// client which waits can be held to one, and one that fails knows whether it has answered. An array
// counts when its last element is given. Main thread only. What a counter within another one counts
// is not the other's.
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
