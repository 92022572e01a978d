// pool_snapshot: reads of one moment in many transactions, beside writers.
#include <stele/kv.h>
#include <stele/map.h>
#include <stele/snapshot.h>
#include <tests/conformance/pools.h>

#include <atomic>
#include <numeric>
#include <thread>

namespace stele::testing {
namespace {

struct accounts {
  using pool_resident = void;
  map<std::uint64_t, std::uint64_t> money;
};
constexpr std::uint64_t count = 200, each = 100;

std::uint64_t sum_of(const accounts& a) {
  std::uint64_t sum = 0;
  a.money.for_each([&](std::uint64_t, std::uint64_t m) { sum += m; });
  return sum;
}

class snapshots : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  snapshots() {
    EXPECT_TRUE(succeeds(p_.update([](accounts& a) {
      for (std::uint64_t i = 0; i < count; ++i) a.money.insert(i, each);
    })));
  }
  pool_snapshot taken() {
    auto s = take_snapshot(p_);
    if (!s) throw std::runtime_error(s.error().message);
    return std::move(*s);
  }
  result<std::uint64_t> sum_at(const pool_snapshot& s) {
    return s.read([&] { return p_.read(sum_of); });
  }
  result<> set(std::uint64_t key, std::uint64_t money) {
    return p_.update([&](accounts& a) { a.money.insert_or_assign(key, money); });
  }

  scratch_directory dir_;
  const pool_options options_ =
      setting{std::get<0>(GetParam()), std::get<1>(GetParam())}.options(4 << 20);
  pool<accounts> p_ = open_pool<accounts>(dir_.file("pool"), options_);
};

TEST_P(snapshots, show_the_moment_whatever_is_changed_after_it) {
  const auto before = taken();
  for (std::uint64_t i = 0; i < count; ++i) {
    ASSERT_TRUE(succeeds(set(i, 7)));
    ASSERT_TRUE(succeeds(p_.update([&](accounts& a) { a.money.insert(1'000 + i, 1); })));
  }
  const auto between = taken();
  ASSERT_TRUE(succeeds(p_.update([](accounts& a) {
    for (std::uint64_t i = 0; i < count; ++i) a.money.erase(i);
  })));
  for (int twice = 0; twice < 2; ++twice) {
    EXPECT_EQ(sum_at(before).value_or(0), count * each);
    EXPECT_EQ(sum_at(between).value_or(0), count * 8);
    EXPECT_EQ(p_.read(sum_of).value_or(0), count);
  }
}

TEST_P(snapshots, see_one_state_beside_writers_in_many_reads) {
  std::atomic<bool> stop = false;
  std::vector<std::jthread> writers;
  for (std::uint64_t t = 0; t < 2; ++t)
    writers.emplace_back([&, t] {
      base::rng random(t);
      while (!stop)
        EXPECT_TRUE(succeeds(p_.update([&](accounts& a) {
          const std::uint64_t from = random.below(count), to = random.below(count);
          const std::uint64_t some = std::min<std::uint64_t>(a.money.find(from)->second, 3);
          a.money.insert_or_assign(from, a.money.find(from)->second - some);
          a.money.insert_or_assign(to, a.money.find(to)->second + some);
        })));
    });
  for (int n = 0; n < 20; ++n) {
    const auto s = taken();
    const auto content = [&] {
      std::vector<std::uint64_t> all;
      EXPECT_TRUE(succeeds(s.read([&] {
        return p_.read([&](const accounts& a) {
          all.clear();
          a.money.for_each([&](std::uint64_t, std::uint64_t m) { all.push_back(m); });
        });
      })));
      return all;
    };
    const auto first = content();
    EXPECT_EQ(std::accumulate(first.begin(), first.end(), std::uint64_t{0}), count * each);
    for (int i = 0; i < 5; ++i) EXPECT_EQ(content(), first);
  }
  stop = true;
}

TEST_P(snapshots, are_read_by_several_threads) {
  const auto s = taken();
  std::vector<std::jthread> readers;
  for (int t = 0; t < 3; ++t)
    readers.emplace_back([&] {
      for (int i = 0; i < 50; ++i) EXPECT_EQ(sum_at(s).value_or(0), count * each);
    });
  for (std::uint64_t i = 0; i < 300; ++i) ASSERT_TRUE(succeeds(set(i % count, i)));
}

TEST_P(snapshots, keep_the_pool_open_and_refuse_changes) {
  {
    const auto s = taken();
    EXPECT_TRUE(fails_with(s.read([&] { return set(1, 1); }), errc::read_only));
    EXPECT_TRUE(
        fails_with(p_.update([&](accounts&) -> result<> { return s.read([] {}); }), errc::nested));
    EXPECT_TRUE(fails_with(p_.update([&](accounts&) -> result<> {
      auto another = take_snapshot(p_);
      return another ? result<>() : std::unexpected(another.error());
    }),
                           errc::nested));
    EXPECT_TRUE(fails_with(p_.close(), errc::in_use));
    EXPECT_EQ(sum_at(s).value_or(0), count * each) << "still usable";
    EXPECT_THROW((void)s.read([]() -> int { throw std::runtime_error("the body's own"); }),
                 std::runtime_error);
    EXPECT_EQ(s.read([] { return 7; }).value_or(0), 7);
  }
  EXPECT_TRUE(succeeds(p_.close()));
}

// While a snapshot is read, others commit, and take snapshots, for which transactions are paused.
TEST_P(snapshots, hold_nobody_up_while_they_are_read) {
  const auto s = taken();
  std::atomic<bool> done = false;
  std::jthread other;
  EXPECT_TRUE(succeeds(s.read([&] {
    other = std::jthread([&] {
      EXPECT_TRUE(succeeds(take_snapshot(p_)));
      EXPECT_TRUE(succeeds(set(0, 1)));
      done = true;
    });
    for (int i = 0; i < 10'000 && !done; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_TRUE(done);
  })));
}

TEST_P(snapshots, are_fifteen_at_most) {
  std::vector<pool_snapshot> all;
  for (int i = 0; i < 15; ++i) all.push_back(taken());
  EXPECT_TRUE(fails_with(take_snapshot(p_), errc::in_use));
  ASSERT_TRUE(succeeds(set(3, 0)));
  for (const auto& s : all) EXPECT_EQ(sum_at(s).value_or(0), count * each);
  all.pop_back();
  EXPECT_TRUE(succeeds(take_snapshot(p_)));
}

TEST_P(snapshots, outlast_a_growth_of_the_pool) {
  if (std::get<0>(GetParam()).starts_with("archapt")) GTEST_SKIP() << "does not grow";
  const auto s = taken();
  ASSERT_TRUE(succeeds(p_.grow(8 << 20)));
  ASSERT_TRUE(succeeds(set(1, 0)));
  EXPECT_EQ(sum_at(s).value_or(0), count * each);
}

INSTANTIATE_TEST_SUITE_P(
    all, snapshots,
    ::testing::Combine(::testing::ValuesIn(known_of({"default", "redo", "undo", "base", "blurred",
                                                     "adaptive", "archapt-undo", "archapt-redo"})),
                       ::testing::Values("adr", "file")),
    setting_name);

TEST(snapshots_of_kv, include_named_stores_and_cursors) {
  scratch_directory dir;
  auto store = kv::open(dir.file("pool"), {.create_size = 4 << 20});
  ASSERT_TRUE(succeeds(store));
  auto more = store->open_store("more");
  for (int i = 0; i < 600; ++i) ASSERT_TRUE(succeeds(store->put(std::to_string(1'000 + i), "old")));
  ASSERT_TRUE(succeeds(more->put("k", "old")));
  const auto then = take_snapshot(*store);
  ASSERT_TRUE(succeeds(then));
  auto walk = store->walk();
  int old = 0;
  for (int i = 0; i < 600; ++i) {
    ASSERT_TRUE(succeeds(store->put(std::to_string(1'000 + i), "new")));
    const auto stepped = then->read([&] { return walk.next(); });
    ASSERT_TRUE(stepped.value_or(false));
    old += walk.value() == "old";
  }
  EXPECT_EQ(old, 600);
  ASSERT_TRUE(succeeds(more->put("k", "new")));
  EXPECT_EQ(then->read([&] { return more->get("k"); }).value(), "old");
  EXPECT_EQ(more->get("k").value(), "new");
}

TEST(snapshots_of_others, are_refused) {
  scratch_directory dir;
  for (const auto& [mechanism, policy] : {std::pair{"log_structured", concurrency::stm},
                                          std::pair{"default", concurrency::single_writer},
                                          std::pair{"default", concurrency::external}}) {
    if (known_of({mechanism}).empty()) continue;
    auto p = open_pool<accounts>(dir.file(mechanism), setting{mechanism, "adr", policy}.options());
    EXPECT_TRUE(fails_with(take_snapshot(p), errc::unsupported));
  }
  ASSERT_TRUE(succeeds(kv::open(dir.file("kv"), {.create_size = 4 << 20})));
  auto reader = kv::open_read_only(dir.file("kv"));
  ASSERT_TRUE(succeeds(reader));
  EXPECT_TRUE(fails_with(take_snapshot(*reader), errc::unsupported));
}

}  // namespace
}  // namespace stele::testing
