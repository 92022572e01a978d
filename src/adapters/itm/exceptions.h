// Exceptions inside atomic blocks: restores the C++ runtime's state after a roll-back.
//
// A block may restart or be cancelled between a throw and the end of a handler. It then leaves an
// exception that is allocated, in flight or caught. roll_back_to() ends each according to its
// state, without running its destructor, because its content has been rolled back already. Order:
// memory first, then exceptions.
#pragma once

#include <base/assert.h>

#include <stele/error.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace stele::itm {

class exceptions {
 public:
  struct mark {
    std::size_t unthrown;
    unsigned caught;
    unsigned uncaught;
    std::size_t failures;
  };

  // Begins an outermost block; nothing of the previous block is left.
  void begin() noexcept {
    STELE_ASSERT(unthrown_.empty());
    STELE_ASSERT(caught_ == 0);
    STELE_ASSERT(in_flight_ == nullptr);
    if (start_.uncaught != uncaught_) start_.uncaught = uncaught_;
    if (start_.failures != failures_.size()) start_.failures = failures_.size();
  }
  mark current_mark() const noexcept {
    return {unthrown_.size(), caught_, uncaught_, failures_.size()};
  }
  void roll_back_to(const mark& to) noexcept;
  void roll_back_all() noexcept { roll_back_to(start_); }
  void committed() noexcept {
    if (!unthrown_.empty()) unthrown_.clear();
    if (caught_ != 0) caught_ = 0;
    if (in_flight_ != nullptr) in_flight_ = nullptr;
  }
  // For a block that is not committed yet.
  void set_in_flight(void* header) noexcept {
    STELE_ASSERT(header != nullptr);
    in_flight_ = header;
  }

  void* allocate(std::size_t size);
  void free(void* exception) noexcept;
  [[noreturn]] void raise(void* exception, void* type, void (*destroy)(void*));
  void* begin_catch(void* header) noexcept;
  void end_catch();

  // Throws stele::failure. A block that the failure leaves is rolled back. Precondition: there is
  // room for one.
  [[noreturn]] void throw_failure(error why);
  void make_room_for_failure();  // throws std::bad_alloc
  bool is_failure(const void* header) const noexcept {
    return std::ranges::find(failures_, header) != failures_.end();
  }

 private:
  static unsigned& uncaught_of_this_thread() noexcept;
  static void destroy_failure(void* exception) noexcept;
  void forget(void* exception) noexcept;
  bool is_unthrown(const void* exception) const noexcept;  // for assertions

  std::vector<void*> unthrown_;
  void* in_flight_ = nullptr;          // header of the last exception thrown, until it is caught
  std::vector<const void*> failures_;  // headers of those that exist, the newest last
  unsigned caught_ = 0;                // handlers entered and not yet left
  unsigned& uncaught_ = uncaught_of_this_thread();
  mark start_{};
};

}  // namespace stele::itm
