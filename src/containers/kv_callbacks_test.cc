// Callbacks that change what they were called from, and a close that is refused and tried again.
#include <containers/test_bed.h>
#include <stele/kv.h>
#include <stele/snapshot.h>

#include <gmock/gmock.h>

#include <map>

namespace stele::testing {
namespace {

using ::testing::HasSubstr;

template <class R>
auto taken(R outcome) {
  if (!outcome) throw std::runtime_error(outcome.error().message);
  if constexpr (!std::is_void_v<typename R::value_type>) return std::move(*outcome);
}

class kv_callbacks : public ::testing::TestWithParam<std::string> {
 protected:
  kv open() const {
    return taken(kv::open(path_, {.create_size = std::size_t{4} << 20,
                                  .engine = {.mechanism = GetParam(), .media = "process"}}));
  }
  std::map<std::string, std::string> items_of(const kv& s) const {
    std::map<std::string, std::string> all;
    for (const kv_item& i : taken(s.range("", "", 100'000))) all[i.key] = i.value;
    return all;
  }
  scratch_directory directory_;
  const std::string path_ = directory_.file("store");
};

// The last change of a key wins, and that is what the callback leaves in its value.
TEST_P(kv_callbacks, of_modify_may_change_the_same_store) {
  auto s = open();
  std::map<std::string, std::string> expected;
  for (int i = 0; i < 100; ++i) {
    taken(s.put("k" + std::to_string(i), "v"));
    expected["k" + std::to_string(i)] = "v";
  }
  taken(s.modify("k1", [&](auto& v) {  // overwrites its own key
    taken(s.put("k1", std::string(500, 'x')));
    v = "last";
  }));
  expected["k1"] = "last";
  taken(s.modify("k2", [&](auto& v) {  // erases its own key
    taken(s.erase("k2"));
    v = v.value() + "2";
  }));
  expected["k2"] = "v2";
  taken(s.modify("k3", [&](auto& v) {  // puts its own key, and erases it
    taken(s.put("k3", "new"));
    v.reset();
  }));
  expected.erase("k3");
  taken(s.modify("k4", [&](auto& v) {  // makes both indexes grow
    for (int i = 0; i < 400; ++i) taken(s.put("new" + std::to_string(i), "n"));
    for (int i = 50; i < 100; ++i) taken(s.erase("k" + std::to_string(i)));
    v = "4";
  }));
  for (int i = 0; i < 400; ++i) expected["new" + std::to_string(i)] = "n";
  for (int i = 50; i < 100; ++i) expected.erase("k" + std::to_string(i));
  expected["k4"] = "4";
  taken(s.modify("k5", [&](auto& v) {  // nests, on the same key and on another
    taken(s.modify("k5", [](auto& inner) { inner = inner.value() + "inner"; }));
    taken(s.modify("k6", [](auto& inner) { inner = "6"; }));
    v = v.value() + "outer";
  }));
  expected["k5"] = "vouter", expected["k6"] = "6";
  EXPECT_EQ(items_of(s), expected);
  taken(s.check());
  taken(s.close());
  auto again = open();
  EXPECT_EQ(items_of(again), expected);
  taken(again.check());
}

TEST_P(kv_callbacks, of_modify_may_use_named_stores_and_roll_all_back) {
  auto s = open();
  auto named = taken(s.open_store("named"));
  taken(named.put("a", "1"));
  taken(s.modify("k", [&](auto& v) {
    v = taken(named.get("a"));
    taken(named.put("a", "2"));
  }));
  EXPECT_EQ(taken(s.get("k")), "1");
  EXPECT_EQ(taken(named.get("a")), "2");
  const auto failed = s.modify("k", [&](auto& v) {
    taken(named.put("a", "3"));
    taken(s.put("other", "3"));
    v = "3";
    throw failure({errc::cancelled, "the callback wants nothing of it"});
  });
  EXPECT_EQ(failed.error().code, errc::cancelled);
  EXPECT_EQ(taken(s.get("k")), "1");
  EXPECT_EQ(taken(named.get("a")), "2");
  EXPECT_EQ(taken(s.contains("other")), false);
}

TEST_P(kv_callbacks, cannot_close_and_a_later_close_can) {
  auto s = open();
  taken(s.put("k", "v"));
  taken(s.modify("k", [&](auto& v) {
    EXPECT_EQ(s.close().error().code, errc::in_use);
    EXPECT_EQ(s.grow(std::size_t{8} << 20).error().code, errc::nested);
    EXPECT_FALSE(s.backup(directory_.file("copy")));
    EXPECT_EQ(s.open_store("new").error().code, errc::nested);
    v = "changed";
  }));
  EXPECT_EQ(taken(s.get("k")), "changed");
  if (GetParam() != "log_structured") {  // no other process reads its pools
    EXPECT_EQ(taken(taken(kv::open_read_only(path_)).get("k")), "changed");
  }
  taken(s.close());
  taken(s.close());
  EXPECT_EQ(taken(open().get("k")), "changed");
}

TEST_P(kv_callbacks, a_close_that_a_snapshot_refuses_leaves_everything_as_it_was) {
  if (GetParam() == "log_structured") GTEST_SKIP() << "has no snapshots";
  auto s = open();
  taken(s.put("k", "v"));
  {
    auto snapshot = take_snapshot(s);
    ASSERT_TRUE(snapshot) << snapshot.error().message;
    for (int tries = 0; tries < 3; ++tries) {
      const auto refused = s.close();
      ASSERT_FALSE(refused);
      EXPECT_EQ(refused.error().code, errc::in_use);
    }
    taken(s.put("k", "after"));
    auto reader = kv::open_read_only(path_);
    ASSERT_TRUE(reader) << reader.error().message << ": other processes are served still";
    EXPECT_EQ(taken(reader->get("k")), "after");
  }
  taken(s.close());
  EXPECT_EQ(taken(open().get("k")), "after");
}

INSTANTIATE_TEST_SUITE_P(every, kv_callbacks,
                         ::testing::ValuesIn(known_of({"default", "undo", "log_structured"})),
                         [](const auto& of) { return of.param; });

}  // namespace
}  // namespace stele::testing
