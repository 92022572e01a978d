// word_map compared with std::map by random operations, on ordinary memory and on pools; keys that
// meet in one bucket; and what check() finds.
#include <stele/word_map.h>

#include <containers/map_model.h>

namespace stele::testing {
namespace {

template <class Memory>
class word_map_on : public ::testing::Test {};
using memories = ::testing::Types<plain_memory, pool_memory, coalescing_memory>;
TYPED_TEST_SUITE(word_map_on, memories);

template <class Memory>
using words = basic_word_map<std::uint64_t, std::uint64_t, Memory>;

// Keys whose items have their bucket at the same number as long as there are at most 2^12 buckets.
std::uint64_t meeting_key(std::uint64_t n) {
  return detail::unmix_word(n << 12 | 5);
}

TYPED_TEST(word_map_on, behaves_as_a_map_of_words) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    bed<words<TypeParam>, TypeParam> b;
    map_property_test<words<TypeParam>>(
        {.seed = seed, .keys = std::size_t{20} << seed, .operations = 4000, .batch = seed})
        .run(b);
  }
}

TYPED_TEST(word_map_on, behaves_as_a_map_of_smaller_numbers) {
  using map = basic_word_map<std::uint16_t, std::int32_t, TypeParam>;
  bed<map, TypeParam> b;
  map_property_test<map>({.seed = 3, .keys = 900, .operations = 6000, .batch = 2}).run(b);
}

TYPED_TEST(word_map_on, zeroed_memory_is_an_empty_map) {
  bed<words<TypeParam>, TypeParam> b;
  b.read([](const words<TypeParam>& m) {
    EXPECT_TRUE(m.empty());
    EXPECT_EQ(m.bucket_count(), 0u);
    EXPECT_FALSE(m.contains(0));
    EXPECT_TRUE(m.check());
  });
  b.read([](const words<TypeParam>& m) { EXPECT_TRUE(blocks_of(m).empty()); });
}

TYPED_TEST(word_map_on, finds_items_that_meet_in_one_bucket) {
  bed<words<TypeParam>, TypeParam> b;
  static constexpr std::uint64_t many = 300;  // more than a bucket can count
  for (std::uint64_t n = 0; n < many; ++n)
    b.update([&](words<TypeParam>& m) { EXPECT_TRUE(m.insert(meeting_key(n), n).second); });
  b.read([](const words<TypeParam>& m) {
    EXPECT_TRUE(m.check());
    EXPECT_EQ(m.size(), many);
    for (std::uint64_t n = 0; n < many; ++n) EXPECT_EQ(m.at(meeting_key(n)), n);
    EXPECT_FALSE(m.contains(meeting_key(many)));
  });
  for (std::uint64_t n = 0; n < many; n += 2)
    b.update([&](words<TypeParam>& m) { EXPECT_EQ(m.erase(meeting_key(n)), 1u); });
  for (std::uint64_t n = 0; n < many; n += 4)
    b.update([&](words<TypeParam>& m) { m.insert_or_assign(meeting_key(n), n + 1); });
  b.read([](const words<TypeParam>& m) {
    EXPECT_TRUE(m.check());
    for (std::uint64_t n = 0; n < many; ++n)
      EXPECT_EQ(m.find(meeting_key(n)), n % 4 == 0   ? std::optional(n + 1)
                                        : n % 2 == 0 ? std::nullopt
                                                     : std::optional(n));
  });
}

TYPED_TEST(word_map_on, grows_with_its_items_and_moves_none_at_once) {
  bed<words<TypeParam>, TypeParam> b;
  b.update([](words<TypeParam>& m) {
    for (std::uint64_t k = 0; k < 20'000; ++k) m.insert(k, ~k);
  });
  b.read([](const words<TypeParam>& m) {
    EXPECT_GE(m.bucket_count(), 20'000u / 4);
    EXPECT_LE(m.bucket_count(), 20'000u / 3 * 2);
    EXPECT_TRUE(m.check());
    std::vector<std::uint64_t> keys(20'100);
    for (std::uint64_t k = 0; k < keys.size(); ++k) keys[k] = k;
    std::size_t called = 0;
    m.find_many(keys, [&](std::size_t i, std::optional<std::uint64_t> value) {
      EXPECT_EQ(i, called++);
      EXPECT_EQ(value, i < 20'000 ? std::optional(~std::uint64_t{i}) : std::nullopt);
    });
    EXPECT_EQ(called, keys.size());
  });
  b.update([](words<TypeParam>& m) { m.clear(); });
  b.read([](const words<TypeParam>& m) { EXPECT_TRUE(m.empty() && m.check()); });
  b.read([](const words<TypeParam>& m) { EXPECT_TRUE(blocks_of(m).empty()); });
}

TYPED_TEST(word_map_on, reserves_buckets_for_its_items) {
  for (const std::size_t count : {1u, 40u, 64u, 100u, 3000u, 4096u}) {
    bed<words<TypeParam>, TypeParam> b;
    b.update([&](words<TypeParam>& m) { m.reserve(count); });
    b.read([&](const words<TypeParam>& m) {
      EXPECT_GE(8 * m.bucket_count(), 3 * count);
      EXPECT_LE(m.bucket_count(), std::max<std::size_t>(16, count));
      EXPECT_TRUE(m.empty() && m.check());
    });
    b.update([&](words<TypeParam>& m) {
      for (std::uint64_t k = 0; k < count; ++k) m.insert(k, k + 1);
    });
    b.read([&](const words<TypeParam>& m) {
      EXPECT_TRUE(m.check());
      for (std::uint64_t k = 0; k < count; ++k) ASSERT_EQ(m.find(k), k + 1);
    });
  }
}

TEST(half_step_sizes, number_every_bucket_once) {
  for (std::size_t first : {16u, 64u}) {
    auto s = detail::half_step_sizes::with_first(first);
    std::size_t before = 0;
    for (; s.segments() < 12; s = s.grown()) {
      ASSERT_TRUE(s.valid(64));
      EXPECT_GT(s.buckets(), before);
      EXPECT_LE(s.buckets(), before == 0 ? first : before * 3 / 2);
      before = s.buckets();
      std::size_t next = 0;
      for (std::size_t segment = 0; segment < s.segments(); ++segment) {
        ASSERT_EQ(s.start_of(segment), next);
        for (std::size_t i = 0; i < s.size_of(segment); ++i)
          ASSERT_EQ(s.segment_of(next + i), segment) << next + i;
        next += s.size_of(segment);
      }
      ASSERT_EQ(next, s.buckets());
    }
  }
}

TEST(word_map, check_finds_damage) {
  using map = basic_word_map<std::uint64_t, std::uint64_t, plain_memory>;
  for (std::size_t word = 0; word < 16 * 8; ++word) {
    bed<map, plain_memory> b;
    b.update([](map& m) {
      for (std::uint64_t k = 0; k < 24; ++k) m.insert(k, k);
      for (std::uint64_t n = 0; n < 6; ++n) m.insert(meeting_key(n), n);
    });
    std::uint64_t* words = nullptr;
    b.read([&](const map& m) {
      ASSERT_TRUE(m.check());
      m.visit_blocks([&](const void* block) {
        if (words == nullptr)
          words = static_cast<std::uint64_t*>(const_cast<void*>(block));  // the first segment
      });
    });
    if (word % 2 != 0 || (words[word] & 1) == 0) continue;  // a value, or free
    words[word] ^= std::uint64_t{1} << 40;                  // the key of an item
    b.read([&](const map& m) {
      std::uint64_t sum = 0;
      m.for_each([&](std::uint64_t k, std::uint64_t) { sum += k; });
      EXPECT_NE(sum, 0u);
      EXPECT_TRUE(m.check()) << "another key of the same bucket is no damage that it can see";
    });
    const std::uint64_t other = words[word - word % 8 + (word % 8 == 0 ? 2 : 0)];
    if ((other & 1) == 0) continue;  // free
    words[word] = other;
    b.read([&](const map& m) { EXPECT_FALSE(m.check()) << "a key that occurs twice"; });
  }
}

}  // namespace
}  // namespace stele::testing
