// Commits that fall into the flush of others: in the middle of its update of the pool.
#include <media/os.h>
#include <tests/conformance/pools.h>
#include <tests/sqlite/connection.h>
#include <tests/sqlite/unflushed_pool.h>

#include <chrono>
#include <functional>
#include <future>
#include <thread>
#include <utility>

namespace stele::testing {
namespace {

// While it lives, this thread's first write to a pool's file begins `work` in another thread, and
// waits for its end, but not for ever: it may wait for the flush. The pool has no thread of its
// own.
class work_in_flush final : public media::os::syscall_hook {
 public:
  explicit work_in_flush(std::function<void()> work) : work_(std::move(work)) {
    media::os::install_hook(this);
  }
  ~work_in_flush() override {
    if (done_.valid()) done_.wait();
    media::os::install_hook(nullptr);
    EXPECT_TRUE(done_.valid()) << "nothing was flushed";
  }
  int before(const media::os::request& r) noexcept override {
    if (r.what != media::os::call::write || std::this_thread::get_id() != flusher_ || done_.valid())
      return 0;
    done_ = std::async(std::launch::async, [this] {
      try {
        work_();
      } catch (const std::exception& e) {
        ADD_FAILURE() << e.what();
      }
    });
    done_.wait_for(std::chrono::seconds(2));
    return 0;
  }

 private:
  std::function<void()> work_;
  std::future<void> done_;
  const std::thread::id flusher_ = std::this_thread::get_id();
};

class SQLiteBesideFlush : public ::testing::Test {
 protected:
  static std::string uri(const std::string& database = "main") {
    return uri_of(path, "database=" + database);
  }
  static std::string filling(int rows) {
    return "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < " +
           std::to_string(rows) + ") INSERT OR REPLACE INTO t SELECT i, randomblob(3000) FROM c";
  }
  void SetUp() override { open(); }
  void open() { pool_.open("default", 64 << 20, "file", false); }
  void crash() { pool_.give_up(); }
  void flush_beside(std::function<void()> work) {
    const work_in_flush beside(std::move(work));
    const auto done = pool_->flush();
    EXPECT_TRUE(done) << done.error().message;
  }

  static constexpr const char* path = "/beside";
  scratch_directory dir_;
  unflushed_pool pool_{path, dir_.file("db")};
};

// The end of a flush may not fail. The commits took the room that it had made for that: most of its
// blocks are those that no commit has changed since.
TEST_F(SQLiteBesideFlush, commits_leave_the_flush_its_room) {
  for (int commits = 4; commits <= 80; commits += 4) {
    SCOPED_TRACE(commits);
    const std::string own = uri("d" + std::to_string(commits));  // no room from before
    connection db(own), other(own);
    db.must("CREATE TABLE t(a INTEGER PRIMARY KEY, b); PRAGMA synchronous=NORMAL");
    other.must("PRAGMA synchronous=NORMAL");
    db.must(filling(40));
    flush_beside([&] {
      for (int i = 1; i <= commits; ++i)
        other.must("UPDATE t SET b = randomblob(3000) WHERE a = " + std::to_string(i % 4 + 1));
    });
    flush_beside([] {});
    EXPECT_EQ(db.number("SELECT count(*) FROM t WHERE length(b) = 3000"), 40);
    EXPECT_EQ(db.text("PRAGMA integrity_check"), "ok");
  }
}

// It was seen before the durable one, and a crash kept the durable one alone.
TEST_F(SQLiteBesideFlush, a_durable_commit_keeps_what_another_database_has_deferred_meanwhile) {
  {
    connection one(uri()), two(uri("two"));
    one.must("CREATE TABLE t(a)");
    two.must("CREATE TABLE u(a); PRAGMA synchronous=NORMAL; INSERT INTO u VALUES(1)");
    const work_in_flush beside([&] { two.must("INSERT INTO u VALUES(2)"); });
    one.must("INSERT INTO t VALUES(1)");
  }
  crash();
  open();
  EXPECT_EQ(connection(uri()).number("SELECT count(*) FROM t"), 1);
  EXPECT_EQ(connection(uri("two")).number("SELECT count(*) FROM u"), 2);
}

}  // namespace
}  // namespace stele::testing
