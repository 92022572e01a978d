// The sessions of one database: one for each thread that runs transactions at a time.
#pragma once

#include <bench/sqlite/sql_workload.h>

#include <atomic>
#include <functional>

namespace stele::bench::sql {

class session_pool {
 public:
  using open_function = std::function<result<std::shared_ptr<connection>>()>;
  // `open` is called for each new session, by the thread that needs it.
  session_pool(sql_workload& workload, open_function open)
      : workload_(workload), open_(std::move(open)) {}

  // One transaction, by the session that this thread used last if no other thread has it now.
  // Thread-safe.
  [[nodiscard]] result<> apply(std::span<const operation> operations);
  // Closes all. No thread is in apply().
  void clear();

 private:
  static constexpr std::size_t most_threads = 1024;
  struct alignas(64) slot {
    std::atomic<bool> taken{false};
    std::unique_ptr<session> own;
  };
  slot& take() noexcept;
  [[nodiscard]] result<> open(slot& s);

  sql_workload& workload_;
  const open_function open_;
  std::vector<slot> slots_ = std::vector<slot>(most_threads);
};

}  // namespace stele::bench::sql
