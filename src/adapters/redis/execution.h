// The module's commands in progress. A script's commands run within the script's own command, so
// they are a stack. Main thread only. Knows nothing of Redis: execution_test.cc.
#pragma once

#include <base/assert.h>

#include <cstdint>

namespace stele::redis {

class execution;

// The commands in progress; `current` is the innermost.
class executions {
 public:
  executions() = default;
  executions(const executions&) = delete;
  executions& operator=(const executions&) = delete;

  execution* current() const noexcept { return current_; }
  bool is_idle() const noexcept { return current_ == nullptr; }
  // Whether the client whose command runs may be blocked.
  bool may_block() const noexcept;
  // The keyspace has changed, or Redis has executed something for the command. Of a change that no
  // command makes, nothing is noted.
  void note_side_effect() noexcept;

 private:
  friend class execution;
  execution* current_ = nullptr;
};

// One command, from its begin to the end of its scope.
class execution {
 public:
  // Whether the client may wait for its answer, or is one that has waited for a key: Redis blocks
  // such a client only once.
  enum class client : std::uint8_t { may_block, was_blocked };
  // A command that finds no room in the pool answers an error, or asks to be run again after keys
  // were evicted. It answers nothing when it asks.
  enum class full_pool : std::uint8_t { is_answered, may_retry, retry_requested };

  execution(executions& all, client of, full_pool first) noexcept
      : all_(all), outer_(all.current_), client_(of), full_pool_(first) {
    STELE_ASSERT(outer_ == nullptr || !outer_->retry_requested());
    STELE_ASSERT(outer_ == nullptr || of == client::may_block || outer_->may_block());
    if (outer_ != nullptr) {
      if (outer_->client_ == client::was_blocked) client_ = client::was_blocked;
      outer_->full_pool_ = full_pool::is_answered;  // a part of it has run
    }
    all_.current_ = this;
  }
  ~execution() {
    STELE_ASSERT(all_.current_ == this);
    all_.current_ = outer_;
  }
  execution(const execution&) = delete;
  execution& operator=(const execution&) = delete;

  bool may_block() const noexcept { return client_ == client::may_block; }

  bool may_retry() const noexcept { return full_pool_ == full_pool::may_retry; }
  bool retry_requested() const noexcept { return full_pool_ == full_pool::retry_requested; }
  void request_retry() noexcept {
    STELE_ASSERT(may_retry());
    full_pool_ = full_pool::retry_requested;
  }
  // Before keys are evicted for it. Without allow_retry() it answers an error the next time.
  void begin_retry() noexcept {
    STELE_ASSERT(retry_requested());
    full_pool_ = full_pool::is_answered;
  }
  // Keys were evicted.
  void allow_retry() noexcept {
    STELE_ASSERT(full_pool_ == full_pool::is_answered);
    full_pool_ = full_pool::may_retry;
  }
  // The command has failed, or has ended: it is not run again.
  void end_retries() noexcept { full_pool_ = full_pool::is_answered; }

  bool has_side_effects() const noexcept { return has_side_effects_; }
  void note_side_effect() noexcept { has_side_effects_ = true; }

 private:
  executions& all_;
  execution* const outer_;
  client client_;
  full_pool full_pool_;
  bool has_side_effects_ = false;
};

inline bool executions::may_block() const noexcept {
  return current_ == nullptr || current_->may_block();
}

inline void executions::note_side_effect() noexcept {
  if (current_ != nullptr) current_->note_side_effect();
}

}  // namespace stele::redis
