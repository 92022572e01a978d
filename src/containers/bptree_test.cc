// bptree compared with std::map by random operations, on ordinary memory and on pools, with small
// nodes for high trees.
#include <stele/bptree.h>
#include <stele/string.h>

#include <containers/map_model.h>

#include <vector>

namespace stele::testing {
namespace {

template <class Memory>
class bptree_on : public ::testing::Test {};
using memories = ::testing::Types<plain_memory, pool_memory, coalescing_memory>;
TYPED_TEST_SUITE(bptree_on, memories);

template <class Memory>
using words = basic_bptree<std::uint64_t, std::uint64_t, Memory>;
static_assert(bptree_pairs<std::uint64_t> == 200 && bptree_pairs<std::uint32_t> == 200 &&
              bptree_pairs<blob<64>> == 48);
template <class Memory>
using narrow = basic_bptree<std::uint64_t, std::uint64_t, Memory, 8>;

TYPED_TEST(bptree_on, behaves_as_a_map_of_words) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    bed<words<TypeParam>, TypeParam> b;
    map_property_test<words<TypeParam>>({.seed = seed,
                                         .keys = std::size_t{150} << seed,
                                         .operations = 8000,
                                         .batch = seed,
                                         .check_every = 256})
        .run(b);
  }
}

TYPED_TEST(bptree_on, behaves_as_a_map_when_tall) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    bed<narrow<TypeParam>, TypeParam> b;
    map_property_test<narrow<TypeParam>>({.seed = seed,
                                          .keys = std::size_t{10} << seed,
                                          .operations = 6000,
                                          .batch = seed,
                                          .check_every = 32})
        .run(b);
  }
}

TYPED_TEST(bptree_on, behaves_as_a_map_of_large_values) {
  using map = basic_bptree<std::uint64_t, blob<256>, TypeParam, 16>;
  bed<map, TypeParam> b;
  map_property_test<map>({.seed = 5, .keys = 400, .operations = 4000, .batch = 5}).run(b);
}

TYPED_TEST(bptree_on, behaves_as_a_map_of_strings_by_number) {
  using map = basic_bptree<std::int16_t, basic_string<TypeParam>, TypeParam, 8>;
  bed<map, TypeParam> b;
  map_property_test<map>({.seed = 6, .keys = 200, .operations = 4000, .batch = 2}).run(b);
}

template <class Tree>
void fill_and_empty(Tree& t, std::uint64_t count, std::uint64_t stride) {
  for (std::uint64_t i = 0; i < count; ++i) ASSERT_TRUE(t.insert(i * stride % count, i).second);
  ASSERT_TRUE(t.check());
  ASSERT_EQ(t.size(), count);
  for (std::uint64_t i = 0; i < count; ++i) {
    ASSERT_EQ(t.erase(i * 7 * stride % count), 1u);
    if (i % (count / 16) == 0) {
      ASSERT_TRUE(t.check());
    }
  }
  ASSERT_TRUE(t.empty());
  ASSERT_TRUE(blocks_of(t).empty());
}

TYPED_TEST(bptree_on, grows_tall_and_shrinks_to_nothing) {
  bed<narrow<TypeParam>, TypeParam> b;
  for (const std::uint64_t stride : {1u, 4098u, 1237u})
    b.update([&](narrow<TypeParam>& t) { fill_and_empty(t, 4099, stride); });
}

TYPED_TEST(bptree_on, full_width_nodes_split_and_join) {
  bed<words<TypeParam>, TypeParam> b;
  b.update([&](words<TypeParam>& t) { fill_and_empty(t, 30'011, 12'345); });
}

TYPED_TEST(bptree_on, iterates_in_key_order) {
  bed<narrow<TypeParam>, TypeParam> b;
  b.update([](narrow<TypeParam>& t) {
    for (std::uint64_t k = 0; k < 500; ++k) t.insert(k * 7919 % 1000 * 2, k);
  });
  b.read([](const narrow<TypeParam>& t) {
    std::vector<std::uint64_t> keys;
    for (const auto& [key, value] : t) keys.push_back(key);
    EXPECT_EQ(keys.size(), t.size());
    EXPECT_TRUE(std::is_sorted(keys.begin(), keys.end()));
    for (std::size_t i = 0; i < keys.size(); ++i) {
      EXPECT_EQ(t.lower_bound(keys[i])->first, keys[i]);
      const auto above = t.lower_bound(keys[i] + 1);
      EXPECT_TRUE(i + 1 == keys.size() ? above == t.end() : above->first == keys[i + 1]);
    }
  });
}

TYPED_TEST(bptree_on, ascending_keys_fill_leaves_to_three_quarters) {
  bed<words<TypeParam>, TypeParam> b;
  b.update([](words<TypeParam>& t) {
    for (std::uint64_t k = 0; k < 15'000; ++k) t.insert(k, k);
    EXPECT_LE(blocks_of(t).size(), 15'000u / 150 + 2);
    EXPECT_TRUE(t.check());
  });
}

TYPED_TEST(bptree_on, boxed_values_are_blocks_of_their_own_and_stay_in_place) {
  using map = basic_bptree<std::uint64_t, blob<64>, TypeParam, 8>;
  bed<map, TypeParam> b;
  b.update([](map& t) {
    const auto* kept = t.insert(500, sample<blob<64>>::of(7)).first;
    for (std::uint64_t k = 0; k < 500; ++k) t.insert(k, sample<blob<64>>::of(k));
    EXPECT_EQ(t.find(500), kept);
    t.clear();
    EXPECT_TRUE(blocks_of(t).empty());
  });
}

}  // namespace
}  // namespace stele::testing
