// Answers that wait until what they rest on is durable: docs/protocol/redis.md, C5 and C6.
#pragma once

#include <base/assert.h>

#include "counted_memory.h"
#include "keys.h"
#include "module_api.h"

#include <array>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace stele::redis {

// The clients that wait, and the thread that syncs for them.
class waiting_clients {
 public:
  explicit waiting_clients(keys& of) : keys_(of) {}
  ~waiting_clients();
  waiting_clients(const waiting_clients&) = delete;
  waiting_clients& operator=(const waiting_clients&) = delete;

  // Unblocks the client when the commit of this number is durable, or an error shows that it will
  // never be; the server then ends. Main thread only.
  void add(api::blocked_client* client, std::uint64_t commit);
  // Before the server sleeps: one sync for all commands of this turn.
  void begin_sync();
  std::uint64_t syncs() const noexcept { return syncs_.load(std::memory_order_relaxed); }

 private:
  struct waiting {
    api::blocked_client* client;
    std::uint64_t commit;
  };
  void run();

  keys& keys_;
  std::vector<waiting> coming_;  // the main thread's
  std::mutex mutex_;
  std::condition_variable wanted_;
  // In the order in which they came. One may rest on an older commit than those before it, and is
  // answered after them.
  std::deque<waiting> clients_;
  bool stopping_ = false;
  std::atomic<std::uint64_t> syncs_{0};
  std::thread thread_;
};

struct call;

// What the module has in this process.
struct server {
  std::unique_ptr<redis::keys> keys;
  std::unique_ptr<waiting_clients> waiting;
  std::array<api::type*, item_kinds + 1> types{};  // by item_kind
  bool is_open = false;                            // the pool's items are keys of the server
  long long has_read_all = -1;  // the client of this turn that has no unsent answers
  bool asleep = false;          // the hook before the server's sleep has run, that after it has not
  bool loads_nothing = false;   // what the server loads from its files is older than the pool
  bool has_loaded = false;      // such a file
  bool is_loading = false;      // from a file or a master
  bool restores_alone = false;  // a RESTORE whose unit has nothing of earlier commands
  bool loads_in_unit = false;   // by a command of an EXEC (DEBUG RELOAD), whose unit goes on
  std::uint64_t loaded = 0;     // values of the module's types, by the last load
  std::atomic<stored_item*> unclaimed = nullptr;  // loaded, and not yet the value of a key
  std::optional<error> refused_load = {};         // why the last value that was loaded has no item
  api::text* script_user = nullptr;               // who has called the script that runs
  api::context* script_context = nullptr;         // of that call
  std::uint64_t script_rests_on = 0;              // the newest commit that the script has read of
  const call* running = nullptr;                  // the module's command that runs
  bool debugs_scripts = false;                    // since SCRIPT DEBUG: EVAL is Redis' own then
  bool calls_redis = false;   // the next command that the filter sees is meant for Redis itself
  bool tells_master = false;  // this server is about to tell its master how far it has got
  std::optional<bool> all_may_all = {};  // there is one user, who may do everything
  bool cannot_block = false;             // a client that has waited for a key is answered
  counted_memory memory;                 // the pool's, for the server's limit
  bool may_run_again = false;  // a command that finds no room answers nothing, but sets was_full
  bool was_full = false;
  // The command that runs has changed the keyspace, or has had Redis carry something out.
  bool has_acted = false;
  std::optional<error> not_copied = {};  // why Redis could not copy a value for COPY
  std::uint64_t evicted = 0;             // keys, for room in the pool
  std::string path;
};
server& here() noexcept;
inline api::type* type_of(item_kind kind) noexcept {
  STELE_ASSERT(kind >= item_kind::string && kind <= item_kind::sorted_set);
  return here().types[static_cast<std::size_t>(kind)];
}

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

// Whether a command of this context may let its client wait.
inline bool may_block(api::context* of) {
  constexpr int not_to_block = api::in_multi | api::in_script | api::denies_blocking;
  return !here().cannot_block && (api::GetContextFlags(of) & not_to_block) == 0;
}

// What CLIENT LIST tells of the client; empty: nothing, as of a script's.
std::string line_of_client(api::context* of);

// The answer to one command.
class answer {
 public:
  explicit answer(api::context* to) noexcept : context_(to) {}
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
  api::context* const context_;
  api::context* later_ = nullptr;
  api::blocked_client* client_ = nullptr;
  std::uint64_t commit_ = 0;
};

// If the server has a memory limit: what the pool has in use counts.
void count_memory();

constexpr const char* no_memory = "the server has no memory for this";
// Whether a command that failed for this runs again, after keys have gone for room: it must answer
// nothing then, and not have let its client wait.
bool runs_again(api::context* of, const error& why);
// Answers with an error of the pool's, in Redis' words, unless the command runs again.
int answer_error(api::context* to, const error& why);

}  // namespace stele::redis
