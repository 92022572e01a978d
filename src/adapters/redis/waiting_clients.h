// Blocked clients whose answers wait for a sync, and the thread that syncs: docs/protocol/redis.md,
// C5 and C6.
#pragma once

#include "event_loop.h"
#include "keys.h"
#include "module_api.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

namespace stele::redis {

class waiting_clients {
 public:
  waiting_clients(keys& of, const event_loop& loop) : keys_(of), loop_(loop) {}
  ~waiting_clients();
  waiting_clients(const waiting_clients&) = delete;
  waiting_clients& operator=(const waiting_clients&) = delete;

  // Unblocks the client when the commit of this number is durable. If the sync fails, the server
  // ends. Main thread only.
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
  const event_loop& loop_;
  std::vector<waiting> coming_;  // the main thread's
  std::mutex mutex_;
  std::condition_variable wanted_;
  // In order of arrival. A client that waits for an older commit than those before it is unblocked
  // after them.
  std::deque<waiting> clients_;
  bool stopping_ = false;
  std::atomic<std::uint64_t> syncs_{0};
  std::thread thread_;
};

}  // namespace stele::redis
