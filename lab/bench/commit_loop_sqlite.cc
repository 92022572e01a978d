// One connection, no cache spill and no flusher, so that each run executes the same instructions.
#include <bench/commit_loop_sqlite.h>
#include <bench/sqlite/connection.h>
#include <workloads/key_space.h>
#include <workloads/on_sqlite.h>

namespace stele::bench {
namespace {

class row_updates final : public workloads::workload_on_sqlite {
 public:
  explicit row_updates(const workloads::parameters& p) : keys_(p) {}
  ~row_updates() override { detach(); }

  std::string_view name() const override { return "sqlite_update"; }
  void detach() override {
    update_.reset();
    db_.reset();
    workload_on_sqlite::detach();
  }

  result<> set_up() override {
    if (auto opened = connect(); !opened) return opened;
    if (auto made = db_->run("CREATE TABLE item(key INTEGER PRIMARY KEY, value INTEGER); BEGIN");
        !made)
      return made;
    sql::statement insert(*db_, "INSERT INTO item VALUES(?, ?)");
    for (std::uint64_t key = 0; key < keys_.size(); ++key)
      if (auto done = insert.run(key, keys_.word_at_start(key)); !done) return done;
    return db_->run("COMMIT");
  }
  workloads::operation draw(base::rng& random) const override {
    return {workloads::operation::kind::put, keys_.draw(random), random()};
  }
  result<> apply(std::span<const workloads::operation> operations) override {
    if (auto opened = connect(); !opened) return opened;
    for (const workloads::operation& op : operations)
      if (auto done = update_->run(op.b, op.a); !done) return done;
    return {};
  }

  result<std::uint64_t> digest() override { return 0; }
  std::unique_ptr<workloads::model> make_model() const override { return nullptr; }

 private:
  result<> connect() {
    if (db_ != nullptr) return {};
    auto opened = sql::connection::open(uri());
    if (!opened) return std::unexpected(std::move(opened.error()));
    db_ = std::move(*opened);
    update_.emplace(*db_, "UPDATE item SET value = ? WHERE key = ?");
    return {};
  }

  const workloads::key_space keys_;
  std::shared_ptr<sql::connection> db_;
  std::optional<sql::statement> update_;
};

}  // namespace

std::unique_ptr<workloads::workload> make_row_updates(const workloads::parameters& p) {
  return std::make_unique<row_updates>(p);
}

}  // namespace stele::bench
