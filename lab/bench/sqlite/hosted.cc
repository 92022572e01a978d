// A workload over stored_databases. Its pool is one that the driver has opened, so media, counters
// and tapes are those of every other workload.
#include <bench/sqlite/hosted.h>
#include <bench/sqlite/sessions.h>
#include <workloads/on_sqlite.h>

namespace stele::bench::sql {
namespace {

class hosted final : public workloads::workload_on_sqlite {
 public:
  hosted(std::unique_ptr<workloads::workload> draws, std::unique_ptr<sql_workload> content)
      : draws_(std::move(draws)), content_(std::move(content)) {}
  ~hosted() override { detach(); }

  std::string_view name() const override { return draws_->name(); }

  void attach(detail::pool_handle handle) override {
    workload_on_sqlite::attach(std::move(handle));
    adopted().start_flusher();
  }
  void detach() override {
    sessions_.clear();
    workload_on_sqlite::detach();
  }

  result<> set_up() override {
    const auto db = open();
    return db ? content_->fill(**db) : std::unexpected(db.error());
  }
  operation draw(base::rng& random) const override { return draws_->draw(random); }
  result<> apply(std::span<const operation> operations) override {
    return sessions_.apply(operations);
  }

  // 0, when the content is sound.
  result<std::uint64_t> digest() override {
    const auto db = open();
    if (!db) return std::unexpected(db.error());
    if (auto sound = content_->check(**db); !sound) return std::unexpected(sound.error());
    return 0;
  }
  std::unique_ptr<workloads::model> make_model() const override { return nullptr; }

 private:
  // Ordered commits are those under synchronous=NORMAL.
  result<std::shared_ptr<connection>> open() {
    auto db = connection::open(uri());
    if (db && commit_durability() == durability::ordered)
      if (auto set = (*db)->run("PRAGMA synchronous=NORMAL"); !set)
        return std::unexpected(std::move(set.error()));
    return db;
  }

  const std::unique_ptr<workloads::workload> draws_;
  const std::unique_ptr<sql_workload> content_;
  session_pool sessions_{*content_, [this] { return open(); }};
};

}  // namespace

result<std::unique_ptr<workloads::workload>> make_hosted(std::string_view name,
                                                         const workloads::parameters& p) {
  auto content = make_sql_workload(name, p);
  if (!content) return std::unexpected(std::move(content.error()));
  auto draws = workloads::make_workload(name, p);
  if (!draws) return std::unexpected(std::move(draws.error()));
  return std::make_unique<hosted>(std::move(*draws), std::move(*content));
}

}  // namespace stele::bench::sql
