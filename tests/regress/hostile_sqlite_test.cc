// Pools with SQLite databases and correct checksums that no program writes. Each once caused a
// signal, a store to any address, a hang or a full device. tests/fuzz found them; each test is
// named after its cause.
#include <adapters/sqlite/file.h>
#include <adapters/sqlite/stored.h>
#include <gtest/gtest.h>
#include <tests/fuzz/repair.h>
#include <tests/fuzz/target.h>
#include <tests/sqlite/connection.h>

#include <cstddef>
#include <filesystem>

namespace stele::testing {
namespace {

using fuzz::image;
using sqlite::stored_database;

class hostile_sqlite : public ::testing::Test {
 protected:
  hostile_sqlite() {
    root_ = pool().word(pool().header().home_offset);
    newest_ = target_of(root_);
    oldest_ = target_of(newest_ + offsetof(stored_database, next));
    extents_ = target_of(newest_ + offsetof(stored_database, extents));
  }
  image pool() { return image(bytes_); }
  std::uint64_t target_of(std::uint64_t at) { return at + pool().word(at); }
  void lead(std::uint64_t at, std::uint64_t to) { pool().put(at, to - at); }
  void say(std::size_t field, std::uint64_t value) { pool().put(newest_ + field, value); }

  // The codes of opening, and of reading beside.
  void expect_refused(bool also_beside = true) {
    fuzz::repair_pool(pool());
    fuzz::write_file(path_, bytes_);
    const std::string name = uri_of(path_,
                                    "media=process&database=a%20database%20whose%20name%20"
                                    "takes%20a%20block");
    const sqlite_connection writer(name, SQLITE_OPEN_READWRITE);
    EXPECT_EQ(writer.open_code(), SQLITE_CORRUPT);
    EXPECT_THAT(sqlite::last_report(), ::testing::HasSubstr("damaged"));
    sqlite_connection reader(name, SQLITE_OPEN_READONLY);
    const int code = reader.open_code() != SQLITE_OK ? reader.open_code()
                                                     : reader.run("SELECT count(*) FROM item");
    // A reader has room for a pool that grows: what lies behind its end is found missing.
    EXPECT_TRUE(code == SQLITE_CORRUPT || (code & 0xff) == SQLITE_IOERR || !also_beside) << code;
  }

  fuzz::bytes bytes_ = fuzz::sqlite_seeds()[0];
  const std::string path_ = fuzz::scratch() + "/hostile-sqlite";
  std::uint64_t root_ = 0, newest_ = 0, oldest_ = 0, extents_ = 0;
};

TEST_F(hostile_sqlite, more_extents_than_the_array_has) {
  say(offsetof(stored_database, extent_count), std::uint64_t{1} << 40);
  expect_refused();
}

TEST_F(hostile_sqlite, an_array_that_ends_behind_the_pool) {
  say(offsetof(stored_database, extent_room), sqlite::most_extents);
  say(offsetof(stored_database, extent_count), sqlite::most_extents);
  expect_refused(false);
}

TEST_F(hostile_sqlite, a_database_longer_than_its_extents) {
  for (const std::uint64_t bytes :
       {sqlite::extent_begin(1 + pool().word(newest_ + offsetof(stored_database, extent_count))),
        std::uint64_t{1} << 62, ~std::uint64_t{0}}) {
    say(offsetof(stored_database, size_bytes), bytes);
    expect_refused();
  }
}

TEST_F(hostile_sqlite, extents_outside_of_the_pool) {
  lead(extents_, bytes_.size() + (std::uint64_t{1} << 30));
  expect_refused();
}

TEST_F(hostile_sqlite, extents_in_the_header) {
  lead(extents_, 0);
  expect_refused();
}

TEST_F(hostile_sqlite, an_extent_that_two_databases_have) {
  lead(extents_, target_of(target_of(oldest_ + offsetof(stored_database, extents))));
  expect_refused(false);
}

TEST_F(hostile_sqlite, an_extent_over_the_list_of_databases) {
  lead(extents_, newest_ / 64 * 64);
  expect_refused(false);
}

TEST_F(hostile_sqlite, an_extent_in_free_memory) {
  lead(extents_, bytes_.size() - sqlite::smallest_extent);
  expect_refused(false);
}

TEST_F(hostile_sqlite, an_extent_between_two_blocks) {
  lead(extents_, target_of(extents_) + 64);
  expect_refused(false);
}

TEST_F(hostile_sqlite, a_list_in_a_circle) {
  lead(newest_ + offsetof(stored_database, next), newest_);
  say(offsetof(stored_database, name), 0);  // is looked for on and on
  expect_refused();
}

TEST_F(hostile_sqlite, a_list_that_leaves_the_pool) {
  lead(root_, bytes_.size() * 4);
  expect_refused();
  lead(root_, newest_ + 4);  // between two words
  expect_refused();
}

TEST_F(hostile_sqlite, a_name_outside_of_the_pool) {
  lead(newest_ + 8, bytes_.size() * 4);
  expect_refused();
}

TEST_F(hostile_sqlite, a_name_longer_than_its_block) {
  say(0, std::uint64_t{1} << 40 | 255);
  expect_refused();
}

// As the number of a page in damaged pages may be: the device was filled step by step.
TEST_F(hostile_sqlite, a_page_far_behind_the_end) {
  fuzz::write_file(path_, bytes_);
  sqlite_connection c(uri_of(path_, "media=process"));
  sqlite3_file* file = nullptr;
  ASSERT_EQ(sqlite3_file_control(c.handle(), "main", SQLITE_FCNTL_FILE_POINTER, &file), SQLITE_OK);
  c.must("BEGIN IMMEDIATE; UPDATE item SET n = n + 1");
  const std::string page(4096, 'p');
  const auto far = static_cast<sqlite3_int64>(std::filesystem::space(path_).available) * 4;
  ASSERT_EQ(file->pMethods->xWrite(file, page.data(), 4096, far), SQLITE_OK);
  EXPECT_EQ(c.run("COMMIT"), SQLITE_FULL);
  EXPECT_THAT(sqlite::last_report(), ::testing::HasSubstr("room"));
  (void)c.run("ROLLBACK");
  EXPECT_EQ(std::filesystem::file_size(path_), bytes_.size());
  EXPECT_EQ(c.row("PRAGMA integrity_check"), "ok");
  c.must("UPDATE item SET n = n + 1");
}

}  // namespace
}  // namespace stele::testing
