// One turn of the server's event loop, between two sleeps: what the module knows of it. Main thread
// only. Knows nothing of Redis: event_loop_test.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

namespace stele::redis {

class event_loop {
 public:
  // The hook before the server sleeps runs, and ends the turn.
  void end_turn() noexcept { state_ = state::asleep, drained_client_.reset(); }
  void begin_turn() noexcept { state_ = state::awake, drained_client_.reset(); }
  // The hook has run: what is executed now (of a client that was unblocked) is of no turn.
  bool is_asleep() const noexcept { return state_ == state::asleep; }

  // The client has read all earlier answers, so none of this turn leaves before the hook.
  bool is_drained(std::uint64_t client) const noexcept { return drained_client_ == client; }
  void note_drained(std::uint64_t client) noexcept { drained_client_ = client; }

  // The server is about to tell its master its replication offset.
  void note_offset_due() noexcept { is_offset_due_ = true; }
  bool take_offset_due() noexcept { return std::exchange(is_offset_due_, false); }

 private:
  enum class state : std::uint8_t { awake, asleep };
  state state_ = state::awake;
  std::optional<std::uint64_t> drained_client_;
  bool is_offset_due_ = false;
};

}  // namespace stele::redis
