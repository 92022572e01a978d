// A process that ends, or that has no memory, while a transaction commits.
#include <fmt/format.h>
#include <sys/wait.h>
#include <tests/conformance/pools.h>
#include <tests/sqlite/connection.h>
#include <tests/sqlite/failing_allocations.h>

#include <cstdlib>
#include <new>

namespace stele::testing {

thread_local long allocations_until_failure = -1;

}  // namespace stele::testing

namespace {

using stele::testing::allocations_until_failure;

void* allocate(std::size_t size) {
  if (allocations_until_failure >= 0 && allocations_until_failure-- == 0) throw std::bad_alloc();
  if (void* const block = std::malloc(size == 0 ? 1 : size)) return block;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t size) {
  return allocate(size);
}
void* operator new[](std::size_t size) {
  return allocate(size);
}
void operator delete(void* block) noexcept {
  std::free(block);
}
void operator delete[](void* block) noexcept {
  std::free(block);
}
void operator delete(void* block, std::size_t) noexcept {
  std::free(block);
}
void operator delete[](void* block, std::size_t) noexcept {
  std::free(block);
}

namespace stele::testing {
namespace {

class sqlite_ending : public ::testing::TestWithParam<std::string> {};

void fail_each_allocation_of_a_commit(sqlite_connection& db, sqlite_connection& other,
                                      std::string& expected) {
  bool failed = true;
  for (long nth = 0; failed && nth < 200; ++nth) {
    SCOPED_TRACE(nth);
    db.must("begin; update t set a = a + 1");
    allocations_until_failure = nth;
    const int code = db.run("commit");
    failed = allocations_until_failure < 0;
    allocations_until_failure = -1;
    if (code != SQLITE_OK) (void)db.run("rollback");
    if (code == SQLITE_OK) expected = std::to_string(std::stoi(expected) + 3);
    EXPECT_EQ(other.row("select sum(a) from t"), expected);
    EXPECT_EQ(db.row("select sum(a) from t"), expected);
  }
  EXPECT_FALSE(failed) << "there are fewer allocations than that";
}

// SQLite kept the pages of a transaction that it had rolled back, and the next commit stored them.
TEST_P(sqlite_ending, a_commit_without_memory_is_rolled_back_for_good) {
  const scratch_directory dir;
  const std::string uri = uri_of(dir.file("db"), "size=8M&media=" + GetParam());
  sqlite_connection db(uri), other(uri);
  db.must("create table t(a); insert into t values (1), (1), (1)");
  std::string expected = "3";
  for (const char* synchronous : {"full", "normal"}) {
    SCOPED_TRACE(synchronous);
    db.must("pragma synchronous=" + std::string(synchronous));
    fail_each_allocation_of_a_commit(db, other, expected);
  }
  EXPECT_EQ(db.row("pragma integrity_check"), "ok");
}

// A commit that waits for its sync is stored at exit(), after the thread's own objects have ended.
TEST_P(sqlite_ending, exit_stores_the_commits_that_wait) {
  const scratch_directory dir;
  const std::string uri = uri_of(dir.file("db"), "size=8M&media=" + GetParam());
  for (int n = 1; n <= 2; ++n) {
    const pid_t child = ::fork();
    if (child == 0) {
      auto* const db = new sqlite_connection(uri);  // stays open
      std::exit(
          db->run("pragma synchronous=normal; create table if not exists t(a); "
                  "insert into t values (1)"));
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status)) << "ended by signal " << WTERMSIG(status);
    EXPECT_EQ(WEXITSTATUS(status), 0);
    EXPECT_EQ(sqlite_connection(uri).row("select count(*) from t"), std::to_string(n));
  }
}

INSTANTIATE_TEST_SUITE_P(all, sqlite_ending, ::testing::Values("process", "file"),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace stele::testing
