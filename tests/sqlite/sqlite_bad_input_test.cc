// SQLite on files and options that are wrong: each has its code and its sentence, and leaves what
// was there.
#include <adapters/sqlite/file.h>
#include <sys/stat.h>
#include <tests/conformance/child.h>
#include <tests/conformance/own_mounts.h>
#include <tests/conformance/pools.h>
#include <tests/sqlite/connection.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace stele::testing {
namespace {

using ::testing::HasSubstr;

struct SQLiteBadInput : ::testing::Test {
  scratch_directory dir;
  std::string path = dir.file("db.stele");
  std::string uri(const std::string& options = "") const {
    return "file:" + path + "?vfs=stele" + options;
  }
  static std::string bytes_of(const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static auto files_beside(const std::string& file) {
    return std::distance(
        std::filesystem::directory_iterator(std::filesystem::path(file).parent_path()), {});
  }
  void expect_refused(const std::string& name, int code, const std::string& sentence) const {
    const std::string before = bytes_of(path);
    const sqlite_connection c(name);
    EXPECT_EQ(c.open_code(), code) << c.message();
    EXPECT_THAT(sqlite::last_report(), HasSubstr(sentence));
    EXPECT_TRUE(bytes_of(path) == before) << "the file was changed";
  }
  void make() const {
    sqlite_connection c(uri());
    c.must("create table t(a); insert into t values(1)");
  }
  void expect_kept() const { EXPECT_EQ(sqlite_connection(uri()).row("select a from t"), "1"); }
};

TEST_F(SQLiteBadInput, ordinary_database) {
  sqlite_connection(path).must("create table t(a)");
  expect_refused(uri(), SQLITE_NOTADB, "stele sqlite import " + path);
}

TEST_F(SQLiteBadInput, text_file) {
  std::ofstream(path) << std::string(100000, 'x');
  expect_refused(uri(), SQLITE_NOTADB, "is not a stele pool");
}

TEST_F(SQLiteBadInput, pool_of_another_layout) {
  struct other {
    field<std::uint64_t> number;
  };
  const pool_options options{.create_size = 4 << 20, .layout = "other"};
  {
    auto own = pool<other>::open(path, options);
    ASSERT_TRUE(own && own->update([](other& root) { root.number = 7; }));
  }
  const sqlite_connection c(uri());
  EXPECT_EQ(c.open_code(), SQLITE_NOTADB);
  EXPECT_THAT(sqlite::last_report(), HasSubstr("holds the layout 'other'"));
  auto own = pool<other>::open(path, options);
  ASSERT_TRUE(own);
  EXPECT_EQ(*own->read([](const other& root) { return root.number.load(); }), 7u);
}

TEST_F(SQLiteBadInput, damaged_header) {
  make();
  {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(8) << std::string(4000, '\xa5');
  }
  const sqlite_connection c(uri());
  EXPECT_NE(c.open_code(), SQLITE_OK);
  EXPECT_THAT(sqlite::last_report(), HasSubstr(path));
}

TEST_F(SQLiteBadInput, in_use_by_another_process) {
  make();
  child holder([&](const word_sender& send) {
    const sqlite_connection c(uri());
    send(static_cast<std::uint64_t>(c.open_code()));
    ::pause();
  });
  std::uint64_t code = 1;
  ASSERT_TRUE(holder.receive(code) && code == SQLITE_OK);
  {
    const sqlite_connection c(uri());
    EXPECT_EQ(c.open_code(), SQLITE_BUSY);
    EXPECT_THAT(sqlite::last_report(), HasSubstr(std::to_string(holder.pid())));
  }
  holder.kill_and_drain(0);
  expect_kept();
}

TEST_F(SQLiteBadInput, wrong_options) {
  for (const auto& [options, sentence] :
       {std::pair("&size=1K", "a pool of 1024 bytes is not possible"),
        {"&size=x", "size=x"},
        {"&size=16Q", "size=16Q"},
        {"&max_size=-1", "max_size=-1"},
        {"&mechanism=nix", "'nix'"},
        {"&media=nix", "nix"},
        {"&database=", "has a name"},
        {"&background=2", "background=2"},
        {"&require=eternity", "require=eternity"},
        {"&nolock=1", "nolock"}}) {
    expect_refused(uri(options), SQLITE_CANTOPEN, sentence);
    EXPECT_FALSE(std::filesystem::exists(path)) << options;
  }
}

TEST_F(SQLiteBadInput, missing_folder) {
  expect_refused("file:" + dir.file("none/db.stele") + "?vfs=stele", SQLITE_CANTOPEN, "none");
}

TEST_F(SQLiteBadInput, missing_file_without_create) {
  const sqlite_connection c(uri(), SQLITE_OPEN_READWRITE);
  EXPECT_EQ(c.open_code(), SQLITE_CANTOPEN);
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(SQLiteBadInput, pool_that_may_not_grow) {
  {
    sqlite_connection c(uri("&size=4M&max_size=4M"));
    c.must("create table t(a); insert into t values(1); create table big(b)");
    EXPECT_EQ(c.run("insert into big values(zeroblob(8000000))"), SQLITE_FULL);
    EXPECT_THAT(c.row("pragma stele_error"), HasSubstr("no room"));
    EXPECT_EQ(c.row("select count(*) from big"), "0");
    c.must("insert into big values(1)");
    EXPECT_EQ(c.row("pragma integrity_check"), "ok");
  }
  expect_kept();
  EXPECT_EQ(files_beside(path), 1);
}

TEST_F(SQLiteBadInput, full_disk) {
  const std::string folder = std::filesystem::path(path).parent_path();
  on_own_file_system(folder, "8M", [&] {
    {
      sqlite_connection c(uri("&size=4M"));
      c.must("create table t(a); insert into t values(1); create table big(b)");
      EXPECT_EQ(c.run("insert into big values(randomblob(16000000))"), SQLITE_FULL);
      EXPECT_THAT(c.row("pragma stele_error"), HasSubstr("No space left"));
      EXPECT_EQ(c.row("select count(*) from big"), "0");
      EXPECT_EQ(c.row("pragma integrity_check"), "ok");
    }
    expect_kept();
    EXPECT_EQ(files_beside(path), 1);
    sqlite_connection second("file:" + dir.file("two") + "?vfs=stele&size=64M");
    EXPECT_EQ(second.open_code(), SQLITE_FULL);
    EXPECT_EQ(files_beside(path), 1) << "the pool that found no room has left a file";
  });
}

// What stock SQLite gives for a file that it can only read: rows, and SQLITE_READONLY for a write.
void expect_only_read(const SQLiteBadInput& t) {
  for (const char* const options : {"", "&immutable=1", "&mode=ro", "&mode=rw"}) {
    SCOPED_TRACE(options);
    sqlite_connection c(t.uri(options));
    ASSERT_EQ(c.open_code(), SQLITE_OK) << sqlite::last_report();
    EXPECT_EQ(c.row("select a from t"), "1");
    EXPECT_EQ(sqlite3_db_readonly(c.handle(), "main"), 1);
    EXPECT_EQ(c.run("insert into t values(2)") & 0xff, SQLITE_READONLY);
    EXPECT_EQ(c.run("create table u(a)") & 0xff, SQLITE_READONLY);
    EXPECT_EQ(c.row("select a from t"), "1");
    EXPECT_EQ(c.row("pragma integrity_check"), "ok");
  }
  sqlite_connection memory(":memory:");
  memory.must("attach '" + t.uri() + "' as pool");
  EXPECT_EQ(memory.row("select a from pool.t"), "1");
  EXPECT_EQ(memory.run("delete from pool.t") & 0xff, SQLITE_READONLY);
}

TEST_F(SQLiteBadInput, read_only_folder) {
  const std::string folder = std::filesystem::path(path).parent_path();
  on_own_file_system(folder, "64M", [&] {
    make();
    ASSERT_TRUE(make_read_only(folder));
    const sqlite_connection made("file:" + dir.file("two") + "?vfs=stele");
    EXPECT_EQ(made.open_code(), SQLITE_CANTOPEN);
    EXPECT_THAT(sqlite::last_report(), HasSubstr("two"));
    expect_only_read(*this);
  });
}

// A pool that its process has not closed is recovered in memory.
TEST_F(SQLiteBadInput, read_only_folder_after_a_kill) {
  const std::string folder = std::filesystem::path(path).parent_path();
  on_own_file_system(folder, "64M", [&] {
    child killed([&](const word_sender& send) {
      make();
      sqlite_connection c(uri("&background=0"));
      c.must("update t set a = 1");
      send(1);
      ::pause();
    });
    std::uint64_t word = 0;
    ASSERT_TRUE(killed.receive(word));
    killed.kill_and_drain(0);
    ASSERT_TRUE(make_read_only(folder));
    expect_only_read(*this);
  });
}

TEST_F(SQLiteBadInput, file_that_this_user_only_reads) {
  if (::geteuid() != 0) GTEST_SKIP() << "becoming another user needs root";
  make();
  const std::string folder = std::filesystem::path(path).parent_path();
  ASSERT_EQ(::chmod(path.c_str(), 0644), 0);
  ASSERT_EQ(::chmod(folder.c_str(), 0755), 0);
  child nobody([&](const word_sender&) {
    ASSERT_TRUE(::setgid(65534) == 0 && ::setuid(65534) == 0);
    expect_only_read(*this);
    const sqlite_connection made("file:" + dir.file("two") + "?vfs=stele");
    EXPECT_EQ(made.open_code(), SQLITE_CANTOPEN);
  });
  EXPECT_EQ(nobody.wait(), 0) << "what was expected there did not hold; see above";
  ASSERT_EQ(::chmod(path.c_str(), 0), 0);
  child stranger([&](const word_sender&) {
    ASSERT_TRUE(::setgid(65534) == 0 && ::setuid(65534) == 0);
    const sqlite_connection c(uri());
    EXPECT_EQ(c.open_code(), SQLITE_CANTOPEN);
    EXPECT_THAT(sqlite::last_report(), HasSubstr(path));
  });
  EXPECT_EQ(stranger.wait(), 0) << "what was expected there did not hold; see above";
}

}  // namespace
}  // namespace stele::testing
