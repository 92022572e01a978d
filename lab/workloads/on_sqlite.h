// A workload on the SQLite databases of a pool, reached by the VFS of src/adapters/sqlite.
#pragma once

#include <adapters/sqlite/database.h>
#include <adapters/sqlite/file.h>
#include <fmt/format.h>
#include <stele/sqlite.h>
#include <workloads/workload.h>

#include <atomic>
#include <string>
#include <utility>

namespace stele::workloads {

class workload_on_sqlite : public workload {
 public:
  std::size_t root_size() const override { return sizeof(sqlite::stored_databases); }
  concurrency policy() const noexcept override { return concurrency::external; }
  void attach(detail::pool_handle handle) override {
    static std::atomic<unsigned> count{0};
    if (::stele_sqlite_register(0) != 0)
      throw failure(error{errc::unsupported, "SQLite takes no VFS"});
    auto opened = sqlite::open_pool::over(pool<sqlite::stored_databases>(std::move(handle)));
    if (!opened) throw failure(opened.error());
    path_ = fmt::format("/adopted/{}", ++count);
    pool_ = sqlite::adopt(path_, std::move(*opened));
  }
  // After all connections are closed.
  void detach() override {
    if (std::exchange(pool_, nullptr) != nullptr) sqlite::disown(path_);
  }
  detail::runtime& core() override { return pool_->content().core(); }
  // The pool itself defers nothing.
  result<> sync() override { return pool_->flush(); }
  result<> close() override { return pool_->close(); }
  void visit_blocks(const block_visit& visit) override {
    const auto done = pool_->content().read(
        [&](const sqlite::stored_databases& all) { all.visit_blocks(visit); });
    if (!done) throw failure(done.error());
  }

 protected:
  // Of the pool's database "main"; more parameters may follow.
  std::string uri() const { return "file:" + path_ + "?vfs=stele"; }
  sqlite::open_pool& adopted() { return *pool_; }

 private:
  std::string path_;
  sqlite::open_pool* pool_ = nullptr;
};

}  // namespace stele::workloads
