// The answer to one command, which waits until what it rests on is durable: docs/protocol/redis.md,
// C4 to C6.
#pragma once

#include "server.h"

#include <string>

namespace stele::redis {

// Ends the process: clients have been answered for changes of the unit.
void cannot_commit(const error& why);
// Ends the process on an error, because the server could not keep what it answers; Redis ends too
// when it cannot write with appendfsync always.
void must(const result<>& done);
template <class T>
T must(result<T> done) {
  if (!done) must(result<>(std::unexpected(std::move(done.error()))));
  return std::move(*done);
}

// Whether the command's client may be blocked.
bool may_block(const call& c);

// The line of the client in CLIENT LIST; empty: it has none, as the client of a script.
std::string line_of_client(const call& c);

// The answer to one command.
class answer {
 public:
  explicit answer(const call& c) noexcept : call_(c) {}
  ~answer();
  answer(const answer&) = delete;
  answer& operator=(const answer&) = delete;

  // For a command that may change something: ends its unit, unless an EXEC or a script continues
  // it. If nothing has changed, the answer rests on the command's keys.
  void end_unit();
  // For a command that has read the item, or found no such key (null).
  void rests_on(const stored_item* item);
  // For one that has read all keys that it names.
  void rests_on_its_keys();
  // For one whose answer depends on every key.
  void rests_on_all();
  // For one that has run a script: on what the script has read.
  void rests_on_script();
  // Where to answer; called after end_unit() or rests_on(). The answer to a command of a script
  // does not wait: the script's does.
  api::context* to();

 private:
  const call& call_;
  api::context* later_ = nullptr;
  api::blocked_client* client_ = nullptr;
  std::uint64_t commit_ = 0;
};

constexpr const char* no_memory = "the server has no memory for this";
// Whether the command that failed for this is to run again after an eviction. Then it must answer
// nothing, and must not have blocked its client.
bool runs_again(const call& c, const error& why);
// Answers an error of the pool with Redis' error code, unless the command runs again.
int answer_error(const call& c, const error& why);
// Answers it in any case.
int reply_error(api::context* to, const error& why);

}  // namespace stele::redis
