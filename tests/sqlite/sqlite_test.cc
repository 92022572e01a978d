// SQLite on pools: what programs see of journals, locks, versions, several databases of one pool.
#include <adapters/sqlite/file.h>
#include <tests/conformance/child.h>
#include <tests/conformance/pools.h>
#include <tests/sqlite/connection.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <optional>
#include <thread>

namespace stele::testing {
namespace {

struct SQLite : ::testing::Test {
  scratch_directory dir;
  std::string path = dir.file("db.stele");
  std::string uri(const std::string& options = "") const {
    return "file:" + path + "?vfs=stele" + options;
  }
};

TEST_F(SQLite, keeps_what_was_committed) {
  {
    sqlite_connection c(uri());
    c.must("create table t(a integer primary key, b text)");
    c.must("begin; insert into t values(1,'one'),(2,'two'); commit");
    c.must("begin; insert into t values(3,'three')");
    EXPECT_EQ(c.row("select count(*) from t"), "3");
  }
  sqlite_connection c(uri());
  EXPECT_EQ(c.row("select group_concat(b) from t"), "one,two");
  EXPECT_EQ(c.row("pragma integrity_check"), "ok");
  EXPECT_EQ(c.row("pragma stele_check"), "ok");
}

TEST_F(SQLite, leaves_nothing_beside_the_pool) {
  sqlite_connection c(uri());
  c.must("create table t(a); begin; insert into t values(1)");
  EXPECT_EQ(std::distance(
                std::filesystem::directory_iterator(std::filesystem::path(path).parent_path()), {}),
            1);
}

TEST_F(SQLite, rolls_back_spilled_pages_and_savepoints) {
  sqlite_connection c(uri());
  c.must("pragma cache_size=5; create table t(a integer primary key, b blob)");
  c.must(
      "with recursive n(i) as (select 2 union all select i+1 from n where i<400)"
      " insert into t select i, randomblob(900) from n");
  const auto before = c.row("select count(*), sum(length(b)), min(hex(substr(b,1,4))) from t");
  c.must("begin; update t set b=randomblob(1500); savepoint s; delete from t; rollback to s");
  EXPECT_EQ(c.row("select count(*) from t"), "399");
  c.must("rollback");
  EXPECT_EQ(c.row("select count(*), sum(length(b)), min(hex(substr(b,1,4))) from t"), before);
  EXPECT_EQ(c.row("pragma integrity_check"), "ok");
}

// What it appends goes to the pool before its commit; nobody sees that, and a roll-back forgets it.
TEST_F(SQLite, a_large_transaction_stores_early_what_it_appends) {
  sqlite_connection c(uri("&pending=64K")), other(uri());
  c.must("pragma cache_size=10; create table t(a integer primary key, b blob)");
  c.must("insert into t values(0, randomblob(5000))");
  const auto state = [](sqlite_connection& of) {
    return of.row("select count(*), sum(length(b)), hex(min(substr(b, 1, 8))) from t");
  };
  const auto stored = [&] {
    const std::string all = c.row("pragma stele_counters"), name = "stored_bytes ";
    return std::stoull(all.substr(all.find(name) + name.size()));
  };
  const std::string many =
      "with recursive n(i) as (select 1 union all select i+1 from n where i<1500)"
      " insert into t select i, randomblob(3000) from n";
  for (const std::string end : {"rollback", "commit"}) {
    const auto before = state(other);
    other.must("begin");
    EXPECT_EQ(state(other), before);
    const auto stored_before = stored();
    c.must("begin; " + many);
    EXPECT_GT(stored(), stored_before + 4'000'000);
    c.must(
        "update t set b = randomblob(2000) where a % 7 = 3; savepoint s; delete from t where a > "
        "9");
    c.must("insert or replace into t select a + 100, zeroblob(9000) from t");
    c.must("rollback to s; release s");
    const auto inside = state(c);
    EXPECT_EQ(c.row("pragma integrity_check"), "ok");
    EXPECT_EQ(state(other), before);
    c.must(end);
    EXPECT_EQ(state(other), before);
    other.must("commit");
    EXPECT_EQ(state(other), end == "commit" ? inside : before);
    EXPECT_EQ(state(c), state(other));
  }
  EXPECT_EQ(c.row("pragma integrity_check"), "ok");
  EXPECT_EQ(c.row("pragma stele_check"), "ok");
}

TEST_F(SQLite, every_journal_mode_commits_and_rolls_back) {
  for (const std::string mode : {"delete", "truncate", "persist", "memory", "wal", "off"}) {
    for (const std::string locking : {"normal", "exclusive"}) {
      SCOPED_TRACE(mode + " " + locking);
      sqlite_connection c(uri());
      c.must("pragma locking_mode=" + locking);
      const std::string in_force = c.row("pragma journal_mode=" + mode);
      EXPECT_EQ(in_force, mode == "wal" || mode == "off" ? "delete" : mode);
      EXPECT_EQ(c.row("pragma journal_mode"), in_force);
      c.must("drop table if exists t; create table t(a)");
      c.must("insert into t values(1); begin; insert into t values(2); rollback");
      EXPECT_EQ(c.row("select group_concat(a) from t"), "1");
      c.must("insert into t values(3)");
      c.close();
      sqlite_connection again(uri());
      EXPECT_EQ(again.row("select group_concat(a) from t"), "1,3");
    }
  }
}

TEST_F(SQLite, readers_keep_their_version_and_do_not_stop_the_writer) {
  sqlite_connection writer(uri()), reader(uri()), late(uri());
  writer.must("create table t(a integer primary key, b blob)");
  writer.must("insert into t values(1, 10), (2, 20)");
  reader.must("begin");
  EXPECT_EQ(reader.row("select sum(b) from t"), "30");
  for (int i = 0; i < 50; ++i)
    writer.must("begin; update t set b=b+1; insert into t(b) values(zeroblob(3000)); commit");
  writer.must("delete from t where a>10; vacuum");
  EXPECT_EQ(reader.row("select sum(b) from t"), "30");
  EXPECT_EQ(reader.row("select count(*) from t"), "2");
  EXPECT_EQ(late.row("select sum(b) from t where a<3"), "130");
  // A reader that did not see the newest version cannot write on it.
  EXPECT_EQ(reader.run("insert into t values(99, 0)"), SQLITE_BUSY_SNAPSHOT);
  reader.must("commit; insert into t values(99, 0)");
  EXPECT_EQ(writer.row("select b from t where a=99"), "0");
  EXPECT_EQ(reader.row("pragma integrity_check"), "ok");
}

TEST_F(SQLite, one_connection_writes_at_a_time) {
  sqlite_connection a(uri()), b(uri());
  a.must("create table t(a)");
  for (const std::string begin : {"begin immediate", "begin exclusive"}) {
    a.must(begin + "; insert into t values(1)");
    EXPECT_EQ(b.run("begin immediate"), SQLITE_BUSY);
    EXPECT_EQ(b.row("select count(*) from t"), begin == "begin immediate" ? "0" : "1");
    a.must("commit");
  }
  b.must("insert into t values(2)");
  EXPECT_EQ(a.row("select count(*) from t"), "3");
}

TEST_F(SQLite, exclusive_locking_keeps_other_writers_out) {
  sqlite_connection a(uri()), b(uri());
  a.must("create table t(a); pragma locking_mode=exclusive");
  EXPECT_EQ(a.row("select count(*) from t"), "0");
  EXPECT_EQ(b.run("insert into t values(1)"), SQLITE_BUSY);
  for (int i = 0; i < 3; ++i) a.must("insert into t values(1)");
  EXPECT_EQ(b.row("select count(*) from t"), "3");
  a.must("pragma locking_mode=normal");
  EXPECT_EQ(a.row("select count(*) from t"), "3");
  b.must("insert into t values(1)");
  EXPECT_EQ(a.row("select count(*) from t"), "4");
}

TEST_F(SQLite, all_page_sizes_and_vacuums_that_change_them) {
  for (const int size : {512, 1024, 4096, 16384, 65536}) {
    SCOPED_TRACE(size);
    std::filesystem::remove(path);
    {
      sqlite_connection c(uri());
      c.must("pragma page_size=" + std::to_string(size) + "; pragma auto_vacuum=incremental");
      c.must("create table t(a integer primary key, b blob)");
      c.must(
          "with recursive n(i) as (select 1 union all select i+1 from n where i<300)"
          " insert into t select i, zeroblob(i*7) from n");
      c.must("delete from t where a%3=0; pragma incremental_vacuum(20)");
      EXPECT_EQ(c.row("pragma page_size"), std::to_string(size));
      EXPECT_EQ(c.row("pragma integrity_check"), "ok");
      const int other = size == 4096 ? 512 : 4096;
      c.must("pragma page_size=" + std::to_string(other) + "; vacuum");
      EXPECT_EQ(c.row("pragma page_size"), std::to_string(other));
    }
    sqlite_connection c(uri());
    EXPECT_EQ(c.row("select count(*), sum(length(b)) from t"), "200|210000");
    EXPECT_EQ(c.row("pragma integrity_check"), "ok");
    EXPECT_EQ(c.row("pragma stele_check"), "ok");
  }
}

TEST_F(SQLite, a_shorter_database_gives_its_space_back) {
  sqlite_connection c(uri());
  const auto free_bytes = [&] {
    const auto text = c.row("pragma stele_info");
    return std::stoull(text.substr(text.find("free_bytes ") + 11));
  };
  c.must("create table t(a)");
  const auto before = free_bytes();
  c.must("insert into t values(zeroblob(3000000))");
  EXPECT_LT(free_bytes() + 2'900'000, before);
  c.must("delete from t; vacuum");
  EXPECT_EQ(free_bytes(), before);
}

TEST_F(SQLite, databases_of_one_pool_commit_together) {
  for (const std::string mode : {"delete", "memory"}) {
    sqlite_connection c(uri("&database=first"));
    c.must("attach '" + uri("&database=second") + "' as second");
    c.must("pragma main.journal_mode=" + mode + "; pragma second.journal_mode=" + mode);
    c.must("create table if not exists main.t(a); create table if not exists second.u(a)");
    const auto commits = [&] {
      const auto text = c.row("pragma stele_counters");
      return std::stoull(text.substr(text.find("commits ") + 8));
    };
    const auto before = commits();
    c.must("begin; insert into t values(1); insert into u values(1); commit");
    EXPECT_EQ(commits(), before + 1);
    c.must("begin; insert into t values(2); insert into u values(2); rollback");
    EXPECT_EQ(c.row("select (select count(*) from t), (select count(*) from u)"),
              mode == "delete" ? "1|1" : "2|2");
  }
}

TEST_F(SQLite, backups_both_ways) {
  const auto copy = [](sqlite_connection& from, sqlite_connection& to) {
    sqlite3_backup* b = sqlite3_backup_init(to.handle(), "main", from.handle(), "main");
    while (sqlite3_backup_step(b, 3) == SQLITE_OK) {
    }
    return sqlite3_backup_finish(b);
  };
  sqlite_connection ordinary(dir.file("ordinary.db"));
  ordinary.must("pragma journal_mode=wal; create table t(a, b)");
  ordinary.must(
      "with recursive n(i) as (select 1 union all select i+1 from n where i<1000)"
      " insert into t select i, zeroblob(100) from n");
  sqlite_connection c(uri());
  ASSERT_EQ(copy(ordinary, c), SQLITE_OK);
  EXPECT_EQ(c.row("select count(*) from t"), "1000");
  c.must("insert into t values(1001, 1)");
  c.close();
  sqlite_connection again(uri());
  EXPECT_EQ(again.row("select count(*) from t"), "1001");
  sqlite_connection back(dir.file("back.db"));
  ASSERT_EQ(copy(again, back), SQLITE_OK);
  EXPECT_EQ(back.row("select count(*) from t"), "1001");
  EXPECT_EQ(back.row("pragma integrity_check"), "ok");
}

TEST_F(SQLite, a_pool_grows_with_its_database) {
  sqlite_connection c(uri("&size=1M"));
  c.must("create table t(a integer primary key, b blob)");
  for (int i = 0; i < 4; ++i)
    c.must(
        "with recursive n(i) as (select 1 union all select i+1 from n where i<2000)"
        " insert into t(b) select zeroblob(1500) from n");
  EXPECT_EQ(c.row("select count(*), sum(length(b)) from t"), "8000|12000000");
  c.close();
  sqlite_connection fixed(uri("&max_size=1M"));
  while (fixed.run("insert into t(b) select b from t where a<1000") == SQLITE_OK) {
  }
  EXPECT_EQ(sqlite3_errcode(fixed.handle()), SQLITE_FULL);
  EXPECT_EQ(fixed.row("pragma integrity_check"), "ok");
  fixed.must("delete from t where a>10");
  EXPECT_EQ(fixed.row("select count(*) from t"), "10");
}

TEST_F(SQLite, a_path_that_leads_to_another_file_is_another_database) {
  sqlite_connection old(uri());
  old.must("create table t(a); insert into t values('old')");
  std::filesystem::rename(path, dir.file("moved.stele"));
  ::usleep(20'000);
  EXPECT_EQ(old.run("insert into t values(1)"), SQLITE_READONLY_DBMOVED);
  sqlite_connection fresh(uri());
  EXPECT_EQ(fresh.row("select count(*) from sqlite_schema"), "0");
  fresh.must("create table u(a)");
  sqlite_connection moved("file:" + dir.file("moved.stele") + "?vfs=stele");
  EXPECT_EQ(moved.row("select a from t"), "old");
  moved.must("insert into t values('new')");
  EXPECT_EQ(old.row("select count(*) from t"), "2");
  std::filesystem::remove(path);
  ::usleep(20'000);
  EXPECT_EQ(fresh.run("create table v(a)"), SQLITE_READONLY_DBMOVED);
}

TEST_F(SQLite, readers_without_locks_see_one_version) {
  sqlite_connection c(uri());
  c.must("create table t(a); insert into t values(1)");
  sqlite_connection immutable(uri("&immutable=1"), SQLITE_OPEN_READONLY);
  c.must("insert into t values(2)");
  EXPECT_EQ(immutable.row("select count(*) from t"), "1");
  sqlite_connection refused(uri("&nolock=1"));
  EXPECT_EQ(refused.open_code(), SQLITE_CANTOPEN);
  EXPECT_NE(c.row("pragma stele_error").find("nolock=1"), std::string::npos);
}

TEST_F(SQLite, a_transaction_may_cross_threads) {
  sqlite_connection c(uri());
  c.must("create table t(a); begin; insert into t values(1)");
  std::thread([&] { c.must("insert into t values(2); commit"); }).join();
  EXPECT_EQ(c.row("select count(*) from t"), "2");
}

TEST_F(SQLite, threads_read_whole_states_beside_a_writer) {
  constexpr int rows = 40;
  {
    sqlite_connection c(uri());
    c.must("create table t(a integer primary key, n, pad blob)");
    for (int i = 0; i < rows; ++i) c.must("insert into t values(null, 0, zeroblob(1500))");
  }
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0}, reads{0};
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i)
    readers.emplace_back([&] {
      sqlite_connection c(uri());
      while (!stop) {
        c.must("begin");
        const auto first = c.row("select min(n), max(n), count(*) from t");
        const auto second = c.row("select max(n), min(n), count(*) from t order by a desc");
        c.must("commit");
        const auto n = first.substr(0, first.find('|'));
        wrong += first != n + "|" + n + "|40" || second != first;
        ++reads;
      }
    });
  sqlite_connection c(uri());
  for (int i = 0; i < 300 || reads < 50; ++i)
    c.must(i % 10 == 3 ? "update t set n=n+1, pad=randomblob(2500-abs(random()%2000))"
                       : "update t set n=n+1");
  stop = true;
  for (auto& r : readers) r.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(c.row("pragma integrity_check"), "ok");
}

TEST_F(SQLite, other_processes_read_beside_the_writer) {
  {
    sqlite_connection c(uri());
    c.must("create table t(a); insert into t values(1)");
  }
  child writer([&](const word_sender& send) {
    sqlite_connection c(uri());
    c.must("insert into t values(2)");
    send(1);
    for (int i = 3;; ++i) {
      c.must("insert into t values(" + std::to_string(i) + ")");
      ::usleep(1000);
    }
  });
  std::uint64_t word = 0;
  ASSERT_TRUE(writer.receive(word));
  sqlite_connection refused(uri());
  EXPECT_EQ(refused.open_code(), SQLITE_BUSY);
  EXPECT_NE(sqlite::last_report().find(std::to_string(writer.pid())), std::string::npos);
  std::optional<sqlite_connection> opened;  // a commit may come while SQLite reads the header
  do opened.emplace("file:" + path + "?vfs=stele&mode=ro", SQLITE_OPEN_READONLY);
  while ((opened->open_code() & 0xFF) == SQLITE_BUSY);
  sqlite_connection& reader = *opened;
  ASSERT_EQ(reader.open_code(), SQLITE_OK);
  EXPECT_EQ(reader.row("pragma stele_error").find(std::to_string(writer.pid())), std::string::npos)
      << "the sentence of an earlier open";
  int refusal = SQLITE_BUSY;  // a commit may come while SQLite reads the schema
  while ((refusal & 0xFF) == SQLITE_BUSY) refusal = reader.run("insert into t values(0)");
  EXPECT_EQ(refusal, SQLITE_READONLY);
  // A commit in the middle of a read ends it; the next one begins at the newest version.
  const auto read = [&] {
    for (;;) try {
        return reader.row("select count(*), max(a) from t");
      } catch (const std::runtime_error&) {
        if ((sqlite3_errcode(reader.handle()) & 0xFF) != SQLITE_BUSY) throw;
      }
  };
  int last = 0, grown = 0;
  for (int i = 0; i < 300; ++i) {
    const auto row = read();
    const int count = std::stoi(row);
    EXPECT_EQ(row, std::to_string(count) + "|" + std::to_string(count));
    EXPECT_GE(count, last);
    grown += count > last;
    last = count;
    ::usleep(500);
  }
  EXPECT_GT(grown, 10);
  writer.kill_and_drain(0);
  EXPECT_GE(std::stoi(reader.row("select count(*) from t")), last);
}

TEST_F(SQLite, pools_of_these_mechanisms_serve) {
  for (const std::string& mechanism : known_of({"default", "redo", "redo-async", "undo", "blurred",
                                                "archapt-undo", "archapt-redo", "base"})) {
    SCOPED_TRACE(mechanism);
    std::filesystem::remove(path);
    {
      sqlite_connection c(uri("&mechanism=" + mechanism));
      ASSERT_EQ(c.open_code(), SQLITE_OK) << c.row("pragma stele_error");
      c.must(
          "create table t(a, b); pragma synchronous=normal; insert into t values(1, "
          "zeroblob(9000))");
      c.must("pragma synchronous=full; insert into t select a+1, b from t");
    }
    sqlite_connection c(uri("&mechanism=" + mechanism));
    EXPECT_EQ(c.row("select sum(a), sum(length(b)) from t"), "3|18000");
    EXPECT_EQ(c.row("pragma integrity_check"), "ok");
  }
}

}  // namespace
}  // namespace stele::testing
