// What the command filter knows: which calls are Redis' own, and whose rights are checked. Main
// thread only. Knows nothing of Redis: filter_state_test.cc.
#pragma once

#include <base/assert.h>

#include <cstdint>
#include <utility>

namespace stele::redis {

// Commands that the filter leaves to Redis.
class filter_bypass {
 public:
  // A call of the module for Redis' own command: the next command that the filter sees.
  class scope {
   public:
    explicit scope(filter_bypass& of) noexcept : of_(of) {
      STELE_ASSERT(!of.is_next_);  // the filter has seen the call before
      of.is_next_ = true;
    }
    ~scope() { of_.is_next_ = false; }  // Redis may refuse the call before it filters
    scope(const scope&) = delete;
    scope& operator=(const scope&) = delete;

   private:
    filter_bypass& of_;
  };
  bool take() noexcept { return std::exchange(is_next_, false); }

 private:
  bool is_next_ = false;
};

// SCRIPT DEBUG is a mode of a connection. The filter does not see whose command it filters, so the
// mode holds for all clients.
enum class script_debugging : std::uint8_t { off, on };

// Whether rights are asked for each command.
class rights_cache {
 public:
  bool is_known() const noexcept { return state_ != state::unknown; }
  // There is one user, who may run everything, and no other module, which could have users.
  void set(bool all_may_all) noexcept {
    STELE_ASSERT(!is_known());
    state_ = all_may_all ? state::unrestricted : state::restricted;
  }
  bool all_may_all() const noexcept {
    STELE_ASSERT(is_known());
    return state_ == state::unrestricted;
  }
  // Some user may not run everything, as far as is known.
  bool is_restricted() const noexcept { return state_ == state::restricted; }
  // ACL or MODULE may change users. Within a MULTI no filter tells when they run, so this holds for
  // ever.
  void restrict() noexcept { state_ = state::restricted; }

 private:
  enum class state : std::uint8_t { unknown, unrestricted, restricted };
  state state_ = state::unknown;
};

}  // namespace stele::redis
