// The sessions of one database: one for each thread that runs transactions at a time.
#pragma once

#include <bench/sqlite/sql_workload.h>

#include <deque>
#include <functional>
#include <mutex>

namespace stele::bench::sql {

class session_pool {
 public:
  using open_function = std::function<result<std::shared_ptr<connection>>()>;
  // `open` is called for each new session.
  session_pool(sql_workload& workload, open_function open)
      : workload_(workload), open_(std::move(open)) {}

  // One transaction, by the session that this thread used last if no other thread has it now.
  // Thread-safe.
  [[nodiscard]] result<> apply(std::span<const operation> operations);
  // Closes all. No thread is in apply().
  void clear() { slots_.clear(); }

 private:
  struct slot {
    std::unique_ptr<session> own;
    bool taken = true;
  };
  [[nodiscard]] result<slot*> take();

  sql_workload& workload_;
  const open_function open_;
  std::mutex mutex_;
  std::deque<slot> slots_;
};

}  // namespace stele::bench::sql
