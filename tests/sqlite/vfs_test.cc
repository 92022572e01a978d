// The VFS as a program may call it, in ways in which SQLite's pager does not.
#include <tests/conformance/pools.h>
#include <tests/sqlite/connection.h>

#include <memory>
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

class super_journals {
 public:
  super_journals() {
    stele_sqlite_register(0);
    vfs_ = sqlite3_vfs_find("stele");
  }
  void make(const std::string& name) {
    const auto memory = std::make_unique<std::byte[]>(static_cast<std::size_t>(vfs_->szOsFile));
    auto* const f = reinterpret_cast<sqlite3_file*>(memory.get());
    int flags = SQLITE_OPEN_SUPER_JOURNAL | SQLITE_OPEN_CREATE | SQLITE_OPEN_READWRITE;
    ASSERT_EQ(vfs_->xOpen(vfs_, name.c_str(), f, flags, &flags), SQLITE_OK);
    f->pMethods->xClose(f);
  }
  void remove(const std::string& name) {
    EXPECT_EQ(vfs_->xDelete(vfs_, name.c_str(), 1), SQLITE_OK);
  }
  bool exists(const std::string& name) {
    int there = 0;
    EXPECT_EQ(vfs_->xAccess(vfs_, name.c_str(), SQLITE_ACCESS_EXISTS, &there), SQLITE_OK);
    return there != 0;
  }

 private:
  sqlite3_vfs* vfs_;
};

// It was forgotten when its first use had become old. Then its databases took their transaction for
// committed.
TEST(sqlite_vfs, a_super_journal_whose_name_was_used_before_exists_until_it_is_deleted) {
  super_journals journals;
  const std::string name = "/no/such/folder/again-mj0123456789";
  for (int uses = 0; uses < 3; ++uses) {
    journals.make(name);
    journals.remove(name);
    EXPECT_FALSE(journals.exists(name));
  }
  journals.make(name);
  const auto another = [](int i) {
    return "/no/such/folder/other" + std::to_string(i) + "-mj0123456789";
  };
  for (int i = 0; i < 1023; ++i) journals.make(another(i));
  EXPECT_TRUE(journals.exists(name));
  journals.remove(name);
  EXPECT_FALSE(journals.exists(name));
  for (int i = 0; i < 1023; ++i) journals.remove(another(i));
}

}  // namespace
}  // namespace stele::testing
