// store in SQL: blobs of any size by number, as in SQLite's own kvtest. One put in a statement
// replaces the blob or makes it, one erase deletes it. The number of blobs is the client's.
#include <bench/sqlite/sql_workload.h>
#include <fmt/format.h>
#include <workloads/store.h>

#include <atomic>

namespace stele::bench::sql {
namespace {

using kind = operation::kind;

class store_session final : public session {
 public:
  store_session(std::shared_ptr<connection> db, std::size_t value_size,
                std::atomic<std::int64_t>& count)
      : session(std::move(db)), value_size_(value_size), count_(count) {}

 private:
  bool is_one_statement(const operation&) const override { return true; }
  void attempt() override { added_ = 0; }
  void committed() override { count_ += added_; }

  result<> run(const operation& op) override {
    if (op.what == kind::put) return put(op);
    if (op.what == kind::erase) {
      auto done = erase_.run(op.a);
      added_ -= db().changes();
      return done;
    }
    return read_.each_row([](const row_view& row) { workloads::do_not_optimize(row.bytes(0)); },
                          op.a);
  }
  result<> put(const operation& op) {
    db().forget_inserted_key();
    auto done = put_.run(op.a, workloads::store::value(op.b, value_size_, buffer_));
    added_ += db().inserted_key() == static_cast<std::int64_t>(op.a);  // the row is a new one
    return done;
  }

  const std::size_t value_size_;
  std::atomic<std::int64_t>& count_;
  std::int64_t added_ = 0;  // rows, in this attempt
  std::string buffer_;
  statement read_{db(), "SELECT value FROM blob WHERE key = ?"},
      put_{db(),
           "INSERT INTO blob VALUES(?, ?) "
           "ON CONFLICT(key) DO UPDATE SET value = excluded.value"},
      erase_{db(), "DELETE FROM blob WHERE key = ?"};
};

class store final : public sql_workload {
 public:
  explicit store(const workloads::parameters& p) : keys_(p) {}

  result<> fill(connection& db) override {
    if (auto made = db.run("CREATE TABLE blob(key INTEGER PRIMARY KEY, value BLOB NOT NULL)");
        !made)
      return made;
    statement insert(db, "INSERT INTO blob VALUES(?, ?)");
    std::string buffer;
    std::int64_t count = 0;
    auto filled =
        in_large_transactions(db, keys_.size(), value_size(), [&](std::uint64_t key) -> result<> {
          if (!workloads::store::present_at_start(keys_, key)) return {};
          ++count;
          return insert.run(
              key, workloads::store::value(keys_.word_at_start(key), value_size(), buffer));
        });
    count_ = count;
    return filled;
  }
  std::unique_ptr<session> make_session(std::shared_ptr<connection> db) override {
    return std::make_unique<store_session>(std::move(db), value_size(), count_);
  }

 private:
  std::size_t value_size() const { return keys_.params().value_size; }
  std::vector<invariant> invariants() const override {
    return {
        {fmt::format("SELECT n FROM (SELECT count(*) AS n FROM blob) WHERE n <> {}", count_.load()),
         "there are more or fewer blobs than were put and not erased; their number"},
        {fmt::format("SELECT key FROM blob WHERE length(value) <> {}", value_size()),
         "a blob is not as long as all values are; its key"},
        {fmt::format("SELECT key FROM blob WHERE key < 0 OR key >= {}", keys_.size()),
         "a blob has a key that no operation names"}};
  }

  const workloads::key_space keys_;
  std::atomic<std::int64_t> count_{0};
};

}  // namespace

std::unique_ptr<sql_workload> make_store(const workloads::parameters& p) {
  return std::make_unique<store>(p);
}

}  // namespace stele::bench::sql
