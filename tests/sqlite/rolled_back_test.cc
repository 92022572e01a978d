// A COMMIT of two databases of one pool fails in its middle: both are as before, or both are as
// after, for the connection itself and for a new one.
#include <tests/conformance/pools.h>
#include <tests/sqlite/connection.h>

#include <optional>

namespace stele::testing {
namespace {

// SQLite's allocations: one of them fails.
struct failing_memory {
  static inline sqlite3_mem_methods real{};
  static inline int fails_in = 0;  // 0: no more

  static bool fails() noexcept { return fails_in != 0 && --fails_in == 0; }
  static void* allocate(int size) { return fails() ? nullptr : real.xMalloc(size); }
  static void* resize(void* old, int size) { return fails() ? nullptr : real.xRealloc(old, size); }

  failing_memory() {
    sqlite3_shutdown();
    sqlite3_config(SQLITE_CONFIG_GETMALLOC, &real);
    sqlite3_mem_methods ours = real;
    ours.xMalloc = allocate;
    ours.xRealloc = resize;
    sqlite3_config(SQLITE_CONFIG_MALLOC, &ours);
    sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0);
    sqlite3_initialize();
  }
  ~failing_memory() {
    sqlite3_shutdown();
    sqlite3_config(SQLITE_CONFIG_MALLOC, &real);
    sqlite3_initialize();
  }
};

struct wrapped_methods {
  const sqlite3_io_methods* real = nullptr;
  sqlite3_io_methods methods{};
  void in(sqlite3_file* file) {
    real = file->pMethods;
    methods = *real;
    file->pMethods = &methods;
  }
};

// The VFS, with calls that fail once they are told to.
struct refusing_vfs {
  static inline sqlite3_vfs vfs{};
  static inline wrapped_methods database, journal;
  static inline bool refuses_deletion = false;
  // Calls until one is refused; 0: none is.
  static inline int syncs_until_refusal = 0, sizes_until_refusal = 0;

  static bool refuses(int& calls) { return calls != 0 && --calls == 0; }

  static int open(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* out_flags) {
    sqlite3_vfs* const below = sqlite3_vfs_find("stele");
    const int code = below->xOpen(below, name, file, flags, out_flags);
    if (code == SQLITE_OK && (flags & SQLITE_OPEN_MAIN_DB) != 0) {
      database.in(file);
      database.methods.xSync = [](sqlite3_file* f, int how) {
        return refuses(syncs_until_refusal) ? SQLITE_NOMEM : database.real->xSync(f, how);
      };
    }
    if (code == SQLITE_OK && (flags & SQLITE_OPEN_MAIN_JOURNAL) != 0) {
      journal.in(file);
      journal.methods.xFileSize = [](sqlite3_file* f, sqlite3_int64* size) {
        return refuses(sizes_until_refusal) ? SQLITE_NOMEM : journal.real->xFileSize(f, size);
      };
    }
    return code;
  }
  static int remove(sqlite3_vfs*, const char* name, int sync_folder) {
    if (std::exchange(refuses_deletion, false)) return SQLITE_IOERR_DELETE;
    sqlite3_vfs* const below = sqlite3_vfs_find("stele");
    return below->xDelete(below, name, sync_folder);
  }

  refusing_vfs() {
    stele_sqlite_register(0);
    vfs = *sqlite3_vfs_find("stele");
    vfs.zName = "refusing";
    vfs.xOpen = open;
    vfs.xDelete = remove;
    sqlite3_vfs_register(&vfs, 0);
  }
  ~refusing_vfs() { sqlite3_vfs_unregister(&vfs); }
};

class two_databases {
 public:
  two_databases(const std::string& path, const std::string& vfs, const std::string& journal_mode)
      : first_("file:" + path + "?vfs=" + vfs + "&size=256K&database=first"),
        second_("file:" + path + "?vfs=" + vfs + "&database=second") {
    open(journal_mode);
    one_->must("create table t(a unique, b); insert into t values(1, randomblob(300))");
    one_->must("insert into t select a+1, randomblob(300) from t");
  }
  // The code of the COMMIT, or of the statement before that failed.
  int change() {
    const int code = one_->run(
        "begin; insert into t select a+2, randomblob(300) from t;"
        " create table second.u as select * from t; commit");
    if (sqlite3_get_autocommit(one_->handle()) == 0) one_->must("rollback");
    return code;
  }
  void expect_whole(bool committed, int code) {
    expect_whole_to(*one_, committed, code);
    one_.reset();
    open("delete");
    expect_whole_to(*one_, committed, code);
  }

 private:
  void open(const std::string& journal_mode) {
    one_.emplace(first_);
    one_->must("attach '" + second_ + "' as second");
    one_->must("pragma main.journal_mode=" + journal_mode);
    one_->must("pragma second.journal_mode=" + journal_mode);
  }
  // An error tells nothing of what was committed.
  static void expect_whole_to(sqlite_connection& c, bool committed, int code) {
    const std::string rows = c.row("select count(*) from t"),
                      tables = c.row("select count(*) from second.sqlite_schema");
    if (committed)
      EXPECT_EQ(rows + "|" + tables, "4|1");
    else
      EXPECT_EQ(rows + "|" + tables, rows == "2" ? "2|0" : "4|1") << "after an error " << code;
    EXPECT_EQ(c.row("pragma main.integrity_check"), "ok");
    EXPECT_EQ(c.row("pragma second.integrity_check"), "ok");
  }

  const std::string first_, second_;
  std::optional<sqlite_connection> one_;
};

TEST(sqlite_rolled_back, without_memory_at_any_allocation) {
  const failing_memory memory;
  const std::vector<std::string> modes = {"delete", "persist", "memory"};
  for (const std::string& mode : modes) {
    int failed = 0;
    for (int at = 1;; ++at) {
      SCOPED_TRACE(mode + ", allocation " + std::to_string(at));
      const scratch_directory dir;
      two_databases both(dir.file("pool.stele"), "stele", mode);
      memory.fails_in = at;
      const int code = both.change();
      const bool struck = std::exchange(memory.fails_in, 0) == 0;
      both.expect_whole(code == SQLITE_OK, code);
      if (!struck || HasFailure()) break;
      failed += code != SQLITE_OK;
    }
    EXPECT_GT(failed, 50);
  }
}

// Databases that cannot be synced, journals whose size cannot be asked for, and a super-journal
// that cannot be deleted.
TEST(sqlite_rolled_back, when_a_call_of_the_commit_fails) {
  const refusing_vfs vfs;
  const std::vector<std::string> modes = {"delete", "persist", "memory"};
  for (const std::string& mode : modes) {
    int failed = 0;
    for (int call = 0; call < 12; ++call) {
      SCOPED_TRACE(mode + ", call " + std::to_string(call));
      const scratch_directory dir;
      two_databases both(dir.file("pool.stele"), "refusing", mode);
      vfs.refuses_deletion = call == 0;
      vfs.syncs_until_refusal = call == 1 || call == 2 ? call : 0;
      vfs.sizes_until_refusal = std::max(call - 2, 0);
      int code = both.change();
      vfs.refuses_deletion = false;
      vfs.syncs_until_refusal = vfs.sizes_until_refusal = 0;
      both.expect_whole(code == SQLITE_OK, code);
      if (code == SQLITE_OK) continue;
      ++failed;
      code = both.change();
      EXPECT_EQ(code, SQLITE_OK);
      both.expect_whole(true, code);
    }
    EXPECT_GE(failed, mode == "memory" ? 2 : 5);
  }
}

}  // namespace
}  // namespace stele::testing
