// A pool's file is removed, renamed or replaced while the pool is open. Updates were once
// acknowledged for ever, check() and close() succeeded, and nothing of it was found again.
#include <stele/kv.h>
#include <stele/snapshot.h>
#include <tests/conformance/pools.h>

#include <chrono>
#include <filesystem>
#include <thread>

namespace stele::testing {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr std::size_t size = 1u << 20;

struct move_of_file {
  const char* name;
  void (*apply)(const fs::path& pool);
};
const move_of_file moves[] = {
    {"removed", [](const fs::path& p) { fs::remove(p); }},
    {"renamed", [](const fs::path& p) { fs::rename(p, p.string() + ".old"); }},
    {"replaced by a copy",
     [](const fs::path& p) {
       fs::copy_file(p, p.string() + ".new");
       fs::rename(p.string() + ".new", p);
     }},
    {"in a folder that was renamed",
     [](const fs::path& p) { fs::rename(p.parent_path(), p.parent_path().string() + ".old"); }},
    {"in a folder that was replaced",
     [](const fs::path& p) {
       fs::rename(p.parent_path(), p.parent_path().string() + ".old");
       fs::copy(p.parent_path().string() + ".old", p.parent_path());
     }},
};

class moved_pool : public ::testing::TestWithParam<std::string> {
 protected:
  // A pool in a folder of its own, with one item.
  kv make(const std::string& name) {
    fs::create_directory(dir_.file(name));
    path_ = dir_.file(name) + "/pool";
    auto opened = kv::open(path_, {.create_size = size, .engine = {.media = GetParam()}});
    EXPECT_TRUE(succeeds(opened));
    EXPECT_TRUE(succeeds(opened->put("before", "1")));
    return std::move(*opened);
  }
  static void expect_refused(const result<>& outcome) {
    ASSERT_TRUE(fails_with(outcome, errc::read_only));
    EXPECT_NE(outcome.error().message.find("while it was open"), std::string::npos)
        << outcome.error().message;
  }

  scratch_directory dir_;
  std::string path_;
};

// The bound of docs/guide/care.md.
TEST_P(moved_pool, takes_no_update_a_second_later) {
  unsigned number = 0;
  for (const move_of_file& m : moves) {
    SCOPED_TRACE(m.name);
    kv store = make("bound-" + std::to_string(++number));
    m.apply(path_);
    const auto begin = std::chrono::steady_clock::now();
    result<> put;
    while ((put = store.put("after", "2")) && std::chrono::steady_clock::now() - begin < 20s)
      std::this_thread::sleep_for(20ms);
    expect_refused(put);
    expect_refused(store.put("after", "3", durability::ordered));
    EXPECT_EQ((*store.get("before")).value_or(""), "1") << "reads go on";
    expect_refused(store.close());
  }
}

TEST_P(moved_pool, is_told_by_each_call_about_the_whole_pool) {
  unsigned number = 0;
  for (const move_of_file& m : moves) {
    SCOPED_TRACE(m.name);
    kv checked = make("checked-" + std::to_string(++number));
    m.apply(path_);
    expect_refused(checked.check());
    expect_refused(checked.put("after", "2"));
    kv synced = make("synced-" + std::to_string(number));
    m.apply(path_);
    expect_refused(synced.sync());
    kv closed = make("closed-" + std::to_string(number));
    m.apply(path_);
    expect_refused(closed.close());
    EXPECT_TRUE(succeeds(closed.close())) << "a second close has nothing to do";
  }
}

// The way out: what was committed can be copied until the pool is closed.
TEST_P(moved_pool, can_be_copied_before_it_is_closed) {
  kv store = make("copied");
  fs::remove(path_);
  expect_refused(store.check());
  ASSERT_TRUE(succeeds(store.backup(path_)));
  auto copy = kv::open(path_);
  ASSERT_TRUE(succeeds(copy));
  EXPECT_EQ((*copy->get("before")).value_or(""), "1");
}

// The name is not looked up in the working directory of that moment.
TEST_P(moved_pool, is_none_after_a_change_of_the_working_directory) {
  const fs::path before = fs::current_path();
  fs::create_directory(dir_.file("there"));
  fs::current_path(dir_.file("there"));
  auto store = kv::open("pool", {.create_size = size, .engine = {.media = GetParam()}});
  fs::current_path(before);
  ASSERT_TRUE(succeeds(store));
  EXPECT_TRUE(succeeds(store->check()));
  EXPECT_TRUE(succeeds(store->put("a", "1")));
  EXPECT_TRUE(succeeds(store->close()));
}

INSTANTIATE_TEST_SUITE_P(media, moved_pool, ::testing::Values("process", "file", "adr"),
                         plain_name);

}  // namespace
}  // namespace stele::testing
