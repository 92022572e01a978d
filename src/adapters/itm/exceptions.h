// Exceptions inside atomic blocks: what the C++ runtime knows of those that a roll-back takes back.
//
// A block that starts over, or is cancelled, between throw and the end of a handler leaves an
// exception allocated, in flight or caught; roll_back_to() ends each in the state it is in, without
// running its destructor: its content has been rolled back with the rest. The order is: memory
// first, then this.
#pragma once

#include <stele/error.h>

#include <cstddef>
#include <vector>

namespace stele::itm {

class exceptions {
 public:
  struct mark {
    std::size_t unthrown;
    unsigned caught;
    unsigned uncaught;
  };

  // Of an outermost block; nothing is left of the one before.
  void begin() noexcept {
    if (start_.uncaught != uncaught_) start_.uncaught = uncaught_;
  }
  mark current_mark() const noexcept { return {unthrown_.size(), caught_, uncaught_}; }
  void roll_back_to(const mark& to) noexcept;
  void roll_back_all() noexcept { roll_back_to(start_); }
  void committed() noexcept {
    if (!unthrown_.empty()) unthrown_.clear();
    if (caught_ != 0) caught_ = 0;
    if (in_flight_ != nullptr) in_flight_ = nullptr;
  }
  void set_in_flight(void* header) noexcept {
    in_flight_ = header;
  }  // the block, which is not committed yet

  void* allocate(std::size_t size);
  void free(void* exception) noexcept;
  [[noreturn]] void raise(void* exception, void* type, void (*destroy)(void*));
  void* begin_catch(void* header) noexcept;
  void end_catch();

  // Throws stele::failure; a block that it leaves is rolled back.
  [[noreturn]] void throw_failure(error why);
  bool is_failure(const void* header) const noexcept { return header == failure_; }

 private:
  static unsigned& uncaught_of_this_thread() noexcept;
  void forget(void* exception) noexcept;

  std::vector<void*> unthrown_;
  void* in_flight_ = nullptr;  // the header of the one thrown last, until it is caught
  void* failure_ = nullptr;    // the header of the failure thrown last
  unsigned caught_ = 0;        // handlers entered and not left
  unsigned& uncaught_ = uncaught_of_this_thread();
  mark start_{};
};

}  // namespace stele::itm
