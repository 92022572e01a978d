// A workload on a Redis server: its keys at the start, its operations as commands, and what must
// hold of the keys afterwards.
//
// The operations are those that workloads::make_workload(name)->draw gives, so every system gets
// the same ones. Keys and commands are what a programmer would write for Redis: one command where
// one does, else a script, which is a transaction. A session belongs to a thread. What a client of
// the benchmark counts, the workload counts; it is one object for all sessions on one server.
#pragma once

#include <bench/redis/connection.h>
#include <workloads/key_space.h>
#include <workloads/workload.h>

#include <span>
#include <string>
#include <vector>

namespace stele::bench::redis {

using workloads::operation;
using texts = std::vector<std::string>;

class session {
 public:
  explicit session(std::shared_ptr<connection> to, texts scripts = {})
      : to_(std::move(to)), scripts_(std::move(scripts)) {}
  virtual ~session() = default;

  // Runs the operations as one transaction: one by itself, several in a MULTI.
  [[nodiscard]] result<> apply(std::span<const operation> operations);

 protected:
  [[nodiscard]] virtual result<> run(const operation& op) = 0;
  connection& server() noexcept { return *to_; }
  // Without its answer.
  [[nodiscard]] result<> run_command(std::initializer_list<std::string_view> of);
  // Calls the script of this place in the list by EVALSHA. Keys are made from the arguments in the
  // script.
  [[nodiscard]] result<> run_script(std::size_t which, const texts& arguments);

 private:
  [[nodiscard]] result<> load_scripts();

  const std::shared_ptr<connection> to_;
  const texts scripts_;
  texts digests_;  // of the scripts, when they are loaded
};

class redis_workload {
 public:
  virtual ~redis_workload() = default;
  // Makes the initial keys.
  [[nodiscard]] virtual result<> fill(connection& to) const = 0;
  // Thread-safe.
  virtual std::unique_ptr<session> make_session(std::shared_ptr<connection> to) = 0;
  // No session is in a transaction. Errors: corrupt.
  [[nodiscard]] virtual result<> check(connection& to) const = 0;
};

// Errors: unsupported (the workload has no commands), and those of workloads::make_workload.
[[nodiscard]] result<std::unique_ptr<redis_workload>> make_redis_workload(
    std::string_view name, const workloads::parameters& p);

// The workloads, each in a file of its own.
std::unique_ptr<redis_workload> make_ycsb(const workloads::parameters& p);
std::unique_ptr<redis_workload> make_tpcc(const workloads::parameters& p);
std::unique_ptr<redis_workload> make_linkbench(const workloads::parameters& p);

// Runs a script that answers with a sentence of what is wrong, or with null. Errors: corrupt, also
// when the script fails, as it does on a key that is not there.
[[nodiscard]] result<> check_by_script(connection& to, std::string_view script,
                                       const texts& arguments);

}  // namespace stele::bench::redis
