// ycsb-a to ycsb-f in SQL: one table of records, as YCSB's client for databases with JDBC has it.
// The number of inserts is the client's. There is room for an eighth more records than at the
// start; further inserts replace the oldest inserted one (lab/workloads/ycsb_kind.h).
#include <bench/sqlite/sql_workload.h>
#include <fmt/format.h>
#include <workloads/store.h>
#include <workloads/ycsb.h>

#include <atomic>

namespace stele::bench::sql {
namespace {

using kind = operation::kind;
using workloads::ycsb::key_range;

class ycsb_session final : public session {
 public:
  ycsb_session(std::shared_ptr<connection> db, const workloads::parameters& p,
               std::atomic<std::uint64_t>& inserted)
      : session(std::move(db)), parameters_(p), inserted_(inserted) {}

 private:
  bool is_one_statement(const operation& op) const override { return op.what != kind::read_modify; }

  void attempt() override { used_ = 0; }
  void committed() override { numbers_.clear(); }
  // An attempt that is repeated inserts the same records.
  std::uint64_t next_insert() {
    if (used_ == numbers_.size()) numbers_.push_back(inserted_.fetch_add(1));
    return numbers_[used_++];
  }

  result<> run(const operation& op) override {
    const auto use = [](const row_view& row) { workloads::do_not_optimize(row.bytes(0)); };
    switch (op.what) {
      case kind::put:
        return update_.run(value(op.b), op.a);
      case kind::insert:
        return insert_.run(key_range{parameters_.keys, next_insert()}.next(), value(op.b));
      case kind::read_modify:
        return read_modify(op);
      case kind::scan:
        return scan_.each_row(use, op.a, op.b);
      default:
        return read_.each_row(use, key_of(op));
    }
  }
  std::uint64_t key_of(const operation& read) const {
    if (read.b != workloads::ycsb::by_recency) return read.a;
    return key_range{parameters_.keys, inserted_.load()}.latest(read.a);
  }
  result<> read_modify(const operation& op) {
    std::uint64_t word = 0;
    auto done = read_.each_row(
        [&](const row_view& row) { std::memcpy(&word, row.bytes(0).data(), sizeof word); }, op.a);
    return done ? update_.run(value(workloads::ycsb::modified(word, op.b)), op.a) : done;
  }
  std::string_view value(std::uint64_t word) {
    return workloads::store::value(word, parameters_.value_size, buffer_);
  }

  const workloads::parameters parameters_;
  std::atomic<std::uint64_t>& inserted_;
  std::vector<std::uint64_t> numbers_;  // of the transaction's inserts
  std::size_t used_ = 0;                // of them, in this attempt
  std::string buffer_;
  statement read_{db(), "SELECT value FROM record WHERE key = ?"},
      scan_{db(), "SELECT value FROM record WHERE key >= ? ORDER BY key LIMIT ?"},
      update_{db(), "UPDATE record SET value = ? WHERE key = ?"},
      insert_{db(), "INSERT OR REPLACE INTO record VALUES(?, ?)"};
};

class ycsb final : public sql_workload {
 public:
  explicit ycsb(const workloads::parameters& p) : keys_(p) {}

  result<> fill(connection& db) override {
    if (auto made = db.run("CREATE TABLE record(key INTEGER PRIMARY KEY, value BLOB NOT NULL)");
        !made)
      return made;
    statement insert(db, "INSERT INTO record VALUES(?, ?)");
    std::string buffer;
    return in_large_transactions(db, keys_.size(), value_size(), [&](std::uint64_t key) {
      return insert.run(key,
                        workloads::store::value(keys_.word_at_start(key), value_size(), buffer));
    });
  }
  std::unique_ptr<session> make_session(std::shared_ptr<connection> db) override {
    return std::make_unique<ycsb_session>(std::move(db), keys_.params(), inserted_);
  }

 private:
  std::size_t value_size() const { return keys_.params().value_size; }
  std::vector<invariant> invariants() const override {
    const std::uint64_t count = key_range{keys_.size(), inserted_.load()}.keys();
    return {{fmt::format("SELECT n FROM (SELECT count(*) AS n, min(key) AS low, max(key) AS high "
                         "FROM record) WHERE n <> {0} OR low <> 0 OR high <> {0} - 1",
                         count),
             "the keys are not those that were loaded and inserted; their number"},
            {fmt::format("SELECT key FROM record WHERE length(value) <> {}", value_size()),
             "a record is not as long as all values are; its key"}};
  }

  const workloads::key_space keys_;
  std::atomic<std::uint64_t> inserted_{0};
};

}  // namespace

std::unique_ptr<sql_workload> make_ycsb(const workloads::parameters& p) {
  return std::make_unique<ycsb>(p);
}

}  // namespace stele::bench::sql
