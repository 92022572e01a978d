// `stele sqlite` as a user runs it: databases into pools and out of them, and what it says of bad
// input.
#include <gmock/gmock.h>
#include <tests/conformance/command.h>
#include <tests/conformance/pools.h>
#include <tests/sqlite/connection.h>

#include <filesystem>
#include <fstream>

namespace stele::testing {
namespace {

using ::testing::HasSubstr;

class sqlite_command : public ::testing::Test {
 protected:
  sqlite_command() {
    sqlite_connection c(ordinary_);
    c.must("pragma journal_mode=wal; create table t(a, b)");
    c.must(
        "with recursive n(i) as (select 1 union all select i+1 from n where i<3000)"
        " insert into t select i, randomblob(300) from n");
    sum_ = c.row("select sum(a), min(hex(b)) from t");
  }
  std::string said(const std::string& arguments) const {
    const auto run = run_command("sqlite " + arguments);
    EXPECT_EQ(run.status, 0) << run.said;
    return run.said;
  }
  std::string refusal(const std::string& arguments) const {
    const auto run = run_command("sqlite " + arguments);
    EXPECT_EQ(run.status, 1) << run.said;
    return run.said;
  }
  scratch_directory dir_;
  const std::string ordinary_ = dir_.file("ordinary.db"), pool_ = dir_.file("p.stele"),
                    out_ = dir_.file("out.db");
  std::string sum_;
};

TEST_F(sqlite_command, exports_what_it_imports) {
  said("import " + ordinary_ + " " + pool_ + " --size 1M");
  EXPECT_THAT(said("check " + pool_), HasSubstr("whole"));
  {
    sqlite_connection c("file:" + pool_ + "?vfs=stele");
    EXPECT_EQ(c.row("select sum(a), min(hex(b)) from t"), sum_);
    c.must("delete from t where a>10");
  }
  EXPECT_THAT(said("export " + pool_ + " " + out_ + " --json -"), HasSubstr("\"pages\""));
  sqlite_connection c(out_);
  EXPECT_EQ(c.row("select count(*) from t"), "10");
  EXPECT_EQ(c.row("pragma integrity_check"), "ok");
}

TEST_F(sqlite_command, says_what_is_wrong_and_leaves_nothing) {
  std::ofstream(dir_.file("text"))
      << "not a database at all, only a long line of text" << std::string(600, '.');
  EXPECT_THAT(refusal("import " + dir_.file("text") + " " + pool_), HasSubstr("not a database"));
  EXPECT_THAT(refusal("import " + dir_.file("none") + " " + pool_), HasSubstr("none"));
  EXPECT_THAT(refusal("check " + ordinary_), HasSubstr("stele sqlite import"));
  EXPECT_THAT(refusal("export " + dir_.file("none") + " " + out_), HasSubstr("none"));
  EXPECT_FALSE(std::filesystem::exists(pool_));
  EXPECT_FALSE(std::filesystem::exists(pool_ + ".part"));
  EXPECT_FALSE(std::filesystem::exists(out_));
  said("import " + ordinary_ + " " + pool_);
  EXPECT_THAT(refusal("import " + ordinary_ + " " + pool_), HasSubstr("exists already"));
  EXPECT_THAT(refusal("check " + pool_ + " --database other"), HasSubstr("no database \"other\""));
  sqlite_connection holder("file:" + pool_ + "?vfs=stele");
  EXPECT_THAT(refusal("check " + pool_), HasSubstr(std::to_string(::getpid())));
}

TEST_F(sqlite_command, finds_damage_of_the_database) {
  said("import " + ordinary_ + " " + pool_);
  {
    sqlite_connection c("file:" + pool_ + "?vfs=stele");
    c.must("pragma writable_schema=on; update sqlite_schema set rootpage=3 where name='t'");
  }
  EXPECT_THAT(refusal("check " + pool_), HasSubstr("never used"));
}

}  // namespace
}  // namespace stele::testing
