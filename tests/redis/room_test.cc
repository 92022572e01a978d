// A unit of Redis' keys that has begun is never given up for want of room: a full pool is told
// before anything has changed. STELE_SEED repeats the choices.
#include <adapters/redis/keys.h>
#include <base/rng.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <tests/budget.h>
#include <tests/conformance/pools.h>

#include <map>

namespace stele::redis {
namespace {

using testing::scratch_directory;

struct outcome {
  std::uint64_t stored = 0, refused = 0;
};

// Sets keys to texts of up to `longest` bytes, several in a unit, and removes some where there is
// no room, until `units` have been stored. Throws if a unit cannot be committed.
outcome fill_and_empty(keys& all, std::uint64_t seed, std::size_t longest, std::uint64_t units) {
  base::rng random(seed);
  std::map<std::string, stored_item*> there;
  outcome seen;
  while (seen.stored < units) {
    for (std::uint64_t i = 1 + random.below(4); i != 0; --i) {
      const std::string key = fmt::format("key {}", random.below(200));
      const std::string text(random.below(longest), 'x');
      stored_item*& item = there[key];
      const bool is_new = item == nullptr;
      const auto done = all.change(text.size() + key.size() + 64, [&] {
        stored_item* const changed = is_new ? all.add(item_kind::string, key, 0) : item;
        as<stored_text>(changed).value = text;
        item = changed;
      });
      if (done) continue;
      EXPECT_EQ(done.error().code, errc::full) << done.error().message;
      ++seen.refused;
      if (is_new) there.erase(key);
      for (int removed = 0; removed < 20 && !there.empty(); ++removed) {
        all.note_unlinked(there.begin()->second);
        there.erase(there.begin());
      }
    }
    if (auto ended = all.end_unit(true); !ended) throw failure(ended.error());
    ++seen.stored;
  }
  return seen;
}

class room : public ::testing::TestWithParam<std::tuple<std::string, std::size_t, std::size_t>> {};
INSTANTIATE_TEST_SUITE_P(
    redis, room,
    ::testing::Combine(::testing::ValuesIn(stele::testing::known_of({"default", "redo", "undo",
                                                                     "base", "archapt-redo"})),
                       ::testing::Values(100, 30'000, 400'000), ::testing::Values(0, 24 << 20)));

TEST_P(room, is_asked_for_before_anything_changes) {
  const auto& [mechanism, longest, max_size] = GetParam();
  const std::uint64_t seed = budget::count_from("STELE_SEED", 1);
  SCOPED_TRACE("STELE_SEED=" + std::to_string(seed));
  const scratch_directory dir;
  pool_options options;
  options.engine.mechanism = mechanism;
  options.create_size = 8 << 20;
  if (std::string_view(mechanism) != "archapt-redo") options.max_size = max_size;
  auto made = pool<stored_keys>::open(dir.file("keys.stele"), options);
  ASSERT_TRUE(made) << made.error().message;
  auto all = keys::over(std::move(*made), [](const error& why) { throw failure(why); });
  ASSERT_TRUE(all) << all.error().message;
  const outcome seen = fill_and_empty(**all, seed, longest, longest > 1000 ? 400 : 4000);
  if (longest == 400'000) {
    EXPECT_GT(seen.refused, 0u);
  }
  auto sound = (*all)->content().check();
  EXPECT_TRUE(sound) << sound.error().message;
}

// Room that a unit has reserved is not asked for once more by each of its changes: the pool does
// not grow any more then.
TEST(reserved_room, is_enough_for_all_changes) {
  const scratch_directory dir;
  pool_options options;
  options.create_size = 8 << 20;
  options.max_size = std::size_t{1} << 30;
  auto made = pool<stored_keys>::open(dir.file("keys.stele"), options);
  ASSERT_TRUE(made) << made.error().message;
  auto all = keys::over(std::move(*made), [](const error& why) { throw failure(why); });
  ASSERT_TRUE(all) << all.error().message;
  constexpr int count = 4;
  const std::string text(options.create_size, 'x');
  const std::size_t bytes = text.size() + 64;
  const auto reserved = (*all)->reserve(count * bytes);
  ASSERT_TRUE(reserved) << reserved.error().message;
  for (int i = 0; i < count; ++i) {
    const auto done = (*all)->change(bytes, [&] {
      as<stored_text>((*all)->add(item_kind::string, fmt::format("key {}", i), 0)).value = text;
    });
    ASSERT_TRUE(done) << i << ": " << done.error().message;
  }
  ASSERT_TRUE((*all)->end_unit(true));
  EXPECT_EQ((*all)->count(), count);
}

}  // namespace
}  // namespace stele::redis
