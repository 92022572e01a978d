// A Redis server that tells which commands transactions come to, those of their scripts too: by
// MONITOR. So the laboratory sees what Redis does, and does it to a pool in its own process.
#pragma once

#include <bench/redis/server.h>
#include <bench/redis/workload.h>

#include <functional>

namespace stele::bench::redis {

class mirror {
 public:
  // A server without persistence in this folder, with the initial keys of the workload. Errors:
  // those of servers; unsupported.
  [[nodiscard]] static result<std::unique_ptr<mirror>> start(const std::string& folder,
                                                             std::string_view workload,
                                                             const workloads::parameters& p);

  // Runs the operations as one transaction, and calls each(command) for each command of it that
  // reads or changes keys. Not thread-safe, as all here.
  using each_command = std::function<result<>(const texts& command)>;
  [[nodiscard]] result<> apply(std::span<const operation> operations, const each_command& each);
  // The commands that make what is there now.
  [[nodiscard]] result<> content(const each_command& each);
  [[nodiscard]] result<> check() {
    auto sound = content_->check(*to_);
    return sound ? tell([](const texts&) -> result<> { return {}; }) : sound;
  }

 private:
  mirror() = default;
  [[nodiscard]] result<> tell(const each_command& each);

  std::unique_ptr<redis_workload> content_;
  std::unique_ptr<server> server_;
  std::shared_ptr<connection> to_, told_;  // the session's, and MONITOR's
  std::unique_ptr<session> session_;
};

}  // namespace stele::bench::redis
