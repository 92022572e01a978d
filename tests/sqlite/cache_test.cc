// What a connection of SQLite has in its page cache, and what others commit meanwhile: it reads
// what they changed, and keeps the rest.
#include <tests/conformance/child.h>
#include <tests/conformance/pools.h>
#include <tests/sqlite/connection.h>

#include <optional>

namespace stele::testing {
namespace {

struct SQLiteCache : ::testing::Test {
  scratch_directory dir;
  std::string path = dir.file("db.stele");
  std::string uri() const { return uri_of(path); }

  // Rows of 3000 bytes, most of them on a page of their own.
  void make_rows(sqlite_connection& c) {
    c.must("create table t(id integer primary key, n int, pad blob)");
    c.must(
        "with recursive c(i) as (select 1 union all select i+1 from c where i<200)"
        " insert into t select i, 0, zeroblob(3000) from c");
  }
  static std::string update_of(int id) {
    return "update t set n=n+1 where id=" + std::to_string(id);
  }
  static int n_of(sqlite_connection& c, int id) {
    return std::stoi(c.row("select n from t where id=" + std::to_string(id)));
  }
  // Pages that the connection has read since the last call.
  static int read_pages(sqlite_connection& c) {
    int now = 0, most = 0;
    sqlite3_db_status(c.handle(), SQLITE_DBSTATUS_CACHE_MISS, &now, &most, 1);
    return now;
  }
  void outlasts_commits_to_other_pages(const std::string& name, const std::string& synchronous) {
    sqlite_connection writer(name), reader(name);
    make_rows(writer);
    writer.must("pragma synchronous=" + synchronous);
    (void)n_of(reader, 100);
    (void)n_of(reader, 100);
    (void)read_pages(reader);
    for (int i = 1; i < 50; ++i) {
      writer.must(update_of(i));
      EXPECT_EQ(n_of(reader, 100), 0);
    }
    EXPECT_EQ(read_pages(reader), 0);
    for (int i = 1; i < 50; ++i) {
      writer.must(update_of(100));
      EXPECT_EQ(n_of(reader, 100), i);
    }
    EXPECT_GE(read_pages(reader), 49);
  }
};

TEST_F(SQLiteCache, outlasts_commits_to_other_pages) {
  outlasts_commits_to_other_pages(uri(), "full");
}
TEST_F(SQLiteCache, outlasts_deferred_commits_to_other_pages) {
  outlasts_commits_to_other_pages(uri_of(path, "media=file"), "normal");
}

TEST_F(SQLiteCache, of_writers_in_turns_is_right) {
  sqlite_connection one(uri()), two(uri());
  make_rows(one);
  for (int i = 1; i <= 100; ++i) {
    sqlite_connection &writer = i % 3 == 0 ? one : two, &reader = i % 3 == 0 ? two : one;
    const int id = 1 + i % 7;
    const int before = n_of(reader, id);
    writer.must(update_of(id));
    EXPECT_EQ(n_of(reader, id), before + 1);
    EXPECT_EQ(n_of(writer, id), before + 1);
    writer.must("begin; " + update_of(id) + "; rollback");
    EXPECT_EQ(n_of(writer, id), before + 1);
    if (i % 5 == 0) writer.must("begin; " + update_of(20) + "; " + update_of(21) + "; commit");
    EXPECT_EQ(n_of(reader, 20), i / 5);
    EXPECT_EQ(n_of(reader, 21), i / 5);
  }
  EXPECT_EQ(one.row("pragma integrity_check"), "ok");
  EXPECT_EQ(two.row("pragma integrity_check"), "ok");
}

// An exclusive connection does not count its transactions.
TEST_F(SQLiteCache, is_right_beside_an_exclusive_writer) {
  sqlite_connection writer(uri()), reader(uri());
  make_rows(writer);
  writer.must("pragma locking_mode=exclusive");
  for (int i = 1; i <= 20; ++i) {
    writer.must(update_of(7));
    EXPECT_EQ(n_of(reader, 7), i);
  }
}

TEST_F(SQLiteCache, of_another_process_is_right_beside_an_exclusive_writer) {
  {
    sqlite_connection c(uri());
    make_rows(c);
  }
  child writer([&](const word_sender& send) {
    sqlite_connection c(uri());
    c.must("pragma locking_mode=exclusive");
    c.must(update_of(7));
    send(1);
    for (;;) {
      c.must(update_of(7));
      ::usleep(2000);
    }
  });
  std::uint64_t word = 0;
  ASSERT_TRUE(writer.receive(word));
  std::optional<sqlite_connection> opened;
  const auto read = [&] {  // a commit in the middle of a read ends it
    for (;;) try {
        if (!opened) opened.emplace(uri() + "&mode=ro", SQLITE_OPEN_READONLY);
        return n_of(*opened, 7);
      } catch (const sqlite_failure& f) {
        if ((f.code() & 0xFF) != SQLITE_BUSY) throw;
        if (sqlite3_errcode(opened->handle()) == SQLITE_CANTOPEN) opened.reset();
      }
  };
  const int first = read();
  int last = first;
  for (int i = 0; i < 2000 && last < first + 10; ++i) {
    const int now = read();
    EXPECT_GE(now, last);
    last = now;
    ::usleep(1000);
  }
  EXPECT_GE(last, first + 10);
}

TEST_F(SQLiteCache, data_version_tells_every_commit_of_others) {
  sqlite_connection writer(uri()), reader(uri());
  make_rows(writer);
  (void)n_of(reader, 100);
  (void)n_of(reader, 100);
  writer.must(update_of(1));
  const auto version = [&] { return reader.number("pragma data_version"); };
  auto last = version();
  EXPECT_EQ(version(), last);
  for (int i = 1; i <= 5; ++i) {
    writer.must(update_of(1));
    const auto now = version();
    EXPECT_NE(now, last);
    EXPECT_EQ(version(), now);
    last = now;
  }
  reader.must(update_of(2));
  EXPECT_EQ(version(), last);  // its own
}

TEST_F(SQLiteCache, sees_another_schema) {
  sqlite_connection writer(uri()), reader(uri());
  make_rows(writer);
  EXPECT_EQ(n_of(reader, 1), 0);
  writer.must("alter table t add column m default 5");
  EXPECT_EQ(reader.row("select m from t where id=1"), "5");
  writer.must("drop table t");
  EXPECT_THROW((void)n_of(reader, 1), sqlite_failure);
}

// A copy step by step begins again only when what it has copied changes.
TEST_F(SQLiteCache, of_a_copy_in_steps_is_right) {
  sqlite_connection writer(uri()), source(uri()), copy(":memory:");
  make_rows(writer);
  sqlite3_backup* const backup =
      sqlite3_backup_init(copy.handle(), "main", source.handle(), "main");
  ASSERT_NE(backup, nullptr);
  int code = SQLITE_OK;
  for (int i = 0; code == SQLITE_OK; ++i) {
    code = sqlite3_backup_step(backup, 5);
    if (i % 4 == 1 && i < 100) writer.must(update_of(1 + i % 200) + "; " + update_of(200 - i));
  }
  EXPECT_EQ(code, SQLITE_DONE);
  EXPECT_EQ(sqlite3_backup_finish(backup), SQLITE_OK);
  EXPECT_EQ(copy.row("pragma integrity_check"), "ok");
  const std::string all = "select group_concat(n) from t";
  EXPECT_EQ(copy.row(all), writer.row(all));
}

TEST_F(SQLiteCache, outlasts_no_page_that_was_freed_and_given_again) {
  sqlite_connection one(uri()), two(uri());
  make_rows(one);
  for (int i = 0; i < 20; ++i) {
    sqlite_connection &a = i % 2 == 0 ? one : two, &b = i % 2 == 0 ? two : one;
    a.must("delete from t where id between 50 and 60");
    EXPECT_EQ(b.row("select count(*) from t"), "189");
    b.must("create table other as select randomblob(3000) as x from t limit 10");
    a.must(
        "with recursive c(i) as (select 50 union all select i+1 from c where i<60)"
        " insert into t select i, 7, zeroblob(3000) from c");
    EXPECT_EQ(b.row("select count(*), sum(length(pad)) from t"), "200|600000");
    a.must("drop table other");
    for (sqlite_connection* c : {&one, &two}) EXPECT_EQ(c->row("pragma integrity_check"), "ok");
  }
}

}  // namespace
}  // namespace stele::testing
