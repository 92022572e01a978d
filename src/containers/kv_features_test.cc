// Named stores, stores as members, walks in both directions, items that expire, changes of one key.
#include <base/rng.h>
#include <containers/kv_clock.h>
#include <containers/test_bed.h>
#include <stele/kv.h>
#include <stele/leaks.h>
#include <tx/mechanism/catalog.h>

#include <map>
#include <thread>

namespace stele::testing {
namespace {

using namespace std::chrono_literals;

template <class R>
auto value_of(R outcome) {
  if (!outcome) throw std::runtime_error(outcome.error().message);
  if constexpr (!std::is_void_v<typename R::value_type>) return std::move(*outcome);
}

std::atomic<std::uint64_t> test_now;
std::uint64_t test_clock() noexcept {
  return test_now;
}

class kv_features : public ::testing::Test {
 protected:
  ~kv_features() override { detail::set_kv_clock(nullptr); }
  kv open(pool_options options = {}) {
    if (options.create_size == 0) options.create_size = std::size_t{16} << 20;
    return value_of(kv::open(directory_.file("store"), options));
  }
  void at(std::uint64_t ms) {
    test_now = ms;
    detail::set_kv_clock(test_clock);
  }
  scratch_directory directory_;
};

kv_time time_of(std::uint64_t ms) {
  return kv_time(std::chrono::milliseconds(ms));
}
std::size_t used_blocks(const kv& s) {
  std::size_t blocks = 0;
  value_of(s.read([&](const kv::view&) {
    blocks = 0;
    s.visit_blocks([&](const void*) { ++blocks; });
  }));
  return blocks;
}

TEST_F(kv_features, one_update_changes_several_stores_or_none) {
  for (const auto& mechanism : detail::mechanisms()) {
    SCOPED_TRACE(mechanism.name);
    std::filesystem::remove(directory_.file("store"));
    {
      auto s = open({.engine = {.mechanism = mechanism.name, .media = "process"}});
      auto users = value_of(s.open_store("users")), orders = value_of(s.open_store("orders"));
      value_of(s.update([&](kv_store& c) -> result<> {
        c.put("both", "1");
        if (auto put = users.put("7", "ann"); !put) return put;
        return orders.put("1", "7");
      }));
      const auto refused = s.update([&](kv_store& c) -> result<> {
        c.put("both", "2");
        value_of(users.put("7", "bob"));
        value_of(orders.put("2", "7"));
        return std::unexpected(error{errc::cancelled, "no"});
      });
      EXPECT_EQ(refused.error().code, errc::cancelled);
      EXPECT_EQ(users.name(), "users");
      EXPECT_EQ(value_of(users.get("7")), "ann");
      EXPECT_EQ(value_of(orders.get("2")), std::nullopt);
      EXPECT_EQ(value_of(s.get("both")), "1");
      EXPECT_EQ(value_of(s.get("7")), std::nullopt);
      value_of(s.check());
    }
    if (mechanism.name == std::string("none")) continue;
    auto s = open({.engine = {.mechanism = mechanism.name, .media = "process"}});
    EXPECT_EQ(value_of(s.stores()), (std::vector<std::string>{"orders", "users"}));
    auto users = value_of(s.open_store("users", kv::if_missing::refuse));
    EXPECT_EQ(value_of(users.get("7")), "ann");
  }
}

TEST_F(kv_features, a_dropped_store_gives_its_blocks_back) {
  auto s = open();
  const auto before = used_blocks(s);
  (void)value_of(s.open_store("kept"));
  const auto with_one = used_blocks(s);
  {
    auto big = value_of(s.open_store("big"));
    for (unsigned i = 0; i < 1000; ++i) value_of(big.put(std::to_string(i), "value"));
    EXPECT_EQ(s.drop_store("big").error().code, errc::in_use);
  }
  EXPECT_GT(used_blocks(s), with_one + 1000);
  value_of(s.drop_store("big"));
  EXPECT_EQ(used_blocks(s), with_one);
  EXPECT_EQ(s.drop_store("big").error().code, errc::not_found);
  EXPECT_EQ(value_of(s.stores()), std::vector<std::string>{"kept"});
  value_of(s.check());
  EXPECT_GT(with_one, before);
}

TEST_F(kv_features, names_and_places_that_are_refused) {
  auto s = open();
  for (const std::string& name : {std::string(), std::string(256, 'n'), std::string("a\0b", 3)}) {
    EXPECT_EQ(s.open_store(name).error().code, errc::invalid_argument);
    EXPECT_EQ(s.drop_store(name).error().code, errc::invalid_argument);
  }
  EXPECT_EQ(s.open_store("none", kv::if_missing::refuse).error().code, errc::not_found);
  value_of(s.update([&](kv_store&) {
    EXPECT_EQ(s.open_store("inside").error().code, errc::nested);
    EXPECT_EQ(s.drop_store("inside").error().code, errc::nested);
  }));
  EXPECT_TRUE(value_of(s.stores()).empty());
}

// A program of before knows version 1 and refuses others.
TEST_F(kv_features, only_a_pool_with_named_stores_or_expiry_is_of_the_new_version) {
  auto s = open();
  const auto first_word = [&] {
    return value_of(s.read([](const kv_store& r) {
      return detail::load(reinterpret_cast<const std::uint64_t*>(&r));
    }));
  };
  value_of(s.put("a", "b"));
  EXPECT_EQ(first_word(), 1u);
  (void)value_of(s.open_store("other"));
  EXPECT_EQ(first_word(), 2u);
}

struct shop {
  using pool_resident = void;
  kv_store users, orders;
  field<std::uint64_t> next;
  void visit_blocks(const block_visitor& visit) const {
    users.visit_blocks(visit);
    orders.visit_blocks(visit);
  }
};

TEST_F(kv_features, stores_are_members_beside_fields) {
  auto p =
      value_of(pool<shop>::open(directory_.file("shop"), {.create_size = std::size_t{16} << 20}));
  for (unsigned i = 0; i < 300; ++i)
    value_of(p.update([&](shop& s) {
      s.users.put("user/" + std::to_string(i), "ann");
      s.orders.put(std::to_string((s.next += 1).load()), "user/" + std::to_string(i));
    }));
  EXPECT_EQ(p.update([](shop& s) {
               s.orders.put("lost", "x");
               s.users.put("", "no key");
             })
                .error()
                .code,
            errc::invalid_argument);
  value_of(p.read([](const shop& s) -> result<> {
    EXPECT_EQ(s.users.size(), 300u);
    EXPECT_EQ(s.orders.get("300"), "user/299");
    EXPECT_FALSE(s.orders.contains("lost"));
    if (auto sound = s.users.check(); !sound) return sound;
    return s.orders.check();
  }));
  EXPECT_TRUE(value_of(find_leaks(p)).leaked.empty());
  value_of(p.update([](shop& s) {
    kv_store* const more = make<kv_store>();
    more->put_for("a", "b", 1h);
    destroy(more);
    EXPECT_TRUE(s.users.erase("user/0"));
  }));
  EXPECT_TRUE(value_of(find_leaks(p)).leaked.empty());
}

using model = std::map<std::string, std::string>;

std::string similar_key(base::rng& r) {
  std::string key(r.below(3) == 0 ? "a common beginning of keys" : "");
  for (std::uint64_t n = 1 + r.below(4); n != 0; --n)
    key += r.below(4) == 0 ? "\0\x01\xFFz"[r.below(4)] : static_cast<char>(r.below(256));
  return key;
}

TEST_F(kv_features, walks_backward_agree_with_an_ordered_map) {
  auto s = open();
  model m;
  base::rng r(7);
  for (unsigned i = 0; i < 3000; ++i) {
    const std::string key = similar_key(r);
    value_of(s.put(key, std::to_string(i), durability::ordered));
    m[key] = std::to_string(i);
  }
  for (unsigned i = 0; i < 300; ++i) {
    const std::string from = r.below(4) == 0 ? "" : similar_key(r),
                      to = r.below(4) == 0 ? "" : similar_key(r);
    std::vector<kv_item> expected, got;
    for (auto it = m.lower_bound(from); it != m.end() && (to.empty() || it->first < to); ++it)
      expected.push_back({it->first, it->second});
    std::ranges::reverse(expected);
    value_of(s.read([&](const kv_store& v) {
      got.clear();
      v.for_each_backward(from, to, [&](std::string_view key, std::string_view value) {
        got.push_back({std::string(key), std::string(value)});
        return true;
      });
      const auto below = m.lower_bound(to);
      const auto last = v.last_before(to);
      EXPECT_EQ(last.has_value(), !to.empty() && below != m.begin());
      if (last) {
        EXPECT_EQ(last->key, std::prev(below)->first);
      }
    }));
    ASSERT_EQ(got, expected);
  }
}

TEST_F(kv_features, a_cursor_goes_both_ways) {
  auto s = open();
  model m;
  base::rng r(3);
  for (unsigned i = 0; i < 2000; ++i) {
    const std::string key = similar_key(r);
    value_of(s.put(key, "v", durability::ordered));
    m[key] = "v";
  }
  auto c = s.walk();
  auto it = m.end();  // where the cursor should be; m.end(): behind the last or before the first
  bool before_first = false;
  ASSERT_TRUE(value_of(c.prev()));
  ASSERT_EQ(c.key(), std::prev(m.end())->first);
  it = std::prev(m.end());
  for (unsigned i = 0; i < 20000; ++i) {
    bool there = false;
    switch (r.below(i % 1000 < 500 ? 40 : 50)) {
      case 0: {
        const std::string key = similar_key(r);
        there = value_of(c.seek(key));
        it = m.lower_bound(key), before_first = false;
        break;
      }
      case 1: {
        const std::string key = similar_key(r);
        there = value_of(c.seek_before(key));
        it = m.lower_bound(key);
        before_first = it == m.begin();
        it = before_first ? m.end() : std::prev(it);
        break;
      }
      default:
        if (i % 1000 < 500) {
          there = value_of(c.next());
          it = it != m.end() ? std::next(it) : before_first ? m.begin() : m.end();
          before_first = false;
        } else {
          there = value_of(c.prev());
          if (it == m.begin() || (it == m.end() && before_first))
            it = m.end(), before_first = true;
          else
            it = std::prev(it);
        }
    }
    ASSERT_EQ(there, it != m.end()) << i;
    if (there) {
      ASSERT_EQ(c.key(), it->first) << i;
    }
  }
}

TEST_F(kv_features, a_prefix_has_its_items_and_no_others) {
  auto s = open();
  for (const char* key : {"a", "ab", "abc", "ab\xFF", "ac", "\xFF", "\xFF\xFF", "\xFF\xFFz"})
    value_of(s.put(key, ""));
  const auto under = [&](std::string_view prefix) {
    std::vector<std::string> keys;
    auto c = s.walk_prefix(prefix);
    while (value_of(c.next())) keys.push_back(c.key());
    return keys;
  };
  using keys = std::vector<std::string>;
  EXPECT_EQ(under("ab"), (keys{"ab", "abc", "ab\xFF"}));
  EXPECT_EQ(under("\xFF\xFF"), (keys{"\xFF\xFF", "\xFF\xFFz"}));
  EXPECT_EQ(under("b"), keys{});
  EXPECT_EQ(under("").size(), 8u);
}

TEST_F(kv_features, expired_items_are_not_seen) {
  at(1000);
  auto s = open();
  value_of(s.put("stays", "1"));
  value_of(s.put_until("goes", "2", time_of(2000)));
  value_of(s.put_for("goes too", "3", 500ms));
  EXPECT_EQ(s.put_for("never", "", 0ms).error().code, errc::invalid_argument);
  EXPECT_EQ(value_of(s.size()), 3u);
  EXPECT_EQ(value_of(s.get("goes")), "2");
  value_of(s.read([](const kv_store& v) {
    EXPECT_EQ(v.expiry("goes"), time_of(2000));
    EXPECT_EQ(v.expiry("stays"), std::nullopt);
  }));
  test_now = 1999;
  EXPECT_EQ(value_of(s.get("goes")), "2");
  EXPECT_FALSE(value_of(s.contains("goes too")));
  test_now = 2000;
  EXPECT_EQ(value_of(s.get("goes")), std::nullopt);
  EXPECT_EQ(value_of(s.size()), 1u);
  EXPECT_EQ(value_of(s.range("", "", 10)).size(), 1u);
  EXPECT_EQ(value_of(s.statistics()).expired_items, 2u);
  value_of(s.check());
  test_now = 1500;  // a step back shows nothing again, and is told
  EXPECT_EQ(value_of(s.get("goes")), std::nullopt);
  EXPECT_EQ(value_of(s.statistics()).clock_behind, 500ms);
  EXPECT_EQ(value_of(s.remove_expired(1)), 1u);
  EXPECT_EQ(value_of(s.statistics()).expired_items, 1u);
  EXPECT_FALSE(value_of(s.erase("goes")));
  EXPECT_EQ(value_of(s.remove_expired(10)), 0u);
  EXPECT_EQ(value_of(s.statistics()).items, 1u);
  value_of(s.check());
}

TEST_F(kv_features, changes_of_one_store_remove_its_expired_items) {
  at(1000);
  auto s = open();
  for (unsigned i = 0; i < 100; ++i) value_of(s.put_for(std::to_string(i), "v", 100ms));
  test_now = 5000;
  for (unsigned i = 0; i < 20; ++i) value_of(s.put("other", std::to_string(i)));
  EXPECT_EQ(value_of(s.statistics()).items, 1u);
  value_of(s.check());
}

TEST_F(kv_features, a_full_store_makes_room_of_what_has_expired) {
  at(1000);
  auto s = open({.create_size = std::size_t{1} << 20});
  const std::string value(1000, 'v');
  unsigned n = 0;
  while (s.put_for(std::to_string(n), value, 100ms)) ++n;
  EXPECT_EQ(s.put("more", value).error().code, errc::full);
  test_now = 2000;
  for (unsigned i = 0; i < n / 2; ++i) value_of(s.put("new" + std::to_string(i), value));
  value_of(s.check());
}

// Puts with and without expiry, overwrites, erasures and removals against a model, reopened.
TEST_F(kv_features, items_that_expire_agree_with_a_model) {
  for (const std::string& mechanism : known_of({"default", "undo", "log_structured"})) {
    SCOPED_TRACE(mechanism);
    std::filesystem::remove(directory_.file("store"));
    at(1000);
    std::map<std::string, std::pair<std::string, std::uint64_t>> m;
    base::rng r(11);
    auto s = std::optional(open({.engine = {.mechanism = mechanism, .media = "process"}}));
    for (unsigned i = 0; i < 3000; ++i) {
      const std::string key = std::to_string(r.below(200)), value(r.below(60), 'v');
      const std::uint64_t when = test_now + 1 + r.below(50);
      std::erase_if(m, [](const auto& item) { return item.second.second <= test_now; });
      switch (r.below(6)) {
        case 0:
          value_of(s->put(key, value));
          m[key] = {value, ~std::uint64_t{0}};
          break;
        case 1:
        case 2:
          value_of(s->put_until(key, value, time_of(when)));
          m[key] = {value, when};
          break;
        case 3:
          ASSERT_EQ(value_of(s->erase(key)), m.erase(key) == 1);
          break;
        case 4:
          test_now += r.below(10);
          break;
        default:
          value_of(s->modify(key, [&](std::optional<std::string>& v) {
            if (v) *v += "x";
          }));
          if (m.contains(key)) m[key].first += "x";
      }
      if (i % 500 == 499) {
        std::erase_if(m, [](const auto& item) { return item.second.second <= test_now; });
        value_of(s->check());
        s.reset();
        s.emplace(open({.engine = {.mechanism = mechanism, .media = "process"}}));
        ASSERT_EQ(value_of(s->size()), m.size());
        for (const auto& [k, item] : m) ASSERT_EQ(value_of(s->get(k)), item.first);
      }
    }
  }
}

TEST_F(kv_features, a_change_of_one_key_is_atomic_beside_threads) {
  auto s = open();
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      for (unsigned i = 0; i < 300; ++i) {
        value_of(s.add("sum", 2, durability::ordered));
        value_of(s.modify(
            "text", [](std::optional<std::string>& v) { v = v.value_or("") + "t"; },
            durability::ordered));
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(value_of(s.add("sum", 0)), 1800);
  EXPECT_EQ(value_of(s.get("text"))->size(), 900u);
}

TEST_F(kv_features, counters_and_conditions) {
  auto s = open();
  EXPECT_EQ(value_of(s.add("n", -5)), -5);
  EXPECT_EQ(counter_of(*value_of(s.get("n"))), -5);
  EXPECT_EQ(s.add("n", std::numeric_limits<std::int64_t>::min()).error().code,
            errc::invalid_argument);
  EXPECT_EQ(value_of(s.add("n", 0)), -5);
  value_of(s.put("text", "no counter"));
  EXPECT_EQ(s.add("text", 1).error().code, errc::invalid_argument);
  EXPECT_EQ(s.add("", 1).error().code, errc::invalid_argument);
  EXPECT_FALSE(value_of(s.put_if("text", std::nullopt, "x")));
  EXPECT_FALSE(value_of(s.put_if("text", "other", "x")));
  EXPECT_TRUE(value_of(s.put_if("text", "no counter", "x")));
  EXPECT_TRUE(value_of(s.put_if("new", std::nullopt, "y")));
  EXPECT_EQ(value_of(s.get("text")), "x");
  value_of(s.modify("new", [](std::optional<std::string>& v) { v.reset(); }));
  EXPECT_EQ(value_of(s.get("new")), std::nullopt);
  const auto statistics = value_of(s.statistics());
  EXPECT_EQ(statistics.items, 2u);
  EXPECT_EQ(statistics.key_bytes, 5u);
  EXPECT_EQ(statistics.value_bytes, 9u);
}

}  // namespace
}  // namespace stele::testing
