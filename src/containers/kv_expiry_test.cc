// Times of items that expire: a clock that was wrong for a while, lifetimes at the limits of what a
// clock can show, and every way to read an item whose time has passed.
#include <containers/content_copy.h>
#include <containers/kv_clock.h>
#include <containers/kv_limits.h>
#include <containers/test_bed.h>
#include <stele/kv.h>

#include <functional>
#include <limits>
#include <set>

namespace stele::testing {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

constexpr std::uint64_t noon = 1'800'000'000'000;  // milliseconds since 1970, of a right clock
constexpr std::uint64_t years_50 = 50ull * 31'557'600'000;

template <class R>
auto value_of(R outcome) {
  if (!outcome) throw std::runtime_error(outcome.error().message);
  if constexpr (!std::is_void_v<typename R::value_type>) return std::move(*outcome);
}

std::atomic<std::uint64_t> test_now;

class kv_expiry_times : public ::testing::Test {
 protected:
  kv_expiry_times() {
    test_now = noon;
    detail::set_kv_clock([]() noexcept -> std::uint64_t { return test_now; });
  }
  ~kv_expiry_times() override { detail::set_kv_clock(nullptr); }
  std::string path() const { return directory_.file("store"); }
  kv open() const {
    return value_of(
        kv::open(path(), {.create_size = std::size_t{4} << 20, .engine = {.media = "process"}}));
  }
  scratch_directory directory_;
};

kv_time time_of(std::uint64_t ms) {
  return kv_time(milliseconds(ms));
}
kv_time latest() {
  return time_of(
      std::chrono::duration_cast<milliseconds>(kv_time::max().time_since_epoch()).count());
}

TEST_F(kv_expiry_times, a_clock_that_was_ahead_for_a_moment_stops_no_lifetime) {
  constexpr std::uint64_t bound = detail::kv_clock_greatest_step_back_ms;
  for (const std::uint64_t step : {bound + 1, 2 * bound, std::uint64_t{86'400'000}, years_50}) {
    SCOPED_TRACE(step);
    detail::set_kv_clock([]() noexcept -> std::uint64_t { return test_now; });
    test_now = noon;
    auto s = open();
    test_now = noon + step;
    value_of(s.put_for("during", "1", 1min));
    test_now = noon;
    value_of(s.put_for("after", "1", 1s));
    EXPECT_EQ(value_of(s.statistics()).clock_behind, 0ms);
    test_now = noon + 999;
    EXPECT_EQ(value_of(s.get("after")), "1");
    test_now = noon + 1000;
    EXPECT_EQ(value_of(s.get("after")), std::nullopt);
    EXPECT_TRUE(value_of(s.put_if("after", std::nullopt, "a lease that is free again")));
    value_of(s.check());
  }
}

TEST_F(kv_expiry_times, time_stands_still_at_most_the_bound) {
  constexpr std::uint64_t bound = detail::kv_clock_greatest_step_back_ms;
  auto s = open();
  test_now = noon + bound;
  value_of(s.put_for("gone", "1", 1ms));
  test_now = noon + bound + 1;
  EXPECT_FALSE(value_of(s.contains("gone")));
  test_now = noon + 1;
  EXPECT_FALSE(value_of(s.contains("gone"))) << "a step back within the bound shows it again";
  EXPECT_EQ(value_of(s.statistics()).clock_behind, milliseconds(bound));
  test_now = noon;
  EXPECT_EQ(value_of(s.statistics()).clock_behind, 0ms);
}

TEST_F(kv_expiry_times, lifetimes_at_the_limits_are_read_and_copied) {
  constexpr std::int64_t longest = std::numeric_limits<std::int64_t>::max();
  const auto limit = latest().time_since_epoch() / 1ms;
  for (const std::int64_t ms :
       {std::int64_t{1}, std::int64_t{9'000'000'000'000}, limit - static_cast<std::int64_t>(noon),
        limit - static_cast<std::int64_t>(noon) + 1, limit, limit + 1,
        std::int64_t{9'220'000'000'000'000}, longest - static_cast<std::int64_t>(noon), longest - 1,
        longest}) {
    SCOPED_TRACE(ms);
    std::filesystem::remove(path());
    const kv_time when =
        std::uint64_t(ms) >= std::uint64_t(limit) - noon ? latest() : time_of(noon + ms);
    {
      auto s = open();
      value_of(s.put_for("timed", "v", milliseconds(ms)));
      value_of(s.put("plain", "w"));
      EXPECT_EQ(value_of(s.get("timed")), "v");
      EXPECT_EQ(value_of(s.size()), 2u);
      EXPECT_EQ(value_of(s.statistics()).expiring_items, 1u);
      EXPECT_EQ(value_of(s.read([](const kv::view& v) { return v.expiry("timed"); })), when);
      value_of(s.check());
      value_of(s.close());
    }
    for (const bool losses : {false, true}) {
      const std::string to = directory_.file("copy");
      const auto copied = detail::copy_content(path(), to, {.allow_losses = losses});
      ASSERT_TRUE(copied) << copied.error().message;
      EXPECT_EQ(copied->left.count, 2u);
      EXPECT_TRUE(copied->left.lost.empty());
      auto s = value_of(kv::open(to));
      EXPECT_EQ(value_of(s.get("timed")), "v");
      EXPECT_EQ(value_of(s.read([](const kv::view& v) { return v.expiry("timed"); })), when);
      value_of(s.close());
      std::filesystem::remove(to);
    }
  }
  auto s = open();
  for (const std::int64_t ms : {std::int64_t{0}, std::int64_t{-1}, -longest, -longest - 1})
    EXPECT_EQ(s.put_for("k", "v", milliseconds(ms)).error().code, errc::invalid_argument) << ms;
}

TEST_F(kv_expiry_times, a_time_of_an_earlier_program_beyond_every_clock_is_read_as_the_latest) {
  for (const std::uint64_t stored :
       {9'300'000'000'000u + std::uint64_t{0}, std::uint64_t{1} << 63, ~std::uint64_t{0}}) {
    SCOPED_TRACE(stored);
    std::filesystem::remove(path());
    {
      auto s = open();
      value_of(s.update([&](kv::changes& c) { detail::store_in(c).put("timed", "v", stored); }));
      EXPECT_EQ(value_of(s.read([](const kv::view& v) { return v.expiry("timed"); })), latest());
      value_of(s.close());
    }
    const auto copied = detail::copy_content(path(), directory_.file("copy"), {});
    ASSERT_TRUE(copied) << copied.error().message;
    EXPECT_EQ(copied->left.count, 1u);
    std::filesystem::remove(directory_.file("copy"));
  }
}

TEST_F(kv_expiry_times, put_until_takes_every_time_of_its_type) {
  auto s = open();
  value_of(s.put_until("k", "v", kv_time::max()));
  EXPECT_EQ(value_of(s.read([](const kv::view& v) { return v.expiry("k"); })), latest());
  value_of(s.put_until("k", "v", kv_time::min()));
  EXPECT_EQ(value_of(s.get("k")), std::nullopt);
  for (const std::int64_t ms : {std::numeric_limits<std::int64_t>::min(), std::int64_t{-1},
                                std::int64_t{0}, std::numeric_limits<std::int64_t>::max()})
    value_of(s.put_until("k", "v", detail::kv_time_of(ms)));
  EXPECT_EQ(value_of(s.get("k")), "v");
  value_of(s.check());
}

// The keys that a way to read a store shows.
using shown = std::set<std::string>;
struct read_path {
  const char* name;
  std::function<shown(kv&)> read;
};

shown of_view(kv& s, const std::function<void(const kv::view&, shown&)>& read) {
  shown keys;
  value_of(s.read([&](const kv::view& v) {
    keys.clear();
    read(v, keys);
  }));
  return keys;
}
shown of_cursor(kv::cursor c, bool backward, const char* seek = nullptr) {
  shown keys;
  bool on = seek == nullptr ? value_of(backward ? c.prev() : c.next())
                            : value_of(backward ? c.seek_before(seek) : c.seek(seek));
  for (; on; on = value_of(backward ? c.prev() : c.next())) keys.insert(c.key());
  return keys;
}
void take(shown& keys, const std::optional<kv_item>& item) {
  if (item) keys.insert(item->key);
}

constexpr std::string_view all_keys[] = {"a", "b", "bb", "c", "d"};

const read_path read_paths[] = {
    {"get",
     [](kv& s) {
       shown k;
       for (auto key : all_keys)
         if (value_of(s.get(key))) k.emplace(key);
       return k;
     }},
    {"get into",
     [](kv& s) {
       shown k;
       std::string v;
       for (auto key : all_keys)
         if (value_of(s.get(key, v))) k.emplace(key);
       return k;
     }},
    {"contains",
     [](kv& s) {
       shown k;
       for (auto key : all_keys)
         if (value_of(s.contains(key))) k.emplace(key);
       return k;
     }},
    {"get_many",
     [](kv& s) {
       shown k;
       value_of(s.get_many(all_keys, [&](std::size_t i, std::optional<std::string_view> v) {
         if (v) k.emplace(all_keys[i]);
       }));
       return k;
     }},
    {"range",
     [](kv& s) {
       shown k;
       for (const auto& i : value_of(s.range("", "", 99))) k.insert(i.key);
       return k;
     }},
    {"walk", [](kv& s) { return of_cursor(s.walk(), false); }},
    {"walk back", [](kv& s) { return of_cursor(s.walk(), true); }},
    {"seek", [](kv& s) { return of_cursor(s.walk(), false, "a"); }},
    {"seek_before", [](kv& s) { return of_cursor(s.walk(), true, "e"); }},
    {"walk_prefix",
     [](kv& s) {
       shown k;
       for (const char* p : {"a", "b", "c", "d"}) k.merge(of_cursor(s.walk_prefix(p), false));
       return k;
     }},
    {"view get",
     [](kv& s) {
       return of_view(s, [](auto& v, shown& k) {
         for (auto key : all_keys)
           if (v.get(key)) k.emplace(key);
       });
     }},
    {"for_each",
     [](kv& s) {
       return of_view(s, [](auto& v, shown& k) {
         v.for_each("", "", [&](auto key, auto) { return k.emplace(key), true; });
       });
     }},
    {"for_each_backward",
     [](kv& s) {
       return of_view(s, [](auto& v, shown& k) {
         v.for_each_backward("", "", [&](auto key, auto) { return k.emplace(key), true; });
       });
     }},
    {"for_each_prefix",
     [](kv& s) {
       return of_view(s, [](auto& v, shown& k) {
         for (auto p : {"a", "b", "c", "d"})
           v.for_each_prefix(p, [&](auto key, auto) { return k.emplace(key), true; });
       });
     }},
    {"first",
     [](kv& s) {
       return of_view(s, [](auto& v, shown& k) {
         for (auto key : all_keys) take(k, v.first(key));
       });
     }},
    {"last_before",
     [](kv& s) {
       return of_view(s, [](auto& v, shown& k) {
         take(k, v.last());
         for (auto key : all_keys) take(k, v.last_before(std::string(key) + '\0'));
       });
     }},
    {"modify",
     [](kv& s) {
       shown k;
       for (auto key : all_keys)
         value_of(s.modify(key, [&](auto& v) {
           if (v) k.emplace(key);
         }));
       return k;
     }},
    {"put_if",
     [](kv& s) {
       shown k;
       for (auto key : all_keys)
         if (value_of(s.put_if(key, "v", "v"))) k.emplace(key);
       return k;
     }},
    {"erase",
     [](kv& s) {
       shown k;
       for (auto key : all_keys)
         if (value_of(s.erase(key))) k.emplace(key);
       return k;
     }},
};

TEST_F(kv_expiry_times, no_way_to_read_shows_an_expired_item) {
  const shown every(std::begin(all_keys), std::end(all_keys));
  for (unsigned expiring = 0; expiring < 32; ++expiring)
    for (const read_path& p : read_paths) {
      SCOPED_TRACE(std::string(p.name) + " of " + std::to_string(expiring));
      std::filesystem::remove(path());
      test_now = noon;
      detail::set_kv_clock([]() noexcept -> std::uint64_t { return test_now; });
      auto s = value_of(
          kv::open(path(), {.create_size = std::size_t{256} << 10, .engine = {.media = "adr"}}));
      shown stay;
      for (unsigned i = 0; i < std::size(all_keys); ++i)
        if ((expiring >> i & 1) != 0) {
          value_of(s.put_for(all_keys[i], "v", 10ms));
        } else {
          value_of(s.put(all_keys[i], "v"));
          stay.emplace(all_keys[i]);
        }
      test_now = noon + 9;
      EXPECT_EQ(value_of(s.size()), every.size());
      test_now = noon + 10;
      EXPECT_EQ(value_of(s.size()), stay.size());
      EXPECT_EQ(p.read(s), stay);
      value_of(s.check());
    }
}

TEST_F(kv_expiry_times, changes_take_an_expired_item_for_one_that_is_not_there) {
  auto s = open();
  for (const char* key : {"sum", "text", "lease"}) value_of(s.put_for(key, "12345678", 10ms));
  test_now = noon + 10;
  EXPECT_EQ(value_of(s.add("sum", 3)), 3);
  value_of(s.modify("text", [](auto& v) { v = v.value_or("new"); }));
  EXPECT_TRUE(value_of(s.put_if("lease", std::nullopt, "new")));
  test_now = noon + years_50;
  EXPECT_EQ(value_of(s.get("text")), "new") << "a new item has no expiry time";
  EXPECT_EQ(value_of(s.get("lease")), "new");
  EXPECT_EQ(value_of(s.add("sum", 0)), 3);
}

TEST_F(kv_expiry_times, a_reader_of_another_kind_shows_no_expired_item) {
  auto s = open();
  value_of(s.put_for("goes", "v", 10ms));
  value_of(s.put("stays", "v"));
  auto named = value_of(s.open_store("named"));
  value_of(named.put_for("goes", "v", 10ms));
  test_now = noon + 10;
  EXPECT_EQ(value_of(named.size()), 0u);
  auto reader = value_of(kv::open_read_only(path()));
  EXPECT_EQ(value_of(reader.get("goes")), std::nullopt);
  EXPECT_EQ(value_of(reader.size()), 1u);
  value_of(s.backup(directory_.file("copy")));
  auto copy = value_of(kv::open(directory_.file("copy")));
  EXPECT_EQ(value_of(copy.get("goes")), std::nullopt);
  EXPECT_EQ(value_of(copy.size()), 1u);
}

}  // namespace
}  // namespace stele::testing
