// The answer to one command, which waits until what it rests on is durable: docs/protocol/redis.md,
// C4 to C6.
#pragma once

#include "server.h"

#include <string>

namespace stele::redis {

// Ends the process: answers that rest on the unit have been written.
void cannot_commit(const error& why);
// Ends the process if it failed: the server cannot keep what it would have to answer. Redis ends
// too when it cannot write with appendfsync always.
void must(const result<>& done);
template <class T>
T must(result<T> done) {
  if (!done) must(result<>(std::unexpected(std::move(done.error()))));
  return std::move(*done);
}

// Whether the command's client may be blocked.
bool may_block(const call& c);

// The line of the client in CLIENT LIST; empty: it has none, as a script's.
std::string line_of_client(const call& c);

// The answer to one command.
class answer {
 public:
  explicit answer(const call& c) noexcept : call_(c) {}
  ~answer();
  answer(const answer&) = delete;
  answer& operator=(const answer&) = delete;

  // Of a command that changes something: ends its unit, unless a MULTI or a script goes on. If it
  // has changed nothing, the answer rests on what its keys have.
  void end_unit();
  // Of a command that reads: what it has read, null for a key that is not there.
  void rests_on(const stored_item* item);
  // The same of all keys that the command names.
  void rests_on_its_keys();
  // Of one whose answer any key may change.
  void rests_on_all();
  // Of one that has called a script: on what that has read.
  void rests_on_script();
  // Where to answer. After end_unit() or rests_on(). What a script calls does not wait: the script
  // does.
  api::context* to();

 private:
  bool is_of_script() const;

  const call& call_;
  api::context* later_ = nullptr;
  api::blocked_client* client_ = nullptr;
  std::uint64_t commit_ = 0;
};

constexpr const char* no_memory = "the server has no memory for this";
// Whether a command that failed for this runs again, after keys have gone for room: it must answer
// nothing then, and not have let its client wait.
bool runs_again(const call& c, const error& why);
// Answers with an error of the pool's, in Redis' words, unless the command runs again.
int answer_error(const call& c, const error& why);
// Answers with it in any case.
int reply_error(api::context* to, const error& why);

}  // namespace stele::redis
