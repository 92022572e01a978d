// A pool of databases, mostly on a file, without a flusher: a test decides when its ordered commits
// become durable. A crash is a pool that is given up without being closed.
#pragma once

#include <adapters/sqlite/database.h>
#include <adapters/sqlite/file.h>
#include <gtest/gtest.h>
#include <stele/sqlite.h>

#include <cstddef>
#include <string>

namespace stele::testing {

class unflushed_pool {
 public:
  // Connections find it by `name`; its file is `file`.
  unflushed_pool(std::string name, std::string file)
      : name_(std::move(name)), file_(std::move(file)) {}
  ~unflushed_pool() { give_up(); }
  unflushed_pool(const unflushed_pool&) = delete;
  unflushed_pool& operator=(const unflushed_pool&) = delete;

  // A failure of the test, if it does not open.
  void open(const std::string& mechanism, std::size_t size, const std::string& media = "file",
            bool background = true) {
    stele_sqlite_register(0);
    pool_options o;
    o.create_size = size;
    o.engine.mechanism = mechanism;
    o.engine.media = media;
    o.engine.background = background;
    o.policy = concurrency::external;
    o.layout = sqlite::layout_name;
    auto pool = stele::pool<sqlite::stored_databases>::open(file_, o);
    ASSERT_TRUE(pool) << pool.error().message;
    auto over = sqlite::open_pool::over(std::move(*pool));
    ASSERT_TRUE(over) << over.error().message;
    pool_ = sqlite::adopt(name_, std::move(*over));
  }
  void give_up() {
    if (pool_ != nullptr) sqlite::disown(name_);
    pool_ = nullptr;
  }
  bool is_open() const noexcept { return pool_ != nullptr; }
  sqlite::open_pool* operator->() const noexcept { return pool_; }

 private:
  const std::string name_, file_;
  sqlite::open_pool* pool_ = nullptr;
};

}  // namespace stele::testing
