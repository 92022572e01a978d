// Containers in a pool: roll-back, full pools, threads, composition, no leaked block.
#include <stele/array.h>
#include <stele/bptree.h>
#include <stele/hash_map.h>
#include <stele/map.h>
#include <stele/string.h>
#include <stele/word_map.h>

#include <containers/map_model.h>

#include <thread>

namespace stele::testing {
namespace {

template <class Map>
class map_in_pool : public ::testing::Test {};
using maps = ::testing::Types<
    hash_map<std::uint64_t, blob<64>>, map<std::uint64_t, blob<64>>,
    bptree<std::uint64_t, blob<64>>, basic_bptree<std::uint64_t, std::uint64_t, pool_memory, 8>,
    hash_map<string, string>, map<string, string>,
    coalescing_hash_map<coalescing_string, coalescing_string>,
    coalescing_map<std::uint64_t, blob<72>>, coalescing_bptree<std::uint64_t, coalescing_string>>;
TYPED_TEST_SUITE(map_in_pool, maps);

template <class Map>
auto key_of(std::uint64_t n) {
  return sample<typename Map::key_type>::of(n);
}
template <class Map>
auto value_of(std::uint64_t n) {
  return sample<typename Map::mapped_type>::of(n);
}

template <class Map>
void change_at_random(Map& map, base::rng& random, int count, std::uint64_t keys) {
  for (int i = 0; i < count; ++i) {
    const std::uint64_t key = random.below(keys);
    if (random.below(2) == 0) {
      map.erase(key_of<Map>(key));
    } else {
      map.insert_or_assign(key_of<Map>(key), value_of<Map>(random.below(100)));
    }
  }
}

TYPED_TEST(map_in_pool, rolled_back_changes_leave_no_trace) {
  bed<TypeParam, pool_memory> b;
  map_property_test<TypeParam> play({.seed = 21, .keys = 200, .operations = 1000, .batch = 20});
  play.run(b);
  const std::size_t used = b.pool().space().used_bytes;
  base::rng random(22);
  for (int i = 0; i < 50; ++i) {
    const result<> undone = b.pool().update([&](TypeParam& m) {
      change_at_random(m, random, 100, 400);
      if (i % 2 == 0) m.clear();
      cancel("on purpose");
    });
    ASSERT_EQ(undone.error().code, errc::cancelled);
    b.read([&](const TypeParam& m) { play.compare(m); });
  }
  EXPECT_EQ(b.pool().space().used_bytes, used);
}

TYPED_TEST(map_in_pool, content_is_there_after_reopening) {
  bed<TypeParam, pool_memory> b;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    b.update([](TypeParam& m) { m.clear(); });
    map_property_test<TypeParam> play({.seed = seed, .keys = 300, .operations = 1000, .batch = 10});
    play.run(b);
    b.reopen();
    b.read([&](const TypeParam& m) { play.compare(m); });
  }
}

TYPED_TEST(map_in_pool, clear_and_erase_give_every_byte_back) {
  bed<TypeParam, pool_memory> b;
  const std::size_t before = b.pool().space().used_bytes;
  base::rng random(5);
  b.update([&](TypeParam& m) { change_at_random(m, random, 2000, 500); });
  b.update([&](TypeParam& m) { change_at_random(m, random, 2000, 500); });
  EXPECT_GT(b.pool().space().used_bytes, before);
  b.update([](TypeParam& m) { m.clear(); });
  EXPECT_EQ(b.pool().space().used_bytes, before);
}

TYPED_TEST(map_in_pool, a_full_pool_refuses_inserts_and_still_erases) {
  bed<TypeParam, pool_memory> b(std::size_t{1} << 20);
  std::uint64_t held = 0;
  result<> outcome;
  while (outcome) {
    outcome = b.pool().update(
        [&](TypeParam& m) { m.insert(key_of<TypeParam>(held), value_of<TypeParam>(held % 200)); });
    held += outcome.has_value();
    ASSERT_LT(held, 1'000'000u);
  }
  EXPECT_EQ(outcome.error().code, errc::full);
  b.read([&](const TypeParam& m) {
    EXPECT_TRUE(m.check());
    EXPECT_EQ(m.size(), held);
  });
  for (std::uint64_t k = 0; k < held; ++k)
    b.update([&](TypeParam& m) { EXPECT_EQ(m.erase(key_of<TypeParam>(k)), 1u); });
  b.update([](TypeParam& m) { EXPECT_TRUE(m.empty() && m.check()); });
}

// Each thread owns the keys of one residue, so it knows what it must find; all threads share the
// structure.
TYPED_TEST(map_in_pool, threads_change_it_at_once) {
  constexpr std::uint64_t threads = 3;
  bed<TypeParam, pool_memory> b;
  std::vector<std::thread> running;
  std::array<std::set<std::uint64_t>, threads> held;
  for (std::uint64_t t = 0; t < threads; ++t) {
    running.emplace_back([&, t] {
      base::rng random(t);
      for (int i = 0; i < 1500; ++i) {
        const std::uint64_t key = random.below(100) * threads + t;
        const auto done = b.pool().update([&](TypeParam& m) -> result<bool> {
          const auto text = key_of<TypeParam>(key);
          auto entry = m.find_entry(text);
          const bool existed = entry.exists();
          if (existed) {
            entry.erase();
          } else {
            entry.insert(value_of<TypeParam>(key % 200));
          }
          return existed;
        });
        ASSERT_TRUE(done) << done.error().message;
        ASSERT_EQ(*done, held[t].contains(key));
        *done ? void(held[t].erase(key)) : void(held[t].insert(key));
      }
    });
  }
  for (auto& r : running) r.join();
  b.read([&](const TypeParam& m) {
    const result<> status = m.check();
    EXPECT_TRUE(status) << status.error().message;
    EXPECT_EQ(m.size(), held[0].size() + held[1].size() + held[2].size());
    for (const auto& set : held) {
      for (const std::uint64_t key : set) EXPECT_TRUE(m.contains(key_of<TypeParam>(key)));
    }
  });
}

template <class Map>
class map_with_find_many : public ::testing::Test {};
using maps_with_find_many =
    ::testing::Types<hash_map<std::uint64_t, blob<64>>, hash_map<string, string>,
                     coalescing_hash_map<coalescing_string, coalescing_string>,
                     word_map<std::uint64_t, std::uint64_t>,
                     basic_bptree<std::uint64_t, std::uint64_t, pool_memory, 8>,
                     bptree<std::uint64_t, std::uint64_t>, bptree<std::uint64_t, blob<64>>>;
TYPED_TEST_SUITE(map_with_find_many, maps_with_find_many);

constexpr std::uint64_t round_keys = 50;

// Gives all keys one value, or erases all of them.
template <class Map>
void store_round(Map& m, std::uint64_t round) {
  for (std::uint64_t k = 0; k < round_keys; ++k) {
    if (round % 3 == 2)
      m.erase(key_of<Map>(k));
    else
      m.insert_or_assign(key_of<Map>(k), value_of<Map>(round % 200));
  }
}

TYPED_TEST(map_with_find_many, finds_one_state_beside_a_writer) {
  bed<TypeParam, pool_memory> b;
  b.update([](TypeParam& m) { store_round(m, 0); });
  std::vector<std::uint64_t> numbers(round_keys);
  for (std::uint64_t k = 0; k < round_keys; ++k) numbers[k] = k * 7 % round_keys;
  constexpr std::uint64_t rounds = 200;
  std::atomic<std::uint64_t> reads = 0;
  std::jthread writer([&] {  // at most two rounds ahead, so that it does not starve the reader
    for (std::uint64_t round = 1; round < rounds; ++round) {
      while (reads + 2 < round) std::this_thread::yield();
      b.update([&](TypeParam& m) { store_round(m, round); });
    }
  });
  for (; reads < rounds; ++reads) {
    const auto values =
        b.read([&](const TypeParam& m) { return find_numbers(m, std::span(numbers)); });
    for (const auto& value : values) EXPECT_EQ(value, values.front());
  }
}

TYPED_TEST(map_with_find_many, finds_what_its_transaction_has_stored) {
  bed<TypeParam, pool_memory> b;
  b.update([](TypeParam& m) { store_round(m, 0); });
  b.update([](TypeParam& m) {
    for (std::uint64_t k = 0; k < round_keys; k += 2)
      m.insert_or_assign(key_of<TypeParam>(k), value_of<TypeParam>(7));
    for (std::uint64_t k = 0; k < round_keys; k += 3) m.erase(key_of<TypeParam>(k));
    std::vector<std::uint64_t> numbers(round_keys);
    std::vector<std::optional<std::uint64_t>> expected(round_keys);
    for (std::uint64_t k = 0; k < round_keys; ++k) {
      numbers[k] = k;
      if (k % 3 != 0) expected[k] = k % 2 == 0 ? 7 : 0;
    }
    EXPECT_EQ(find_numbers(m, numbers), expected);
  });
}

// The exception leaves the call and rolls the transaction back.
TYPED_TEST(map_with_find_many, passes_on_what_the_callback_throws) {
  bed<TypeParam, pool_memory> b;
  b.update([](TypeParam& m) { store_round(m, 0); });
  std::size_t calls = 0;
  const result<> undone = b.pool().update([&](TypeParam& m) {
    store_round(m, 2);
    using key = decltype(key_of<TypeParam>(0));
    using view = std::conditional_t<std::is_same_v<key, std::string>, std::string_view, key>;
    const std::vector<key> keys = {key_of<TypeParam>(1), key_of<TypeParam>(2)};
    const std::vector<view> views(keys.begin(), keys.end());
    m.find_many(std::span(views), [&](std::size_t, const auto&) {
      ++calls;
      cancel("on purpose");
    });
  });
  EXPECT_EQ(undone.error().code, errc::cancelled);
  EXPECT_EQ(calls, 1u);
  b.read([](const TypeParam& m) { EXPECT_TRUE(m.contains(key_of<TypeParam>(1))); });
}

struct shelves {
  using pool_resident = void;
  hash_map<string, string> by_name;
  map<std::uint64_t, string> by_number;
  bptree<std::uint64_t, std::uint64_t> by_weight;
  array<string> history;
  string last;
};

// At any time, for every reader, an item is on exactly one shelf.
TEST(containers_in_a_pool, compose_in_one_transaction) {
  bed<shelves, pool_memory> b;
  b.update([](shelves& s) {
    s.history.resize(8);
    for (std::uint64_t i = 0; i < 64; ++i) s.by_number.insert(i, std::string(i, 'n'));
  });
  std::atomic<bool> stop = false;
  std::thread reader([&] {
    while (!stop) {
      b.read([](const shelves& s) {
        EXPECT_EQ(s.by_name.size() + s.by_number.size() + s.by_weight.size(), 64u);
      });
    }
  });
  base::rng random(1);
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t n = random.below(64);
    b.update([&](shelves& s) {
      const std::string name = std::to_string(n);
      if (s.by_number.erase(n) != 0) {
        s.by_name.insert(name, std::string(n, 'n'));
      } else if (s.by_name.erase(name) != 0) {
        s.by_weight.insert(n, n);
      } else {
        s.by_weight.erase(n);
        s.by_number.insert(n, std::string(n, 'n'));
      }
      s.history[n % 8] = name;
      s.last.append("x");
    });
  }
  stop = true;
  reader.join();
  b.read([](const shelves& s) {
    EXPECT_EQ(s.last.size(), 1000u);
    EXPECT_TRUE(s.by_name.check() && s.by_number.check() && s.by_weight.check());
  });
}

}  // namespace
}  // namespace stele::testing
