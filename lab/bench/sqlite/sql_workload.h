// A workload in SQL: its tables, its initial rows, its operations as transactions, and what must
// hold of the rows afterwards.
//
// The operations are those that workloads::make_workload(name)->draw gives, so every system gets
// the same ones. Tables, indices and statements are what a programmer would write for SQLite. A
// session belongs to a thread and has prepared statements. What a client of the benchmark counts,
// the workload counts; it is one object for all sessions on one database.
#pragma once

#include <bench/sqlite/connection.h>
#include <workloads/key_space.h>
#include <workloads/workload.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

namespace stele::bench::sql {

using workloads::operation;

class session {
 public:
  explicit session(std::shared_ptr<connection> db) : db_(std::move(db)) {}
  virtual ~session() = default;

  // Runs the operations as one transaction of SQLite. An operation of one statement that is alone
  // is a transaction by itself.
  [[nodiscard]] result<> apply(std::span<const operation> operations);

 protected:
  connection& db() noexcept { return *db_; }
  virtual bool is_one_statement(const operation& op) const = 0;
  [[nodiscard]] virtual result<> run(const operation& op) = 0;
  // Before each attempt of a transaction, and after the one that was committed.
  virtual void attempt() {}
  virtual void committed() {}

 private:
  const std::shared_ptr<connection> db_;
};

// A query of rows that must not be there.
struct invariant {
  std::string violations;
  const char* sentence;  // of the first violation; its number follows
};

class sql_workload {
 public:
  virtual ~sql_workload() = default;
  // Makes the tables and the initial rows, in large transactions.
  [[nodiscard]] virtual result<> fill(connection& db) = 0;
  // Thread-safe.
  virtual std::unique_ptr<session> make_session(std::shared_ptr<connection> db) = 0;
  // PRAGMA integrity_check, and the workload's own invariants; no other thread is in a transaction.
  // Errors: corrupt.
  [[nodiscard]] result<> check(connection& db) const;

 private:
  virtual std::vector<invariant> invariants() const = 0;
};

// Errors: unsupported (the workload has no SQL), and those of workloads::make_workload.
[[nodiscard]] result<std::unique_ptr<sql_workload>> make_sql_workload(
    std::string_view name, const workloads::parameters& p);

// The workloads, each in a file of its own.
std::unique_ptr<sql_workload> make_ycsb(const workloads::parameters& p);
std::unique_ptr<sql_workload> make_tpcc(const workloads::parameters& p);
std::unique_ptr<sql_workload> make_linkbench(const workloads::parameters& p);
std::unique_ptr<sql_workload> make_store(const workloads::parameters& p);

// Runs step(i) for i below `steps`, each of which writes so many bytes, in large transactions.
template <class Step>
[[nodiscard]] result<> in_large_transactions(connection& db, std::uint64_t steps,
                                             std::size_t step_bytes, Step&& step) {
  constexpr std::size_t transaction_bytes = std::size_t{1} << 20;
  const std::uint64_t batch = std::max<std::size_t>(transaction_bytes / step_bytes, 1);
  for (std::uint64_t from = 0; from < steps; from += batch) {
    auto done = db.transaction(transaction_kind::writes, [&]() -> result<> {
      for (std::uint64_t i = from; i < std::min(from + batch, steps); ++i)
        if (auto one = step(i); !one) return one;
      return {};
    });
    if (!done) return done;
  }
  return {};
}

}  // namespace stele::bench::sql
