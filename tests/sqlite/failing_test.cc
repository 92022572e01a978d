// Failing calls, full pools and full disks under SQLite: the error is FULL or IOERR, and all that
// was acknowledged is there when the database is opened again.
#include <fcntl.h>
#include <tests/conformance/file_faults.h>
#include <tests/conformance/own_mounts.h>
#include <tests/conformance/pools.h>
#include <tests/sqlite/connection.h>

namespace stele::testing {
namespace {

using explore::file_fault;

struct outcome {
  std::int64_t acknowledged = 0;
  int code = SQLITE_OK;  // of the statement that failed
};

// Commits rows of growing size until an error, or `rows` of them.
outcome insert(connection& db, std::int64_t rows) {
  outcome o;
  for (std::int64_t i = 1; i <= rows && o.code == SQLITE_OK; ++i) {
    o.code = db.run("BEGIN; INSERT INTO item(pad) VALUES(randomblob(" +
                    std::to_string(500 + i * 37 % 4000) +
                    ")); UPDATE item SET pad = randomblob(700) WHERE id = 1; COMMIT") &
             0xff;
    if (o.code == SQLITE_OK) o.acknowledged = i;
  }
  return o;
}

bool is_full_or_failed(int code) {
  return code == SQLITE_FULL || code == SQLITE_IOERR;
}

// Opens the database again: all rows that were acknowledged are there, and perhaps the next one.
void expect_whole(const std::string& uri, std::int64_t acknowledged) try {
  connection db(uri);
  const std::int64_t rows = db.number("SELECT count(*) FROM item");
  EXPECT_GE(rows, acknowledged);
  EXPECT_LE(rows, acknowledged + 1);
  EXPECT_EQ(db.text("PRAGMA integrity_check"), "ok");
  EXPECT_EQ(db.text("PRAGMA stele_check"), "ok");
  db.must("UPDATE item SET pad = zeroblob(10) WHERE id = 1");
} catch (const std::exception& e) {
  ADD_FAILURE() << e.what();
}

const std::string table = "CREATE TABLE item(id INTEGER PRIMARY KEY, pad BLOB)";

class sqlite_failing_calls : public ::testing::TestWithParam<file_fault> {};

TEST_P(sqlite_failing_calls, lose_nothing_that_was_acknowledged) {
  std::uint64_t struck = 0;
  for (std::uint64_t call = 1; call < 400; call += call < 60 ? 1 : 13) {
    SCOPED_TRACE("call " + std::to_string(call));
    const scratch_directory dir;
    const std::string uri = uri_of(dir.file("db"), "size=256K&media=file");
    outcome o;
    bool made = false;
    {
      const faulty_files files(explore::file_faults(GetParam(), call));
      try {
        connection db(uri);
        db.must(table);
        made = true;
        o = insert(db, 40);
        if (o.code != SQLITE_OK && o.code != SQLITE_FULL) {
          EXPECT_EQ(o.code, SQLITE_IOERR);
          EXPECT_NE(db.text("PRAGMA stele_error"), "");
          EXPECT_NE(db.run("BEGIN IMMEDIATE; UPDATE item SET pad = 1; COMMIT"), SQLITE_OK)
              << "a poisoned pool takes writes";
        }
      } catch (const sqlite_failure&) {  // nothing was acknowledged but, perhaps, the table
      }
      if (!files.faults().has_triggered()) break;
    }
    ++struck;
    if (made) expect_whole(uri, o.acknowledged);
    if (HasFailure()) return;
  }
  std::printf("  %lu calls failed\n", struck);
  EXPECT_GT(struck, GetParam() == file_fault::write_back ? 0u : 20u);
}

std::string name_of(const ::testing::TestParamInfo<file_fault>& one) {
  return one.param == file_fault::refused       ? "refused"
         : one.param == file_fault::write_back  ? "write_back"
         : one.param == file_fault::short_write ? "short_write"
                                                : "interrupted";
}
INSTANTIATE_TEST_SUITE_P(of, sqlite_failing_calls,
                         ::testing::Values(file_fault::refused, file_fault::write_back,
                                           file_fault::short_write, file_fault::interrupted),
                         name_of);

class sqlite_full : public ::testing::TestWithParam<std::string> {};

std::vector<std::string> full_pools() {
  std::vector<std::string> all = {"size=512K&max_size=512K&media=process",
                                  "size=512K&max_size=512K&media=process&mechanism=redo",
                                  "size=512K&max_size=512K&media=process&mechanism=undo",
                                  "size=1M&media=process&mechanism=archapt-redo",
                                  "size=512K&max_size=512K&media=file"};
  std::erase_if(all, [](const std::string& p) { return !has_mechanism_of(p); });
  return all;
}

TEST_P(sqlite_full, pool_is_an_error_and_deleting_makes_room) {
  const scratch_directory dir;
  const std::string uri = uri_of(dir.file("db"), GetParam());
  std::int64_t acknowledged = 0;
  {
    connection db(uri);
    db.must("PRAGMA auto_vacuum=FULL");
    db.must(table);
    const outcome o = insert(db, 100000);
    EXPECT_EQ(o.code, SQLITE_FULL);
    if (::sqlite3_get_autocommit(db.handle()) == 0) db.must("ROLLBACK");
    acknowledged = o.acknowledged;
    EXPECT_EQ(db.number("SELECT count(*) FROM item"), acknowledged);
    // One large transaction, of which some was written early.
    db.must("PRAGMA cache_size=10");
    EXPECT_EQ(db.run("INSERT INTO item(pad) SELECT randomblob(3000) FROM item, item") & 0xff,
              SQLITE_FULL);
    EXPECT_EQ(db.number("SELECT count(*) FROM item"), acknowledged);
  }
  expect_whole(uri, acknowledged);
  connection db(uri);
  db.must("DELETE FROM item WHERE id > 2");
  EXPECT_EQ(insert(db, 5).code, SQLITE_OK);
  EXPECT_EQ(db.text("PRAGMA integrity_check"), "ok");
}

INSTANTIATE_TEST_SUITE_P(of, sqlite_full, ::testing::ValuesIn(full_pools()));

TEST(sqlite_full_disk, is_an_error_and_no_signal) {
  scratch_directory dir;
  on_own_file_system(dir.file(""), "2M", [&] {
    const std::string uri = uri_of(dir.file("db"), "size=512K&media=process");
    outcome o;
    {
      connection db(uri);
      db.must(table);
      o = insert(db, 100000);
      EXPECT_TRUE(is_full_or_failed(o.code)) << o.code;
    }
    EXPECT_GT(o.acknowledged, 50);
    expect_whole(uri, o.acknowledged);
  });
}

// Something has freed what the pool's file had reserved: fallocate --dig-holes, a trimming job.
TEST(sqlite_full_disk, that_took_the_space_of_a_pool_is_named) {
  scratch_directory dir;
  on_own_file_system(dir.file(""), "24M", [&] {
    const std::string uri = uri_of(dir.file("db"), "size=12M&max_size=12M&media=process");
    outcome o;
    {
      connection db(uri);
      db.must(table);
      const int fd = ::open(dir.file("db").c_str(), O_RDWR);
      ASSERT_EQ(::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 6 << 20, 6 << 20), 0);
      ::close(fd);
      const int filler = ::open(dir.file("filler").c_str(), O_CREAT | O_WRONLY, 0600);
      const std::string bytes(65536, 'x');
      while (::write(filler, bytes.data(), bytes.size()) > 0) {
      }
      ::close(filler);
      o = insert(db, 100000);
      EXPECT_EQ(o.code, SQLITE_FULL);
      EXPECT_NE(db.text("PRAGMA stele_error").find("No space left on device"), std::string::npos)
          << db.text("PRAGMA stele_error");
    }
    ::unlink(dir.file("filler").c_str());
    EXPECT_GT(o.acknowledged, 50);
    expect_whole(uri, o.acknowledged);
  });
}

}  // namespace
}  // namespace stele::testing
