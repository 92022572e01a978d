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

TEST_F(SQLiteBadInput, read_only_folder) {
  make();
  const std::string folder = std::filesystem::path(path).parent_path();
  if (!can_mount()) GTEST_SKIP() << "mounting needs root";
  on_own_file_system(folder, "64M", [&] {
    make();
    ASSERT_TRUE(make_read_only(folder));
    const sqlite_connection made("file:" + dir.file("two") + "?vfs=stele");
    EXPECT_NE(made.open_code(), SQLITE_OK);
    EXPECT_THAT(sqlite::last_report(), HasSubstr("two"));
    const sqlite_connection there(uri());
    EXPECT_NE(there.open_code(), SQLITE_OK);
    EXPECT_THAT(sqlite::last_report(), HasSubstr(path));
    sqlite_connection reader(uri(), SQLITE_OPEN_READONLY);
    EXPECT_EQ(reader.row("select a from t"), "1");
  });
}

}  // namespace
}  // namespace stele::testing
