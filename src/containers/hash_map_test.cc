// hash_map compared with std::map by random operations, on ordinary memory and on pools; and its
// edge cases.
#include <stele/hash_map.h>
#include <stele/string.h>

#include <containers/map_model.h>

namespace stele::testing {

struct same_hash {
  std::uint32_t value;
  bool operator==(const same_hash&) const = default;
};

}  // namespace stele::testing

template <>
struct stele::hash<stele::testing::same_hash> {
  std::uint64_t operator()(const stele::testing::same_hash&) const noexcept { return 42; }
};

namespace stele::testing {
namespace {

template <class Memory>
class hash_map_on : public ::testing::Test {};
using memories = ::testing::Types<plain_memory, pool_memory, coalescing_memory>;
TYPED_TEST_SUITE(hash_map_on, memories);

template <class Memory>
using words = basic_hash_map<std::uint64_t, std::uint64_t, Memory>;

TYPED_TEST(hash_map_on, behaves_as_a_map_of_words) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    bed<words<TypeParam>, TypeParam> b;
    map_property_test<words<TypeParam>>(
        {.seed = seed, .keys = std::size_t{20} << seed, .operations = 4000, .batch = seed})
        .run(b);
  }
}

TYPED_TEST(hash_map_on, behaves_as_a_map_of_strings) {
  using map = basic_hash_map<basic_string<TypeParam>, basic_string<TypeParam>, TypeParam>;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    bed<map, TypeParam> b;
    map_property_test<map>({.seed = seed, .keys = 300, .operations = 3000, .batch = 3}).run(b);
  }
}

TYPED_TEST(hash_map_on, behaves_as_a_map_of_large_values) {
  using map = basic_hash_map<std::uint32_t, blob<1024>, TypeParam>;
  bed<map, TypeParam> b;
  map_property_test<map>({.seed = 9, .keys = 100, .operations = 2000, .batch = 5}).run(b);
}

TYPED_TEST(hash_map_on, zeroed_memory_is_an_empty_map) {
  bed<words<TypeParam>, TypeParam> b;
  b.read([](const words<TypeParam>& m) {
    EXPECT_TRUE(m.empty());
    EXPECT_EQ(m.size(), 0u);
    EXPECT_EQ(m.bucket_count(), 0u);
    EXPECT_FALSE(m.contains(0));
    EXPECT_TRUE(m.find(1) == m.end());
    EXPECT_TRUE(m.check());
  });
}

TYPED_TEST(hash_map_on, reserved_buckets_do_not_double) {
  bed<words<TypeParam>, TypeParam> b;
  b.update([](words<TypeParam>& m) { m.reserve(1000); });
  for (std::uint64_t k = 0; k < 1000; ++k) b.update([&](words<TypeParam>& m) { m.insert(k, k); });
  b.read([](const words<TypeParam>& m) { EXPECT_EQ(m.bucket_count(), 1024u); });
}

TYPED_TEST(hash_map_on, buckets_keep_up_with_items) {
  bed<words<TypeParam>, TypeParam> b;
  b.update([](words<TypeParam>& m) {
    for (std::uint64_t k = 0; k < 20'000; ++k) m.insert(k, ~k);
  });
  b.read([](const words<TypeParam>& m) {
    EXPECT_GE(m.bucket_count(), 4096u);
    EXPECT_LE(m.bucket_count(), 32'768u);
    EXPECT_EQ(m.size(), 20'000u);
    EXPECT_TRUE(m.check());
    for (std::uint64_t k = 0; k < 20'000; ++k) ASSERT_EQ(m.find(k)->second, ~k);
  });
}

TYPED_TEST(hash_map_on, lookups_find_items_of_buckets_not_yet_split_off) {
  bed<words<TypeParam>, TypeParam> b;
  b.update([](words<TypeParam>& m) {
    for (std::uint64_t k = 0; k < 16; ++k) m.insert(k, k);
    m.reserve(4096);
  });
  b.read([](const words<TypeParam>& m) {
    EXPECT_EQ(m.bucket_count(), 4096u);
    for (std::uint64_t k = 0; k < 16; ++k) EXPECT_TRUE(m.contains(k));
    EXPECT_TRUE(m.check());
    std::size_t seen = 0;
    for (auto it = m.find(7); it != m.end(); ++it) ++seen;
    EXPECT_GE(seen, 1u);
  });
}

TYPED_TEST(hash_map_on, references_survive_other_changes) {
  bed<words<TypeParam>, TypeParam> b;
  b.update([](words<TypeParam>& m) {
    auto& item = *m.insert(5, 50).first;
    for (std::uint64_t k = 100; k < 3000; ++k) m.insert(k, k);
    EXPECT_EQ(&item, &*m.find(5));
    item.second = 51;
    EXPECT_EQ(m.find(5)->second, 51u);
  });
}

// Also in chains with items of buckets that are not yet split off: no item is visited twice or
// missed.
TYPED_TEST(hash_map_on, erasing_by_iterator_meets_every_item_once) {
  for (std::uint64_t modulus = 1; modulus <= 5; ++modulus) {
    bed<words<TypeParam>, TypeParam> b;
    b.update([&](words<TypeParam>& m) {
      for (std::uint64_t k = 0; k < 200; ++k) m[k] = k + 1;
      m.reserve(4096);
      std::set<std::uint64_t> met;
      for (auto it = m.begin(); it != m.end();) {
        const std::uint64_t key = it->first;
        ASSERT_TRUE(met.insert(key).second);
        it = key % modulus == 0 ? m.erase(it) : std::next(it);
      }
      EXPECT_EQ(met.size(), 200u);
      const result<> status = m.check();
      EXPECT_TRUE(status) << status.error().message;
      for (std::uint64_t k = 0; k < 200; ++k) ASSERT_EQ(m.count(k), k % modulus == 0 ? 0u : 1u);
    });
  }
}

TYPED_TEST(hash_map_on, a_value_is_reached_by_its_key) {
  bed<words<TypeParam>, TypeParam> b;
  b.update([](words<TypeParam>& m) {
    m[3] = 30;
    m[3] += 1;
    EXPECT_EQ(m.at(3), 31u);
    EXPECT_EQ(std::as_const(m).at(3), 31u);
    EXPECT_THROW(m.at(4), failure);
    EXPECT_EQ(m[4], 0u);
    EXPECT_EQ(m.size(), 2u);
  });
}

// All keys in one chain: the packed length must stay right, and the map must not try to grow
// forever.
TYPED_TEST(hash_map_on, equal_hashes_make_one_chain_and_few_buckets) {
  using map = basic_hash_map<same_hash, std::uint64_t, TypeParam>;
  bed<map, TypeParam> b;
  b.update([](map& m) {
    for (std::uint32_t k = 0; k < 500; ++k) m.insert({k}, k);
    for (std::uint32_t k = 0; k < 500; k += 2) EXPECT_EQ(m.erase({k}), 1u);
  });
  b.read([](const map& m) {
    EXPECT_EQ(m.size(), 250u);
    EXPECT_LE(m.bucket_count(), 1024u);
    EXPECT_TRUE(m.check());
  });
}

TYPED_TEST(hash_map_on, containers_nest) {
  using inside = basic_hash_map<int, int, TypeParam>;
  using map = basic_hash_map<basic_string<TypeParam>, inside, TypeParam>;
  bed<map, TypeParam> b;
  b.update([](map& m) {
    m.try_emplace("a").first->second.insert(1, 10);
    m.try_emplace("b").first->second.insert(2, 20);
    m.try_emplace("a").first->second.insert(3, 30);
  });
  b.read([](const map& m) {
    EXPECT_EQ(m.size(), 2u);
    EXPECT_EQ(m.find("a")->second.size(), 2u);
    EXPECT_EQ(m.find("b")->second.find(2)->second, 20);
    EXPECT_EQ(blocks_of(m).size(),
              1u + 2u + 2u + 3u);  // buckets, outer nodes, inner buckets, inner nodes
  });
  b.update([](map& m) { m.erase("a"); });
  b.read([](const map& m) { EXPECT_EQ(blocks_of(m).size(), 1u + 1u + 1u + 1u); });
}

TYPED_TEST(hash_map_on, clear_gives_every_block_back) {
  using map = basic_hash_map<basic_string<TypeParam>, basic_string<TypeParam>, TypeParam>;
  bed<map, TypeParam> b;
  b.update([](map& m) {
    for (int i = 0; i < 300; ++i) m.insert(std::to_string(i), std::string(100, 'v'));
    m.clear();
  });
  b.read([](const map& m) {
    EXPECT_TRUE(m.empty());
    EXPECT_TRUE(blocks_of(m).empty());
  });
}

// A step of a scan; the keys that it visits are added.
template <class Map>
std::uint64_t scan_step(const Map& m, std::uint64_t cursor, std::multiset<std::uint64_t>& met) {
  return m.scan(cursor, [&](const auto& key, const auto&) { met.insert(key.load()); });
}

// Also of buckets that are not yet split off.
TYPED_TEST(hash_map_on, scan_meets_each_item_once_if_nothing_changes) {
  for (const std::uint64_t reserved : {0u, 8u, 64u, 4096u}) {
    bed<words<TypeParam>, TypeParam> b;
    b.update([&](words<TypeParam>& m) {
      for (std::uint64_t k = 0; k < 200; ++k) m.insert(k, k);
      m.reserve(reserved);
    });
    b.read([](const words<TypeParam>& m) {
      std::multiset<std::uint64_t> met;
      std::uint64_t cursor = 0, steps = 0;
      do {
        cursor = scan_step(m, cursor, met);
        ++steps;
      } while (cursor != 0);
      EXPECT_EQ(steps, m.bucket_count());
      EXPECT_EQ(met.size(), 200u);
      for (std::uint64_t k = 0; k < 200; ++k) EXPECT_TRUE(met.contains(k));
    });
  }
}

TYPED_TEST(hash_map_on, scan_meets_every_item_that_stays) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    bed<words<TypeParam>, TypeParam> b;
    base::rng random(seed);
    const std::uint64_t stay = random.below(200);
    b.update([&](words<TypeParam>& m) {
      for (std::uint64_t k = 0; k < stay; ++k) m.insert(k, k);
    });
    std::multiset<std::uint64_t> met;
    std::uint64_t cursor = 0, steps = 0;
    do {
      b.read([&](const words<TypeParam>& m) { cursor = scan_step(m, cursor, met); });
      b.update([&](words<TypeParam>& m) {
        for (std::uint64_t i = random.below(20); i != 0; --i) {
          const std::uint64_t key = 1000 + random.below(3000);
          if (random.below(4) == 0)
            m.erase(key);
          else
            m.insert(key, key);
        }
      });
      ASSERT_LT(++steps, 100'000u);
    } while (cursor != 0);
    for (std::uint64_t k = 0; k < stay; ++k) EXPECT_TRUE(met.contains(k)) << "seed " << seed;
  }
}

TYPED_TEST(hash_map_on, scan_of_an_empty_map_has_one_step_and_takes_any_cursor) {
  bed<words<TypeParam>, TypeParam> b;
  std::multiset<std::uint64_t> met;
  b.read([&](const words<TypeParam>& m) { EXPECT_EQ(scan_step(m, ~std::uint64_t{0}, met), 0u); });
  b.update([](words<TypeParam>& m) { m.insert(1, 1); });
  b.read([&](const words<TypeParam>& m) {
    for (std::uint64_t cursor = 0; cursor < 1000; ++cursor)
      EXPECT_LT(scan_step(m, cursor << 50 | cursor, met), m.bucket_count());
  });
}

}  // namespace
}  // namespace stele::testing
