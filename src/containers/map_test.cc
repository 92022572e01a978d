// map compared with std::map by random operations, on ordinary memory and on pools; its invariants
// after every few operations.
#include <stele/map.h>
#include <stele/string.h>

#include <containers/map_model.h>

#include <vector>

namespace stele::testing {
namespace {

template <class Memory>
class map_on : public ::testing::Test {};
using memories = ::testing::Types<plain_memory, pool_memory, coalescing_memory>;
TYPED_TEST_SUITE(map_on, memories);

template <class Memory>
using words = basic_map<std::uint64_t, std::uint64_t, Memory>;

TYPED_TEST(map_on, behaves_as_a_map_of_words) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    bed<words<TypeParam>, TypeParam> b;
    map_property_test<words<TypeParam>>({.seed = seed,
                                         .keys = std::size_t{5} << seed,
                                         .operations = 4000,
                                         .batch = seed,
                                         .check_every = 16})
        .run(b);
  }
}

TYPED_TEST(map_on, behaves_as_a_map_of_strings) {
  using map = basic_map<basic_string<TypeParam>, basic_string<TypeParam>, TypeParam>;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    bed<map, TypeParam> b;
    map_property_test<map>({.seed = seed, .keys = 300, .operations = 3000, .batch = 3}).run(b);
  }
}

TYPED_TEST(map_on, behaves_as_a_map_of_large_values) {
  using map = basic_map<std::int32_t, blob<4096>, TypeParam>;
  bed<map, TypeParam> b;
  map_property_test<map>({.seed = 3, .keys = 60, .operations = 1500, .batch = 5}).run(b);
}

// For every tree of up to seven keys, from every order of insertion: erases each key in turn.
TYPED_TEST(map_on, stays_balanced_through_every_small_history) {
  bed<words<TypeParam>, TypeParam> b;
  std::vector<std::uint64_t> order = {0, 1, 2, 3, 4, 5, 6};
  do {
    b.update([&](words<TypeParam>& m) {
      for (const std::uint64_t k : order) m.insert(k, k);
      ASSERT_TRUE(m.check());
      for (std::size_t i = 0; i < order.size(); ++i) {
        ASSERT_EQ(m.erase((order[i] * 3 + order[0]) % 7), 1u);
        ASSERT_TRUE(m.check());
      }
      ASSERT_TRUE(m.empty());
    });
  } while (std::next_permutation(order.begin(), order.end()));
}

TYPED_TEST(map_on, ascending_and_descending_inserts_stay_balanced) {
  bed<words<TypeParam>, TypeParam> b;
  b.update([](words<TypeParam>& m) {
    for (std::uint64_t k = 0; k < 2000; ++k) m.insert(10'000 + k, k);
    for (std::uint64_t k = 0; k < 2000; ++k) m.insert(9'999 - k, k);
  });
  b.read([](const words<TypeParam>& m) {
    const result<> status = m.check();
    EXPECT_TRUE(status) << status.error().message;
    EXPECT_EQ(m.size(), 4000u);
  });
}

TYPED_TEST(map_on, iterates_in_key_order) {
  bed<words<TypeParam>, TypeParam> b;
  b.update([](words<TypeParam>& m) {
    for (std::uint64_t k = 0; k < 500; ++k) m.insert(k * 7919 % 1000 * 2, k);
  });
  b.read([](const words<TypeParam>& m) {
    std::vector<std::uint64_t> keys;
    for (const auto& [key, value] : m) keys.push_back(key);
    EXPECT_EQ(keys.size(), m.size());
    EXPECT_TRUE(std::is_sorted(keys.begin(), keys.end()));
    for (std::size_t i = 0; i < keys.size(); ++i) {
      EXPECT_EQ(m.lower_bound(keys[i])->first, keys[i]);
      EXPECT_EQ(m.lower_bound(keys[i] == 0 ? 0 : keys[i] - 1)->first, keys[i]);
      const auto above = m.upper_bound(keys[i]);
      EXPECT_TRUE(i + 1 == keys.size() ? above == m.end() : above->first == keys[i + 1]);
    }
  });
}

TYPED_TEST(map_on, iterates_backwards_and_over_ranges) {
  bed<words<TypeParam>, TypeParam> b;
  b.read([](const words<TypeParam>& m) {
    EXPECT_TRUE(m.begin() == m.end());
    EXPECT_TRUE(m.rbegin() == m.rend());
    EXPECT_TRUE(m.range(0, 9).empty());
  });
  std::map<std::uint64_t, std::uint64_t> model;
  b.update([&](words<TypeParam>& m) {
    for (std::uint64_t k = 0; k < 300; ++k)
      m.insert(k * 7919 % 1000, k), model.emplace(k * 7919 % 1000, k);
  });
  b.read([&](const words<TypeParam>& m) {
    auto it = m.rbegin();
    for (auto expected = model.rbegin(); expected != model.rend(); ++expected, ++it)
      ASSERT_EQ(it->first, expected->first);
    ASSERT_TRUE(it == m.rend());
    for (std::uint64_t from = 0; from < 1010; from += 13)
      for (std::uint64_t to = 0; to < 1010; to += 97) {
        auto expected = model.lower_bound(from);
        for (const auto& [key, value] : m.range(from, to)) {
          ASSERT_EQ(key, expected->first);
          ASSERT_EQ(value, (expected++)->second);
        }
        ASSERT_TRUE(from >= to || expected == model.lower_bound(to)) << from << " to " << to;
      }
  });
}

TYPED_TEST(map_on, items_are_reached_erased_and_made_as_in_the_standards_map) {
  using map = basic_map<basic_string<TypeParam>, std::uint64_t, TypeParam>;
  bed<map, TypeParam> b;
  b.update([](map& m) {
    for (int i = 0; i < 100; ++i) m[std::to_string(i)] += static_cast<std::uint64_t>(i);
    m["7"] = 70;
    EXPECT_EQ(m.at("7"), 70u);
    EXPECT_EQ(std::as_const(m).at("8"), 8u);
    EXPECT_EQ(m.count("7") + m.count("no"), 1u);
    EXPECT_EQ(m.size(), 100u);
    EXPECT_THROW(m.at("no"), failure);
    std::vector<std::string> kept;
    for (auto it = m.begin(); it != m.end();) {
      if (it->second % 2 == 0) {
        kept.push_back(it->first.str());
        ++it;
      } else {
        it = m.erase(it);
      }
    }
    EXPECT_EQ(m.size(), 51u);
    for (const std::string& key : kept) {
      EXPECT_EQ(m.begin()->first, key);
      m.erase(m.begin());
      EXPECT_TRUE(m.check());
    }
    EXPECT_TRUE(m.empty());
  });
}

TYPED_TEST(map_on, references_survive_the_erasing_of_others) {
  bed<words<TypeParam>, TypeParam> b;
  b.update([](words<TypeParam>& m) {
    for (std::uint64_t k = 0; k < 1000; ++k) m.insert(k, k);
    auto& item = *m.find(500);
    for (std::uint64_t k = 0; k < 1000; ++k) {
      if (k != 500) m.erase(k);
    }
    EXPECT_EQ(&item, &*m.begin());
    EXPECT_EQ(m.size(), 1u);
  });
}

TYPED_TEST(map_on, clear_gives_every_block_back) {
  using map = basic_map<basic_string<TypeParam>, basic_string<TypeParam>, TypeParam>;
  bed<map, TypeParam> b;
  b.update([](map& m) {
    for (int i = 0; i < 100; ++i) m.insert(std::to_string(i), std::string(100, 'v'));
    const bool beside = std::is_same_v<TypeParam, coalescing_memory>;
    EXPECT_EQ(blocks_of(m).size(), beside ? 100u : 200u)
        << "texts beside their nodes, or in blocks of their own";
    m.clear();
    EXPECT_TRUE(m.empty());
    EXPECT_TRUE(blocks_of(m).empty());
  });
}

}  // namespace
}  // namespace stele::testing
