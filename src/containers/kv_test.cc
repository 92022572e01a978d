// The key-value store compared with std::map: keys with shared prefixes of all kinds, values of
// every kind of size, batches, ranges, cursors, full pools, threads, reopening, every mechanism.
#include <base/rng.h>
#include <containers/test_bed.h>
#include <stele/hash_map.h>
#include <stele/kv.h>
#include <tx/mechanism/catalog.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <thread>

namespace stele::testing {
namespace {

using model = std::map<std::string, std::string>;

template <class R>
auto value_of(R outcome) {
  if (!outcome) throw std::runtime_error(outcome.error().message);
  if constexpr (!std::is_void_v<typename R::value_type>) return std::move(*outcome);
}

class kv_in_pool : public ::testing::Test {
 protected:
  kv open(pool_options options = {}, const std::string& name = "store") {
    if (options.create_size == 0) options.create_size = std::size_t{64} << 20;
    return value_of(kv::open(directory_.file(name), options));
  }
  scratch_directory directory_;
};

model content_of(const kv& s) {
  model content;
  auto c = s.walk();
  while (value_of(c.next())) EXPECT_TRUE(content.emplace(c.key(), c.value()).second);
  return content;
}

void expect_equal(const kv& s, const model& m) {
  const auto status = s.check();
  ASSERT_TRUE(status) << status.error().message;
  ASSERT_EQ(value_of(s.size()), m.size());
  ASSERT_EQ(content_of(s), m);
}

// The values of keys by get_many of a store or view. Expects one call for each key, in order.
template <class Store>
std::vector<std::optional<std::string>> get_all(const Store& s,
                                                const std::vector<std::string>& keys) {
  const std::vector<std::string_view> views(keys.begin(), keys.end());
  std::vector<std::optional<std::string>> values;
  const kv::each_value each = [&](std::size_t i, std::optional<std::string_view> value) {
    if (i == 0) values.clear();  // begins again after a conflict
    EXPECT_EQ(i, values.size());
    values.emplace_back(value);
  };
  if constexpr (std::is_same_v<Store, kv>)
    value_of(s.get_many(views, each));
  else
    s.get_many(views, each);
  EXPECT_EQ(values.size(), keys.size());
  return values;
}

std::vector<kv_pair> pairs_of(const std::vector<kv_item>& items) {
  std::vector<kv_pair> pairs;
  for (const kv_item& item : items) pairs.push_back({item.key, item.value});
  return pairs;
}

// Keys that are similar in one way.
struct manner {
  const char* name;
  std::string (*key)(base::rng& random);
};

std::string binary(std::uint64_t n) {
  return {reinterpret_cast<const char*>(&n), sizeof n};
}
std::string scattered_words(base::rng& r) {
  return binary(base::mix(r.below(2000)));
}
std::string counted_words(base::rng& r) {
  return binary(__builtin_bswap64(r.below(700)));
}
std::string few_bytes(base::rng& r) {
  std::string key;
  for (std::uint64_t n = 1 + r.below(9); n != 0; --n) key += "\0\x01\xFFz"[r.below(4)];
  return key;
}
std::string long_prefixes(base::rng& r) {
  std::string key = "https://www.example.com/shared/by/all/";
  for (std::uint64_t n = r.below(6); n != 0; --n)
    key += r.below(3) == 0 ? "a-longer-part-of-the-way/" : r.below(2) == 0 ? "x" : "y";
  return key;
}
std::string prefixes_of_each_other(base::rng& r) {
  return std::string(1 + r.below(300), 'k');
}
std::string long_keys(base::rng& r) {
  return std::string(kv::max_key_bytes - 1 - r.below(3), 'l') + static_cast<char>('a' + r.below(5));
}

constexpr manner manners[] = {{"scattered_words", scattered_words},
                              {"counted_words", counted_words},
                              {"few_bytes", few_bytes},
                              {"long_prefixes", long_prefixes},
                              {"prefixes_of_each_other", prefixes_of_each_other},
                              {"long_keys", long_keys}};

std::string random_value(base::rng& r) {
  const std::uint64_t choice = r.below(16);
  const std::size_t size = choice == 0 ? 0 : choice == 1 ? r.below(3000) : r.below(40);
  return std::string(size, static_cast<char>('a' + r.below(26)));
}

class kv_with_keys : public kv_in_pool, public ::testing::WithParamInterface<manner> {
 protected:
  // One change of store and model. Phases favour puts or erases, so that the store grows and
  // shrinks.
  void change(kv& s, model& m, base::rng& r, bool growing) {
    const std::string key = GetParam().key(r);
    if (r.below(8) < (growing ? 6 : 2)) {
      const std::string value = random_value(r);
      ASSERT_TRUE(s.put(key, value, r.below(2) == 0 ? durability::durable : durability::ordered));
      m[key] = value;
    } else {
      ASSERT_EQ(value_of(s.erase(key)), m.erase(key) == 1);
    }
  }
  void look(const kv& s, const model& m, base::rng& r) {
    const std::string from = GetParam().key(r), to = r.below(4) == 0 ? "" : GetParam().key(r);
    const auto found = m.find(from);
    ASSERT_EQ(value_of(s.contains(from)), found != m.end());
    ASSERT_EQ(value_of(s.get(from)),
              found == m.end() ? std::nullopt : std::optional(found->second));
    std::vector<kv_item> expected;
    for (auto it = m.lower_bound(from);
         it != m.end() && (to.empty() || it->first < to) && expected.size() < 20; ++it)
      expected.push_back({it->first, it->second});
    ASSERT_EQ(value_of(s.range(from, to, 20)), expected);
    // No key, a few, or more than are looked up at a time; some are not there, some come twice.
    std::vector<std::string> keys(r.below(2) * r.below(GetParam().key == long_keys ? 9 : 90));
    std::vector<std::optional<std::string>> values;
    for (std::string& key : keys) {
      key = GetParam().key(r);
      const auto there = m.find(key);
      values.push_back(there == m.end() ? std::nullopt : std::optional(there->second));
    }
    ASSERT_EQ(get_all(s, keys), values);
  }
  // Puts a random number of items in one transaction; later values of a key win.
  void put_many(kv& s, model& m, base::rng& r) {
    std::vector<kv_item> items(r.below(2) * r.below(GetParam().key == long_keys ? 5 : 90));
    for (kv_item& item : items) {
      item = {GetParam().key(r), random_value(r)};
      m[item.key] = item.value;
    }
    const auto before = s.counters().commits;
    ASSERT_TRUE(s.put_many(pairs_of(items)));
    ASSERT_LE(s.counters().commits, before + 1);
  }
};
INSTANTIATE_TEST_SUITE_P(keys, kv_with_keys, ::testing::ValuesIn(manners),
                         [](const auto& one) { return one.param.name; });

TEST_P(kv_with_keys, agrees_with_an_ordered_map) {
  const std::size_t operations = GetParam().key == long_keys ? 300 : 5000;
  auto s = std::optional(open());
  model m;
  base::rng random(7);
  for (std::size_t i = 0; i < operations; ++i) {
    change(*s, m, random, i * 4 / operations % 2 == 0);
    if (i % 16 == 0) look(*s, m, random);
    if (i % (operations / 8) == 0) expect_equal(*s, m);
    if (i == operations / 4) s.reset(), s.emplace(open());
    if (HasFailure()) return;
  }
  expect_equal(*s, m);
}

TEST_P(kv_with_keys, many_at_once_agree_with_an_ordered_map) {
  auto s = std::optional(open());
  model m;
  base::rng random(11);
  for (int i = 0; i < 60; ++i) {
    put_many(*s, m, random);
    for (int n = 0; n < 10; ++n) change(*s, m, random, i % 3 == 0);
    look(*s, m, random);
    if (i % 20 == 0) expect_equal(*s, m);
    if (i == 30) s.reset(), s.emplace(open());
    if (HasFailure()) return;
  }
  expect_equal(*s, m);
}

TEST_P(kv_with_keys, erasing_all_gives_every_record_and_node_back) {
  auto s = open();
  base::rng random(8);
  model m;
  for (int i = 0; i < 300; ++i) change(s, m, random, true);
  for (const auto& [key, value] : m) ASSERT_TRUE(value_of(s.erase(key)));
  expect_equal(s, {});
  std::size_t blocks = 0, bucket_blocks = 0;
  value_of(s.read([&](const kv::view&) { s.visit_blocks([&](const void*) { ++blocks; }); }));
  for (std::size_t buckets = 8; buckets < 64 * 8; buckets *= 2) ++bucket_blocks;
  EXPECT_LE(blocks, bucket_blocks);  // buckets stay allocated, one block for each doubling
}

TEST_P(kv_with_keys, reaches_each_block_once_and_loses_none) {
  auto s = open();
  const std::size_t empty = s.space().used_bytes;
  base::rng random(9);
  model m;
  for (int i = 0; i < 400; ++i) change(s, m, random, i < 300);
  std::set<const void*> reached;
  value_of(s.read([&](const kv::view&) {
    s.visit_blocks([&](const void* b) { EXPECT_TRUE(reached.insert(b).second); });
  }));
  EXPECT_GE(reached.size(), m.size());
  EXPECT_GT(s.space().used_bytes, empty);
}

TEST_F(kv_in_pool, values_from_nothing_to_more_than_a_chunk) {
  auto s = std::optional(open({.create_size = std::size_t{128} << 20}));
  model m;
  const std::size_t sizes[] = {0,   1,   7,    8,    9,     100,    111,
                               112, 113, 1023, 1025, 16384, 70'000, 3'000'001};
  for (const std::size_t before : sizes)
    for (const std::size_t after : {std::size_t{0}, std::size_t{100}, before / 2 + 1, before,
                                    before + 1, std::size_t{200'000}}) {
      const std::string key = std::to_string(before);
      for (const std::size_t size : {before, after}) {
        m[key] = std::string(size, static_cast<char>('a' + size % 26));
        ASSERT_TRUE(s->put(key, m[key]));
        ASSERT_EQ(value_of(s->get(key)), m[key]);
      }
    }
  s.reset();
  s.emplace(open());
  expect_equal(*s, m);
}

TEST_F(kv_in_pool, an_overwrite_of_the_same_length_moves_nothing) {
  auto s = open();
  ASSERT_TRUE(s.put("key", std::string(100, 'a')));
  const auto blocks = [&] {
    std::set<const void*> all;
    value_of(
        s.read([&](const kv::view&) { s.visit_blocks([&](const void* b) { all.insert(b); }); }));
    return all;
  };
  const auto before = blocks();
  for (const std::size_t size : {100, 101, 104, 99}) {
    ASSERT_TRUE(s.put("key", std::string(size, 'b')));
    EXPECT_EQ(value_of(s.get("key")), std::string(size, 'b'));
    EXPECT_EQ(blocks(), before) << size;
  }
}

TEST_F(kv_in_pool, absurd_sizes_are_refused) {
  auto s = open();
  EXPECT_EQ(s.put("", "x").error().code, errc::invalid_argument);
  EXPECT_EQ(s.put(std::string(kv::max_key_bytes + 1, 'k'), "x").error().code,
            errc::invalid_argument);
  // Refused before a byte of it is read.
  const std::string_view endless("x", kv::max_value_bytes + 1);
  EXPECT_EQ(s.put("key", endless).error().code, errc::invalid_argument);
  kv::batch b;
  b.put("good", "1");
  b.put("", "2");
  EXPECT_EQ(s.write(b).error().code, errc::invalid_argument);
  EXPECT_EQ(s.update([](kv::changes& c) { c.put("good", "1"), c.put("", "2"); }).error().code,
            errc::invalid_argument);
  EXPECT_FALSE(value_of(s.get("")));
  EXPECT_FALSE(value_of(s.erase("")));
  for (const kv_pair bad : {kv_pair{"", "2"}, kv_pair{"key", endless}}) {
    const kv_pair pairs[] = {{"good", "1"}, bad};
    EXPECT_EQ(s.put_many(pairs).error().code, errc::invalid_argument);
    EXPECT_EQ(s.update([&](kv::changes& c) { c.put_many(pairs); }).error().code,
              errc::invalid_argument);
  }
  expect_equal(s, {});
  ASSERT_TRUE(s.put("good", "1"));
  const std::string_view keys[] = {"", endless, "good"};
  std::vector<bool> there;
  ASSERT_TRUE(s.get_many(keys, [&](std::size_t, std::optional<std::string_view> value) {
    there.push_back(value.has_value());
  }));
  EXPECT_EQ(there, (std::vector<bool>{false, false, true}));
}

TEST_F(kv_in_pool, a_get_of_a_key_that_is_not_there_leaves_the_string_alone) {
  auto s = open();
  std::string into = "as it was";
  EXPECT_FALSE(value_of(s.get("key", into)));
  EXPECT_EQ(into, "as it was");
  ASSERT_TRUE(s.put("key", ""));
  EXPECT_TRUE(value_of(s.get("key", into)));
  EXPECT_EQ(into, "");
}

TEST_F(kv_in_pool, a_batch_is_all_or_nothing_and_its_later_changes_win) {
  auto s = open();
  kv::batch b;
  b.put("a", "1"), b.put("b", "2"), b.put("a", "3"), b.erase("b"), b.erase("not there"),
      b.put("c", "");
  EXPECT_EQ(b.size(), 6u);
  ASSERT_TRUE(s.write(b));
  expect_equal(s, {{"a", "3"}, {"c", ""}});
  b.clear();
  EXPECT_TRUE(b.empty());
  b.put("a", "lost"), b.erase("c"), b.put("large", std::string(std::size_t{60} << 20, 'x'));
  EXPECT_EQ(s.write(b).error().code, errc::full);
  expect_equal(s, {{"a", "3"}, {"c", ""}});
}

TEST_F(kv_in_pool, put_many_is_all_or_nothing) {
  auto s = open();
  const kv_pair pairs[] = {{"a", "1"}, {"b", "2"}, {"a", "3"}};
  ASSERT_TRUE(s.put_many(pairs));
  expect_equal(s, {{"a", "3"}, {"b", "2"}});
  const std::string large(std::size_t{60} << 20, 'x');
  const kv_pair too_large[] = {{"a", "lost"}, {"c", "lost"}, {"large", large}};
  EXPECT_EQ(s.put_many(too_large).error().code, errc::full);
  EXPECT_EQ(s.update([&](kv::changes& c) { c.put_many(too_large); }).error().code, errc::full);
  expect_equal(s, {{"a", "3"}, {"b", "2"}});
  ASSERT_TRUE(s.put_many({}));
  ASSERT_TRUE(s.put_many(pairs, durability::ordered));
  ASSERT_TRUE(s.sync());
  expect_equal(s, {{"a", "3"}, {"b", "2"}});
}

TEST_F(kv_in_pool, an_update_gets_many_that_it_has_put) {
  auto s = open();
  const kv_pair before[] = {{"a", "1"}, {"b", "2"}};
  const kv_pair after[] = {{"b", "3"}, {"c", "4"}};
  const std::vector<std::string> keys = {"a", "b", "c", "d"};
  using values = std::vector<std::optional<std::string>>;
  ASSERT_TRUE(s.put_many(before));
  const auto undone = s.update([&](kv::changes& c) {
    c.put_many(after);
    EXPECT_TRUE(c.erase("a"));
    EXPECT_EQ(get_all(c, keys), (values{std::nullopt, "3", "4", std::nullopt}));
    EXPECT_TRUE(s.put_many(before));  // joins the transaction
    EXPECT_EQ(get_all(s, keys), (values{"1", "2", "4", std::nullopt}));
    cancel("on purpose");
  });
  EXPECT_EQ(undone.error().code, errc::cancelled);
  EXPECT_EQ(get_all(s, keys), (values{"1", "2", std::nullopt, std::nullopt}));
  std::size_t calls = 0;
  const std::string_view wanted[] = {"a", "b"};
  const auto ended = s.get_many(wanted, [&](std::size_t, std::optional<std::string_view>) {
    ++calls;
    cancel("on purpose");
  });
  EXPECT_EQ(ended.error().code, errc::cancelled);
  EXPECT_EQ(calls, 1u);
}

TEST_F(kv_in_pool, an_update_reads_what_it_has_written_and_nests) {
  auto s = open();
  const auto sum = s.update([&](kv::changes& c) -> result<int> {
    c.put("n", "1");
    EXPECT_EQ(c.get("n"), "1");
    EXPECT_TRUE(s.put("m", "2"));  // joins the transaction
    EXPECT_EQ(c.get("m"), "2");
    EXPECT_TRUE(c.erase("n"));
    EXPECT_FALSE(c.contains("n"));
    c.put("z", "3");
    EXPECT_EQ(c.first()->key, "m");
    EXPECT_EQ(c.first("n")->key, "z");
    EXPECT_EQ(c.last()->value, "3");
    EXPECT_EQ(c.size(), 2u);
    return 42;
  });
  EXPECT_EQ(value_of(sum), 42);
  const auto undone = s.update([&](kv::changes& c) -> result<> {
    c.put("gone", "x");
    EXPECT_TRUE(value_of(s.erase("m")));
    return std::unexpected(error{errc::cancelled, "on purpose"});
  });
  EXPECT_EQ(undone.error().code, errc::cancelled);
  expect_equal(s, {{"m", "2"}, {"z", "3"}});
}

TEST_F(kv_in_pool, an_empty_store_has_no_first_and_no_last) {
  auto s = open();
  value_of(s.read([](const kv::view& v) {
    EXPECT_FALSE(v.first());
    EXPECT_FALSE(v.last());
    EXPECT_EQ(v.size(), 0u);
  }));
  auto c = s.walk();
  EXPECT_FALSE(value_of(c.next()));
  EXPECT_FALSE(value_of(c.next()));
  EXPECT_EQ(value_of(s.range("", "", 10)).size(), 0u);
}

TEST_F(kv_in_pool, other_pools_are_refused) {
  struct other {
    field<std::uint64_t> n;
  };
  const std::string path = directory_.file("other");
  {
    ASSERT_TRUE(pool<other>::open(path, {.create_size = std::size_t{1} << 20, .layout = "other"}));
  }
  EXPECT_EQ(kv::open(path).error().code, errc::layout);
  const std::string unnamed = directory_.file("unnamed");
  {
    ASSERT_TRUE(pool<other>::open(unnamed, {.create_size = std::size_t{1} << 20}));
  }
  EXPECT_EQ(kv::open(unnamed).error().code, errc::layout);
  EXPECT_EQ(kv::open(path, {.layout = "other"}).error().code, errc::invalid_argument);
  EXPECT_EQ(kv::open(directory_.file("missing")).error().code, errc::not_found);
}

// The store's version is the first word of the root.
TEST_F(kv_in_pool, a_store_of_a_later_version_is_refused) {
  struct later {
    field<std::uint64_t> version;
    std::byte rest[4096];
  };
  auto s = std::optional(open());
  const std::size_t root = kv::root_size();
  ASSERT_LE(root, sizeof(later));
  s.reset();
  auto handle = value_of(detail::pool_handle::open(directory_.file("store"), {}, root));
  value_of(detail::update_pool(handle.core(), durability::durable,
                               [&] { static_cast<later*>(handle.root())->version = 99; }));
  {
    const auto gone = std::move(handle);
  }
  EXPECT_EQ(kv::open(directory_.file("store")).error().code, errc::version);
}

TEST_F(kv_in_pool, a_full_pool_refuses_puts_and_still_erases) {
  auto s = open({.create_size = std::size_t{1} << 20});
  model m;
  result<> outcome;
  base::rng random(3);
  for (std::uint64_t i = 0; outcome; ++i) {
    ASSERT_LT(i, 100'000u);
    const std::string key = binary(base::mix(i)), value(i % 90, 'v');
    outcome = s.put(key, value);
    if (outcome) m[key] = value;
  }
  EXPECT_EQ(outcome.error().code, errc::full);
  EXPECT_GT(m.size(), 1000u);
  expect_equal(s, m);
  EXPECT_EQ(s.put("key", std::string(std::size_t{2} << 20, 'x')).error().code, errc::full);
  expect_equal(s, m);
  for (const auto& [key, value] : m) ASSERT_TRUE(value_of(s.erase(key)));
  expect_equal(s, {});
  EXPECT_TRUE(s.put("again", "there is room"));
}

TEST_F(kv_in_pool, every_mechanism_and_policy_keeps_the_content) {
  for (const auto& mechanism : detail::mechanisms())
    for (const auto policy :
         {concurrency::stm, concurrency::single_writer, concurrency::external}) {
      SCOPED_TRACE(mechanism.name);
      const pool_options options{.create_size = std::size_t{4} << 20,
                                 .policy = policy,
                                 .engine = {.mechanism = mechanism.name}};
      const std::string name = mechanism.name + std::to_string(static_cast<int>(policy));
      auto s = std::optional(open(options, name));
      base::rng random(5);
      model m;
      for (int i = 0; i < 200; ++i) {
        const std::string key = few_bytes(random), value = random_value(random);
        if (random.below(3) == 0) {
          ASSERT_EQ(value_of(s->erase(key)), m.erase(key) == 1);
        } else {
          ASSERT_TRUE(s->put(key, value));
          m[key] = value;
        }
      }
      const auto undone = s->update([&](kv::changes& c) {
        for (int i = 0; i < 50; ++i) c.put(few_bytes(random), "lost"), c.erase(few_bytes(random));
        cancel("on purpose");
      });
      ASSERT_EQ(undone.error().code, errc::cancelled);
      expect_equal(*s, m);
      s.reset();
      s.emplace(open(options, name));
      expect_equal(*s, m);
      s.reset();
      std::filesystem::remove(directory_.file(name));
    }
}

// Each thread owns the keys of one residue, so it knows what it must find; all threads share the
// store.
TEST_F(kv_in_pool, threads_change_it_at_once) {
  constexpr std::uint64_t threads = 3;
  auto s = open();
  std::array<model, threads> held;
  std::vector<std::jthread> running;
  for (std::uint64_t t = 0; t < threads; ++t)
    running.emplace_back([&, t] {
      base::rng random(t);
      for (int i = 0; i < 4000; ++i) {
        const std::string key = binary(base::mix(random.below(600) * threads + t));
        if (random.below(3) == 0) {
          ASSERT_EQ(value_of(s.erase(key)), held[t].erase(key) == 1);
        } else {
          const std::string value = random_value(random);
          ASSERT_TRUE(s.put(key, value));
          held[t][key] = value;
        }
        const auto found = held[t].find(key);
        ASSERT_EQ(value_of(s.get(key)),
                  found == held[t].end() ? std::nullopt : std::optional(found->second));
      }
    });
  running.clear();
  model all;
  for (const model& m : held) all.insert(m.begin(), m.end());
  expect_equal(s, all);
}

// A reader reads pairs that an update always changes together.
TEST_F(kv_in_pool, a_read_is_of_one_state) {
  auto s = open();
  const auto pair_of = [](kv::changes& c, std::uint64_t n) {
    c.put("first", std::to_string(n));
    c.put("second", std::to_string(n));
    c.erase("item" + std::to_string(n));
    c.put("item" + std::to_string(n + 1), "x");
  };
  value_of(s.update([&](kv::changes& c) { pair_of(c, 0); }));
  std::jthread writer([&](const std::stop_token& stop) {
    for (std::uint64_t n = 1; !stop.stop_requested(); ++n)
      value_of(s.update([&](kv::changes& c) { pair_of(c, n); }));
  });
  for (int i = 0; i < 2000; ++i)
    value_of(s.read([](const kv::view& v) {
      std::size_t items = 0;
      v.for_each("item", "itn", [&](std::string_view, std::string_view) { return ++items != 0; });
      EXPECT_EQ(v.get("first"), v.get("second"));
      EXPECT_EQ(items, 1u);
    }));
}

// A writer gives all keys one value with put_many, or erases them; get_many of the reader finds
// them alike.
TEST_F(kv_in_pool, many_gets_are_of_one_state) {
  constexpr std::uint64_t rounds = 300;
  auto s = open();
  std::vector<std::string> keys;
  for (std::uint64_t i = 0; i < 50; ++i) keys.push_back(binary(base::mix(i)));
  const auto change = [&](std::uint64_t round) {
    const std::string value = std::to_string(round);
    std::vector<kv_pair> pairs;
    kv::batch erased;
    for (const std::string& key : keys) pairs.push_back({key, value}), erased.erase(key);
    value_of(round % 3 == 2 ? s.write(erased) : s.put_many(pairs));
  };
  std::atomic<std::uint64_t> reads = 0;
  std::jthread writer([&] {  // at most two rounds ahead, so that it does not starve the reader
    for (std::uint64_t round = 0; round < rounds; ++round) {
      while (reads + 2 < round) std::this_thread::yield();
      change(round);
    }
  });
  for (; reads < rounds; ++reads)
    for (const auto values = get_all(s, keys); const auto& value : values)
      EXPECT_EQ(value, values.front());
}

// An item that exists the whole time is visited exactly once, in order, while its neighbours are
// inserted and erased.
TEST_F(kv_in_pool, a_cursor_goes_on_through_changes) {
  auto s = open();
  const auto name = [](int n, char kind) { return std::to_string(100'000 + n) + kind; };
  for (int i = 0; i < 2000; ++i) ASSERT_TRUE(s.put(name(i, 's'), "stays"));
  std::jthread writer([&](const std::stop_token& stop) {  // also ends when the test has failed
    base::rng random(4);
    while (!stop.stop_requested()) {
      const std::string key = name(static_cast<int>(random.below(2000)), 't');
      random.below(2) == 0 ? void(value_of(s.erase(key))) : value_of(s.put(key, "comes and goes"));
    }
  });
  for (int round = 0; round < 5; ++round) {
    int met = 0;
    std::string before;
    auto c = s.walk(name(10, 's'), name(1990, 's'));
    while (value_of(c.next())) {
      ASSERT_LT(before, c.key());
      before = c.key();
      if (c.value() != "stays") continue;
      ASSERT_EQ(c.key(), name(10 + met++, 's'));
    }
    EXPECT_EQ(met, 1980);
  }
}

TEST_F(kv_in_pool, a_cursor_survives_the_erasure_of_what_it_stands_on) {
  auto s = open();
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(s.put(std::to_string(1000 + i), "x"));
  auto c = s.walk();
  int met = 0;
  while (value_of(c.next())) {
    ++met;
    ASSERT_TRUE(value_of(s.erase(c.key())));
  }
  EXPECT_EQ(met, 1000);
  expect_equal(s, {});
}

// A put touches only lines of its own key, so puts of different keys, one in each transaction,
// rarely abort one another.
TEST_F(kv_in_pool, puts_of_different_keys_hardly_conflict) {
  auto s = open();
  kv::batch some;
  for (std::uint64_t i = 0; i < 20'000; ++i) some.put(binary(base::mix(i)), "value");
  ASSERT_TRUE(s.write(some));
  const auto before = s.counters();
  std::vector<std::jthread> running;
  for (std::uint64_t t = 0; t < 2; ++t)
    running.emplace_back([&, t] {
      for (std::uint64_t i = 0; i < 10'000; ++i)
        value_of(s.put(binary(base::mix(2 * i + t)), "other"));
    });
  running.clear();
  const auto after = s.counters();
  EXPECT_EQ(after.commits - before.commits, 20'000u);
  EXPECT_LT(after.aborts - before.aborts, 1000u);
}

}  // namespace
}  // namespace stele::testing
