// Ordered commits that wait in memory: who sees them, what makes them durable, what a crash loses.
#include <tests/conformance/pools.h>
#include <tests/sqlite/connection.h>
#include <tests/sqlite/unflushed_pool.h>

#include <optional>

namespace stele::testing {
namespace {

class SQLiteDeferred : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    open();
    connection db(uri());
    db.must("PRAGMA auto_vacuum=FULL; CREATE TABLE t(a INTEGER PRIMARY KEY, b)");
  }

  static std::string uri(const std::string& database = "main") {
    return uri_of(path, "database=" + database);
  }
  void open() { pool_.open(GetParam(), 64 << 20); }
  void crash() { pool_.give_up(); }
  void flush() {
    const auto done = pool_->flush();
    ASSERT_TRUE(done) << done.error().message;
  }
  std::uint64_t fences() const { return pool_->content().counters().fences; }

  // Opens the pool after a crash.
  std::string text_after_crash(const std::string& sql, const std::string& database = "main") {
    crash();
    open();
    connection db(uri(database));
    EXPECT_EQ(db.text("PRAGMA integrity_check"), "ok");
    EXPECT_EQ(db.text("PRAGMA stele_check"), "ok");
    return db.text(sql);
  }

  static constexpr const char* path = "/deferred";
  scratch_directory dir_;
  unflushed_pool pool_{path, dir_.file("db")};
};

TEST_P(SQLiteDeferred, commits_wait_for_no_sync_and_others_see_them) {
  connection db(uri()), other(uri());
  db.must("INSERT INTO t VALUES(0, zeroblob(9000))");  // extents
  db.must("PRAGMA synchronous=NORMAL");
  const std::uint64_t before = fences();
  for (int i = 1; i <= 100; ++i) {
    db.must("INSERT OR REPLACE INTO t VALUES(1, " + std::to_string(i) + ")");
    ASSERT_EQ(other.number("SELECT b FROM t WHERE a = 1"), i);
  }
  EXPECT_EQ(fences(), before);
  flush();
  const std::uint64_t of_flush = fences() - before;
  EXPECT_GT(of_flush, 0u);
  EXPECT_LE(of_flush, 4u);  // one update of the pool
  flush();
  EXPECT_EQ(fences() - before, of_flush);
  EXPECT_EQ(other.number("SELECT b FROM t WHERE a = 1"), 100);
}

TEST_P(SQLiteDeferred, a_crash_loses_them_and_nothing_before) {
  {
    connection db(uri());
    db.must("INSERT INTO t VALUES(1, 'full')");
    db.must("PRAGMA synchronous=OFF; UPDATE t SET b = 'off'");
    EXPECT_EQ(db.text("SELECT b FROM t"), "off");
  }
  EXPECT_EQ(text_after_crash("SELECT b FROM t"), "full");
}

TEST_P(SQLiteDeferred, a_durable_commit_makes_those_of_all_databases_durable) {
  {
    connection db(uri()), two(uri("two"));
    two.must("CREATE TABLE u(a)");
    two.must("PRAGMA synchronous=NORMAL; INSERT INTO u VALUES(7)");
    db.must("PRAGMA synchronous=NORMAL; INSERT INTO t VALUES(1, 'normal')");
    db.must("PRAGMA synchronous=FULL; INSERT INTO t VALUES(2, 'full')");
  }
  EXPECT_EQ(text_after_crash("SELECT group_concat(b) FROM t"), "normal,full");
  EXPECT_EQ(text_after_crash("SELECT a FROM u", "two"), "7");
}

TEST_P(SQLiteDeferred, one_transaction_on_two_databases_is_whole) {
  {
    connection db(uri());
    db.must("ATTACH '" + uri("two") + "' AS two; CREATE TABLE two.u(a)");
    db.must("PRAGMA synchronous=NORMAL; PRAGMA two.synchronous=NORMAL");
    db.must("BEGIN; INSERT INTO t VALUES(1, 1); INSERT INTO u VALUES(1); COMMIT");
    flush();
    db.must("BEGIN; INSERT INTO t VALUES(2, 2); INSERT INTO u VALUES(2); COMMIT");
  }
  EXPECT_EQ(text_after_crash("SELECT count(*) FROM t"), "1");
  EXPECT_EQ(text_after_crash("SELECT count(*) FROM u", "two"), "1");
}

TEST_P(SQLiteDeferred, readers_keep_their_version_across_commits_and_flushes) {
  connection db(uri()), old(uri()), between(uri());
  db.must("INSERT INTO t VALUES(1, 'one'); PRAGMA synchronous=NORMAL");
  for (connection* c : {&old, &between}) c->must("PRAGMA cache_size=0");
  old.must("BEGIN");
  EXPECT_EQ(old.text("SELECT b FROM t"), "one");
  db.must("UPDATE t SET b = 'two'");
  between.must("BEGIN");
  EXPECT_EQ(between.text("SELECT b FROM t"), "two");
  db.must("UPDATE t SET b = 'three'");
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(old.text("SELECT b FROM t"), "one");
    EXPECT_EQ(between.text("SELECT b FROM t"), "two");
    EXPECT_EQ(db.text("SELECT b FROM t"), "three");
    flush();
  }
  db.must("PRAGMA synchronous=FULL; UPDATE t SET b = 'four'");
  EXPECT_EQ(old.text("SELECT b FROM t"), "one");
  EXPECT_EQ(between.text("SELECT b FROM t"), "two");
  EXPECT_EQ(connection(uri()).text("SELECT b FROM t"), "four");
}

TEST_P(SQLiteDeferred, a_flush_disturbs_no_transaction_that_wants_to_write) {
  connection db(uri());
  db.must("PRAGMA synchronous=NORMAL; INSERT INTO t VALUES(1, 1)");
  db.must("BEGIN");
  EXPECT_EQ(db.number("SELECT b FROM t"), 1);
  flush();
  db.must("UPDATE t SET b = b + 1; COMMIT");
  flush();
  EXPECT_EQ(db.number("SELECT b FROM t"), 2);
}

TEST_P(SQLiteDeferred, databases_that_shrink_and_grow_again_are_whole) {
  const std::string fill =
      "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 60)"
      "INSERT INTO t SELECT i, randomblob(3000) FROM c";
  {
    connection db(uri()), old(uri());
    db.must("PRAGMA synchronous=NORMAL");
    for (int i = 0; i < 4; ++i) {
      db.must(fill);
      if (i % 2 == 1) flush();
      old.must("BEGIN");
      const std::string before = old.text("SELECT sum(length(b)) FROM t");
      db.must("DELETE FROM t WHERE a > 5");
      if (i > 1) flush();
      db.must("VACUUM; DELETE FROM t; INSERT INTO t VALUES(1, randomblob(20000))");
      EXPECT_EQ(old.text("SELECT sum(length(b)) FROM t"), before);
      old.must("COMMIT");
      flush();
      EXPECT_EQ(db.text("PRAGMA integrity_check"), "ok");
      db.must("DELETE FROM t");
    }
    db.must(fill);
    flush();
  }
  EXPECT_EQ(text_after_crash("SELECT count(*) FROM t"), "60");
}

TEST_P(SQLiteDeferred, a_transaction_that_overwrites_many_blocks_does_not_wait) {
  {
    connection db(uri());
    db.must("PRAGMA cache_size=10");
    db.must(
        "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 2000)"
        "INSERT INTO t SELECT i, randomblob(3000) FROM c");
    db.must("PRAGMA synchronous=OFF; UPDATE t SET b = zeroblob(3001)");
  }
  EXPECT_EQ(text_after_crash("SELECT sum(length(b)) FROM t"), "6002000");
}

INSTANTIATE_TEST_SUITE_P(mechanisms, SQLiteDeferred,
                         ::testing::ValuesIn(known_of({"default", "redo", "undo", "archapt-redo",
                                                       "archapt-undo"})),
                         [](const auto& one) {
                           std::string name = one.param;
                           std::erase(name, '-');
                           return name;
                         });

// Ordered commits that the mechanism makes durable later, on memory too: archapt-undo.
class SQLiteLogical : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    pool_.open(GetParam(), 8 << 20, "process");
    connection db(uri_of(path));
    db.must("CREATE TABLE t(a); INSERT INTO t VALUES(1)");
    EXPECT_TRUE(all_are_durable());
    db.must("PRAGMA synchronous=NORMAL; UPDATE t SET a = 2");
    EXPECT_FALSE(all_are_durable());
  }
  bool all_are_durable() const {
    detail::runtime& core = pool_->content().core();
    return core.mechanism().durable_through() >= detail::newest_commit(core);
  }

  static constexpr const char* path = "/logical";
  scratch_directory dir_;
  unflushed_pool pool_{path, dir_.file("db")};
};

// So do a close, a copy and exit().
TEST_P(SQLiteLogical, a_flush_makes_them_durable) {
  const auto done = pool_->flush();
  EXPECT_TRUE(done) << done.error().message;
  EXPECT_TRUE(all_are_durable());
}

TEST_P(SQLiteLogical, a_durable_commit_that_changes_nothing_makes_them_durable) {
  connection db(uri_of(path));
  sqlite3_file* f = nullptr;
  ASSERT_EQ(sqlite3_file_control(db.handle(), "main", SQLITE_FCNTL_FILE_POINTER, &f), SQLITE_OK);
  std::vector<char> page(4096);
  for (const int level : {SQLITE_LOCK_SHARED, SQLITE_LOCK_RESERVED, SQLITE_LOCK_EXCLUSIVE})
    ASSERT_EQ(f->pMethods->xLock(f, level), SQLITE_OK);
  ASSERT_EQ(f->pMethods->xRead(f, page.data(), 4096, 4096), SQLITE_OK);
  ASSERT_EQ(f->pMethods->xWrite(f, page.data(), 4096, 4096), SQLITE_OK);
  ASSERT_EQ(f->pMethods->xFileControl(f, SQLITE_FCNTL_SYNC, nullptr), SQLITE_OK);
  ASSERT_EQ(f->pMethods->xSync(f, SQLITE_SYNC_NORMAL), SQLITE_OK);
  ASSERT_EQ(f->pMethods->xFileControl(f, SQLITE_FCNTL_COMMIT_PHASETWO, nullptr), SQLITE_OK);
  EXPECT_TRUE(all_are_durable());
  ASSERT_EQ(f->pMethods->xUnlock(f, SQLITE_LOCK_NONE), SQLITE_OK);
}

// On a file they would wait for the next durable one, which may be hours.
TEST_P(SQLiteLogical, commits_on_a_file_that_are_not_deferred_are_durable) {
  constexpr const char* on_file = "/logical-on-file";
  pool_options o;
  o.create_size = 8 << 20, o.engine.mechanism = GetParam(), o.engine.media = "file";
  o.policy = concurrency::external, o.layout = sqlite::layout_name, o.engine.background = false;
  auto own = sqlite::open_pool::open(dir_.file("another"), o);
  ASSERT_TRUE(own) << own.error().message;
  sqlite::open_pool* const pool = sqlite::adopt(on_file, std::move(*own));
  {
    connection db(uri_of(on_file));
    db.must("CREATE TABLE t(a); PRAGMA synchronous=NORMAL; INSERT INTO t VALUES(1)");
    detail::runtime& core = pool->content().core();
    EXPECT_GE(core.mechanism().durable_through(), detail::newest_commit(core));
  }
  sqlite::disown(on_file);
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SQLiteLogical);
INSTANTIATE_TEST_SUITE_P(mechanisms, SQLiteLogical, ::testing::ValuesIn(known_of({"archapt-undo"})),
                         [](const auto&) { return "archaptundo"; });

class SQLiteFlusher : public ::testing::TestWithParam<std::string> {};

// Opens by the URI, as programs do: there is a flusher.
TEST_P(SQLiteFlusher, closing_and_copying_make_everything_durable) {
  const scratch_directory dir;
  const std::string uri = uri_of(dir.file("db"), GetParam());
  {
    connection db(uri);
    db.must("CREATE TABLE t(a); PRAGMA synchronous=NORMAL; INSERT INTO t VALUES(1)");
    db.must("INSERT INTO t VALUES(2); PRAGMA stele_backup='" + dir.file("copy") + "'");
    db.must("INSERT INTO t VALUES(3)");
  }
  EXPECT_EQ(connection(uri).number("SELECT count(*) FROM t"), 3);
  EXPECT_EQ(connection(uri_of(dir.file("copy"))).number("SELECT count(*) FROM t"), 2);
}

INSTANTIATE_TEST_SUITE_P(settings, SQLiteFlusher,
                         ::testing::Values("media=file", "media=file&background=0",
                                           "media=process"),
                         [](const auto& one) { return "s" + std::to_string(one.index); });

}  // namespace
}  // namespace stele::testing
