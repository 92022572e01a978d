// The VFS as a program may call it, in ways in which SQLite's pager does not.
#include <tests/conformance/pools.h>
#include <tests/sqlite/connection.h>

#include <vector>

namespace stele::testing {
namespace {

sqlite3_file* file_of_main(const sqlite_connection& c) {
  sqlite3_file* f = nullptr;
  EXPECT_EQ(sqlite3_file_control(c.handle(), "main", SQLITE_FCNTL_FILE_POINTER, &f), SQLITE_OK);
  return f;
}

// The lock for reading makes an exclusive connection a writer. Its next transaction committed them.
TEST(sqlite_vfs, an_unlock_forgets_what_an_exclusive_connection_wrote_while_it_read) {
  const scratch_directory dir;
  sqlite_connection db(uri_of(dir.file("db"), "size=8M&media=process"));
  db.must("create table t(a); insert into t values('kept')");
  db.must("pragma locking_mode=exclusive");
  sqlite3_file* const f = file_of_main(db);
  std::vector<char> before(4096), now(4096), other(4096, 'x');
  ASSERT_EQ(f->pMethods->xLock(f, SQLITE_LOCK_SHARED), SQLITE_OK);
  ASSERT_EQ(f->pMethods->xRead(f, before.data(), 4096, 4096), SQLITE_OK);
  EXPECT_EQ(f->pMethods->xWrite(f, other.data(), 4096, 4096), SQLITE_OK);
  ASSERT_EQ(f->pMethods->xUnlock(f, SQLITE_LOCK_NONE), SQLITE_OK);
  ASSERT_EQ(f->pMethods->xLock(f, SQLITE_LOCK_SHARED), SQLITE_OK);
  ASSERT_EQ(f->pMethods->xRead(f, now.data(), 4096, 4096), SQLITE_OK);
  EXPECT_EQ(now, before);
  ASSERT_EQ(f->pMethods->xUnlock(f, SQLITE_LOCK_NONE), SQLITE_OK);
  EXPECT_EQ(db.row("select a from t"), "kept");
}

}  // namespace
}  // namespace stele::testing
