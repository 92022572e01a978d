// Each allocation of what SQLite calls fails in turn: nothing is thrown into SQLite, nothing of a
// transaction that failed is kept, and everything works again when there is memory. Also a system
// that has no threads.
#include <adapters/sqlite/pending.h>
#include <adapters/sqlite/stored.h>
#include <dlfcn.h>
#include <media/os.h>
#include <pthread.h>
#include <tests/conformance/child.h>
#include <tests/conformance/pools.h>
#include <tests/sqlite/connection.h>
#include <tests/sqlite/failing_allocations.h>

#include <array>
#include <cerrno>
#include <new>

namespace {

bool has_no_threads = false;

}  // namespace

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*run)(void*), void* argument) noexcept {
  if (has_no_threads) return EAGAIN;
  static const auto next =
      reinterpret_cast<decltype(&pthread_create)>(::dlsym(RTLD_NEXT, "pthread_create"));
  return next(thread, attributes, run, argument);
}

namespace stele::testing {
namespace {

using sqlite::pending_writes;

class sqlite_without_memory : public ::testing::Test {
 protected:
  // Nobody has the pool open.
  ::testing::AssertionResult is_closed() const {
    return succeeds(pool<sqlite::stored_databases>::open(
        path_, {.layout = sqlite::layout_name, .policy = concurrency::external}));
  }

  scratch_directory dir_;
  const std::string path_ = dir_.file("db");
  const std::string uri_ = uri_of(path_, "size=16M&media=file");
};

constexpr std::uint64_t many = 40;  // blocks: more than are searched without an index
void write_block(pending_writes& w, std::uint64_t number) {
  std::array<std::byte, sqlite::block_size> bytes;
  bytes.fill(static_cast<std::byte>(number));
  w.write(number * sqlite::block_size, bytes, [](std::uint64_t, pending_writes::block&) {});
}
void expect_blocks(const pending_writes& w, std::uint64_t first, std::uint64_t end) {
  for (std::uint64_t n = first; n < end; ++n) {
    const auto* const found = w.find(n);
    ASSERT_NE(found, nullptr) << "what block " << n << " had written is not found";
    EXPECT_EQ(found->front(), static_cast<std::byte>(n));
  }
}
template <class Call>
bool is_refused(long nth, Call&& call) {
  return without_allocation(nth, [&] {
    try {
      call();
    } catch (const std::bad_alloc&) {
    }
  });
}

// The index was built anew, and lacked blocks when that found no memory.
TEST_F(sqlite_without_memory, pending_writes_find_what_was_written) {
  bool struck = true;
  for (long nth = 0; struck && nth < 200; ++nth) {
    SCOPED_TRACE(nth);
    pending_writes w;
    w.begin(many * sqlite::block_size);
    for (std::uint64_t n = many; n-- > 2;) write_block(w, n);
    struck = is_refused(nth, [&] { (void)w.in_order(); });
    expect_blocks(w, 2, many);
    struck |= is_refused(nth, [&] { write_block(w, 1); });
    expect_blocks(w, 2, many);
    struck |= is_refused(nth, [&] {
      w.set_size(30 * sqlite::block_size, [](std::uint64_t, pending_writes::block&) {});
    });
    expect_blocks(w, 2, 30);
  }
  EXPECT_FALSE(struck);
}

TEST_F(sqlite_without_memory, pending_writes_leave_early_whole_or_not_at_all) {
  bool struck = true;
  for (long nth = 0; struck && nth < 200; ++nth) {
    SCOPED_TRACE(nth);
    pending_writes w;
    w.begin(0);
    for (std::uint64_t n = many; n-- > 0;) write_block(w, n);
    struck = is_refused(nth, [&] { w.leave_from(10); });
    expect_blocks(w, 0, 10);
    for (std::uint64_t n = 10; n < many; ++n)
      EXPECT_EQ(w.find(n) == nullptr, w.is_early(n)) << "block " << n << " is early and in memory";
  }
  EXPECT_FALSE(struck);
}

// The commit was durable and others saw it, and SQLite was told that nothing was committed.
TEST_F(sqlite_without_memory, a_commit_that_makes_a_database_shorter_is_whole) {
  bool struck = true;
  for (long nth = 0; struck && !HasFailure(); ++nth) {
    SCOPED_TRACE(nth);
    // A new pool: an earlier commit of this kind would leave it the memory.
    const std::string uri = uri_of(dir_.file("db" + std::to_string(nth)), "size=4M&media=process");
    sqlite_connection db(uri), other(uri);
    db.must("pragma auto_vacuum=full; create table t(a, b)");
    db.must(
        "with recursive c(i) as (select 1 union all select i + 1 from c where i < 100) "
        "insert into t select i, randomblob(3000) from c");
    db.must("begin; delete from t where a > 1");
    int code = SQLITE_OK;
    struck = without_allocation(nth, [&] { code = db.run("commit"); });
    if (code != SQLITE_OK) (void)db.run("rollback");
    const std::string expected = code == SQLITE_OK ? "1" : "100";
    EXPECT_EQ(other.row("select count(*) from t"), expected);
    EXPECT_EQ(db.row("select count(*) from t"), expected);
    EXPECT_EQ(db.row("pragma integrity_check"), "ok");
  }
}

// Only one of them forgot the pages of the commit.
TEST_F(sqlite_without_memory, a_commit_of_two_databases_is_rolled_back_in_both_for_good) {
  sqlite_connection db(uri_), other(uri_of(path_, "database=two"));
  db.must("attach '" + uri_of(path_, "database=two") + "' as two");
  db.must("create table t(a, b); create table two.u(a, b); insert into t values(1, '')");
  db.must("insert into u values(1, '')");
  std::string expected = "1";
  for (const std::string mode : {"delete", "memory"}) {
    SCOPED_TRACE(mode);
    db.must("pragma main.journal_mode=" + mode + "; pragma two.journal_mode=" + mode);
    bool struck = true;
    for (long nth = 0; struck && !HasFailure(); ++nth) {
      SCOPED_TRACE(nth);
      db.must("begin; update t set a = a + 1; update u set a = a + 1");
      db.must("insert into t values(0, zeroblob(9000)); insert into u values(0, zeroblob(9000))");
      int code = SQLITE_OK;
      struck = without_allocation(nth, [&] { code = db.run("commit"); });
      if (code != SQLITE_OK) (void)db.run("rollback");
      if (code == SQLITE_OK) expected = std::to_string(std::stoi(expected) + 1);
      EXPECT_EQ(db.row("select max(a) from t"), expected);
      EXPECT_EQ(db.row("select max(a) from u"), expected);
      EXPECT_EQ(other.row("select max(a) from u"), expected);
      for (const char* check : {"pragma main.integrity_check", "pragma two.integrity_check"})
        EXPECT_EQ(db.row(check), "ok");
    }
  }
}

TEST_F(sqlite_without_memory, databases_open_and_close) {
  sqlite_connection(uri_).must("create table t(a); insert into t values(1)");
  const std::string update = "pragma synchronous=normal; update t set a = 1";
  bool struck = true;
  long nth = 0;
  for (; struck && !HasFailure(); ++nth) {
    SCOPED_TRACE(nth);
    bool has_opened = false;
    struck = without_allocation(nth, [&] {
      sqlite_connection db(uri_);
      has_opened = db.open_code() == SQLITE_OK;
      if (has_opened) (void)db.run(update);
    });
    // A close without memory may leave the pool open for the next connection, an opening may not.
    EXPECT_TRUE(has_opened || is_closed());
    EXPECT_EQ(sqlite_connection(uri_).row("select a from t"), "1");
    EXPECT_TRUE(is_closed());
  }
  EXPECT_GT(nth, 50) << "there are more allocations than that";
}

class failing_writes final : public media::os::syscall_hook {
 public:
  failing_writes() { media::os::install_hook(this); }
  ~failing_writes() override { media::os::install_hook(nullptr); }
  int before(const media::os::request& r) noexcept override {
    return r.what == media::os::call::write || r.what == media::os::call::sync ? EIO : 0;
  }
};

// The sentence of a poisoned pool was thrown out of xLock.
TEST_F(sqlite_without_memory, a_poisoned_pool_is_told_of) {
  bool struck = true;
  for (long nth = 0; struck && nth < 20; ++nth) {
    sqlite_connection db(uri_of(dir_.file("db" + std::to_string(nth)), "size=8M&media=file"));
    db.must("create table t(a); insert into t values(1)");
    sqlite3_file* f = nullptr;
    ASSERT_EQ(sqlite3_file_control(db.handle(), "main", SQLITE_FCNTL_FILE_POINTER, &f), SQLITE_OK);
    {
      const failing_writes now;
      EXPECT_NE(db.run("insert into t values(2)"), SQLITE_OK);
    }
    int code = SQLITE_OK;
    struck = without_allocation(nth, [&] { code = f->pMethods->xLock(f, SQLITE_LOCK_SHARED); });
    EXPECT_EQ(code & 0xff, SQLITE_IOERR);
  }
  EXPECT_FALSE(struck);
}

// They waited for the next durable commit or the close, which may be hours.
TEST_F(sqlite_without_memory, ordered_commits_are_durable_where_the_system_has_no_threads) {
  child c([&](const word_sender&) {
    has_no_threads = true;
    sqlite_connection db(uri_);
    db.must("create table t(a); insert into t values(1)");
    db.must("pragma synchronous=normal; insert into t values(2)");
    ::_exit(0);  // as at a crash
  });
  EXPECT_EQ(c.wait(), 0);
  EXPECT_EQ(sqlite_connection(uri_).row("select count(*) from t"), "2");
}

}  // namespace
}  // namespace stele::testing
