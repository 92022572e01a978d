// A reload of all keys (DEBUG RELOAD) that a crash interrupts leaves the keys of before.
#include <adapters/redis/keys.h>
#include <gtest/gtest.h>
#include <tests/conformance/pools.h>

#include <set>

namespace stele::redis {
namespace {

using testing::scratch_directory;

std::unique_ptr<keys> open(const std::string& path) {
  pool_options options;
  options.create_size = 8 << 20;
  auto made = pool<stored_keys>::open(path, options);
  if (!made) throw failure(made.error());
  auto all = keys::over(std::move(*made), [](const error& why) { throw failure(why); });
  if (!all) throw failure(all.error());
  return std::move(*all);
}

void set(keys& all, const std::string& key, int database) {
  const auto done = all.change(key.size() + bytes_of_item, [&] {
    as<stored_text>(all.add(item_kind::string, key, database)).value = key;
  });
  ASSERT_TRUE(done) << done.error().message;
}

void flush_all(keys& all, bool may_reload) {
  for (int d = 0; d < static_cast<int>(stored_keys::databases); ++d)
    ASSERT_TRUE(all.flush(d, may_reload));
}

// As database and name, of the items that a start makes keys.
std::set<std::string> keys_in(keys& all) {
  std::set<std::string> found;
  (void)all.read([&] {
    all.for_each([&](stored_item* item) {
      if (const int d = all.root().database_of(item->keyspace); d >= 0)
        found.insert(std::to_string(d) + " " + item->key.str());
    });
  });
  return found;
}

class reload : public ::testing::Test {
 protected:
  void SetUp() override {
    all = open(path);
    set(*all, "a", 0);
    set(*all, "b", 3);
    ASSERT_TRUE(all->end_unit(true));
    flush_all(*all, true);
    ASSERT_TRUE(all->begin_reload());
    ASSERT_FALSE(all->in_unit());
    set(*all, "a", 0);
    ASSERT_TRUE(all->end_unit(true));
    set(*all, "c", 3);
    ASSERT_TRUE(all->end_unit(true));
  }
  void open_again() {
    all.reset();
    all = open(path);
  }

  const scratch_directory dir;
  const std::string path = dir.file("keys.stele");
  std::unique_ptr<keys> all;
};

TEST_F(reload, that_is_interrupted_leaves_the_keys_of_before) {
  open_again();
  EXPECT_EQ(keys_in(*all), (std::set<std::string>{"0 a", "3 b"}));
  all->note_garbage();
  while (all->sweep()) {
  }
  EXPECT_EQ(all->count(), 2u);
}

TEST_F(reload, that_ends_replaces_them) {
  EXPECT_FALSE(all->sweep()) << "what is loaded is of no database yet";
  ASSERT_TRUE(all->end_reload());
  EXPECT_EQ(all->all_rest_on(), 0u);
  const std::set<std::string> expected{"0 a", "3 c"};
  EXPECT_EQ(keys_in(*all), expected);
  open_again();
  EXPECT_EQ(keys_in(*all), expected);
  auto sound = all->content().check();
  EXPECT_TRUE(sound) << sound.error().message;
}

TEST_F(reload, takes_back_no_flush_of_a_command_before_it) {
  ASSERT_TRUE(all->end_reload());
  flush_all(*all, false);  // FLUSHALL of an EXEC, whose unit is open
  set(*all, "d", 0);
  flush_all(*all, true);
  ASSERT_TRUE(all->begin_reload());
  open_again();
  EXPECT_EQ(keys_in(*all), (std::set<std::string>{"0 d"}));
}

TEST_F(reload, of_nothing_that_was_flushed_is_none) {
  ASSERT_TRUE(all->end_reload());
  set(*all, "d", 0);
  ASSERT_TRUE(all->begin_reload());
  EXPECT_TRUE(all->in_unit());
  ASSERT_TRUE(all->end_reload());
  ASSERT_TRUE(all->end_unit(true));
  EXPECT_EQ(keys_in(*all), (std::set<std::string>{"0 a", "0 d", "3 c"}));
}

}  // namespace
}  // namespace stele::redis
