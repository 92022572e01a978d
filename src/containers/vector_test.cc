// vector compared with std::vector by random operations, on ordinary memory and on pools; and its
// edge cases.
#include <stele/hash_map.h>
#include <stele/vector.h>

#include <containers/map_model.h>

#include <algorithm>
#include <vector>

namespace stele::testing {
namespace {

template <class Memory>
class vector_on : public ::testing::Test {};
using memories = ::testing::Types<plain_memory, pool_memory, coalescing_memory>;
TYPED_TEST_SUITE(vector_on, memories);

template <class Memory>
using words = basic_vector<std::uint64_t, Memory>;
template <class Memory>
using texts = basic_vector<basic_string<Memory>, Memory>;

// Random operations on a vector and a std::vector of the same values.
template <class Vector>
class vector_property_test {
  using samples = sample<typename Vector::value_type>;
  using value = decltype(samples::of(0));

 public:
  explicit vector_property_test(std::uint64_t seed) : random_(seed) {}

  void step(Vector& v) {
    const value x = samples::of(random_.below(100));
    const std::size_t at = random_.below(model_.size() + 1);
    const auto offset = static_cast<std::ptrdiff_t>(at);
    switch (random_.below(model_.size() > 300 ? 10 : 8)) {
      case 5:
        ASSERT_EQ(v.insert(v.begin() + offset, x) - v.begin(), offset);
        model_.insert(model_.begin() + offset, x);
        break;
      case 6:
        return change_one(v, at, x);
      case 7:
        return erase_some(v, offset);
      case 8:
        v.resize(at), model_.resize(at);
        return v.shrink_to_fit();
      case 9:
        v.assign(at / 2, x), model_.assign(at / 2, x);
        if (at % 5 == 0) v.clear(), model_.clear();
        break;
      default:
        v.push_back(x), model_.push_back(x);
    }
  }

  void compare(const Vector& v) const {
    const result<> status = v.check();
    ASSERT_TRUE(status) << status.error().message;
    ASSERT_EQ(v.size(), model_.size());
    ASSERT_GE(v.capacity(), v.size());
    std::size_t i = 0;
    for (const auto& stored : v) {
      ASSERT_EQ(&stored, &v[i]);
      ASSERT_EQ(value_in(stored), model_[i++]);
    }
    ASSERT_EQ(i, model_.size());
    for (auto it = v.rbegin(); it != v.rend(); ++it) ASSERT_EQ(value_in(*it), model_[--i]);
  }

 private:
  void change_one(Vector& v, std::size_t at, const value& x) {
    v.reserve(at * 2);
    if (at == model_.size()) {
      v.emplace_back(), model_.emplace_back();
      return;
    }
    v[at] = x, model_[at] = x;
    v.swap_elements(at / 2, at), std::swap(model_[at / 2], model_[at]);
  }
  void erase_some(Vector& v, std::ptrdiff_t offset) {
    if (model_.empty()) return;
    v.pop_back(), model_.pop_back();
    const auto size = static_cast<std::ptrdiff_t>(model_.size());
    const std::ptrdiff_t first = std::min(offset, size), last = std::min(first + 2, size);
    ASSERT_EQ(v.erase(v.begin() + first, v.begin() + last) - v.begin(), first);
    model_.erase(model_.begin() + first, model_.begin() + last);
  }

  base::rng random_;
  std::vector<value> model_;
};

template <class Vector, class Memory>
void play(std::uint64_t seed, int operations) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  bed<Vector, Memory> b;
  vector_property_test<Vector> play(seed);
  for (int i = 0; i < operations; i += 8) {
    b.update([&](Vector& v) {
      for (int k = 0; k < 8; ++k) play.step(v);
    });
    b.read([&](const Vector& v) { play.compare(v); });
    if (::testing::Test::HasFailure()) return;
  }
}

TYPED_TEST(vector_on, behaves_as_a_vector_of_words) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) play<words<TypeParam>, TypeParam>(seed, 3000);
}

TYPED_TEST(vector_on, behaves_as_a_vector_of_strings) {
  for (std::uint64_t seed = 5; seed <= 6; ++seed) play<texts<TypeParam>, TypeParam>(seed, 2000);
}

TYPED_TEST(vector_on, behaves_as_a_vector_of_large_values) {
  play<basic_vector<blob<100>, TypeParam>, TypeParam>(7, 2000);
}

TYPED_TEST(vector_on, growing_keeps_references_and_allocates_a_segment_at_a_time) {
  bed<words<TypeParam>, TypeParam> b;
  b.update([](words<TypeParam>& v) {
    auto& first = v.push_back(7);
    std::size_t blocks = 0;
    for (std::uint64_t i = 1; i < 100'000; ++i) {
      v.push_back(i);
      if ((i & (i - 1)) != 0) continue;
      EXPECT_LE(blocks_of(v).size(), blocks + 2) << "a segment, and the directory once";
      blocks = blocks_of(v).size();
    }
    first = 8;
    EXPECT_EQ(v.front(), 8u);
    EXPECT_EQ(v.back(), 99'999u);
    EXPECT_EQ(v.capacity(), 131'072u);
  });
}

TYPED_TEST(vector_on, reserve_makes_one_segment_that_appending_fills) {
  bed<words<TypeParam>, TypeParam> b;
  b.update([](words<TypeParam>& v) {
    v.reserve(1000);
    const auto blocks = blocks_of(v);
    EXPECT_EQ(blocks.size(), 1u);
    while (v.size() < 1000) v.size() == 0 ? v.push_back(1) : v.push_back(v.back());
    EXPECT_EQ(blocks_of(v), blocks);
    v.resize(1025);
    EXPECT_EQ(blocks_of(v).size(), 3u) << "a segment and a directory";
    v.resize(1000);
    v.shrink_to_fit();
    EXPECT_EQ(blocks_of(v), blocks);
  });
}

TYPED_TEST(vector_on, what_is_not_there_is_a_failure) {
  bed<words<TypeParam>, TypeParam> b;
  b.update([](words<TypeParam>& v) {
    EXPECT_THROW(v.pop_back(), failure);
    EXPECT_THROW(v.back(), failure);
    EXPECT_THROW(v.at(0), failure);
    EXPECT_THROW(v.reserve(~std::size_t{0}), failure);
    EXPECT_TRUE(v.empty() && v.check());
  });
}

TYPED_TEST(vector_on, iterators_suit_standard_algorithms) {
  bed<words<TypeParam>, TypeParam> b;
  b.update([](words<TypeParam>& v) {
    for (std::uint64_t i = 0; i < 1000; ++i) v.push_back(i * 7919 % 1000);
    std::sort(v.begin(), v.end());
    for (std::uint64_t i = 0; i < 1000; ++i) ASSERT_EQ(v[i], i);
    EXPECT_EQ(std::lower_bound(v.begin(), v.end(), 500u) - v.begin(), 500);
    std::reverse(v.begin() + 10, v.end());
    EXPECT_EQ(v[10], 999u);
    EXPECT_EQ(v.begin()[999], 10u);
  });
}

TYPED_TEST(vector_on, containers_nest) {
  using map = basic_hash_map<basic_string<TypeParam>, words<TypeParam>, TypeParam>;
  using vector = basic_vector<map, TypeParam>;
  bed<vector, TypeParam> b;
  b.update([](vector& v) {
    for (std::uint64_t i = 0; i < 50; ++i)
      v.emplace_back().try_emplace("numbers").first->second.push_back(i);
    for (std::uint64_t i = 0; i < 50; ++i) v[i].find("numbers")->second.push_back(2 * i);
    v.resize(60);
    v.pop_back();
  });
  b.read([](const vector& v) {
    EXPECT_EQ(v.size(), 59u);
    EXPECT_TRUE(v[50].empty());
    for (std::uint64_t i = 0; i < 50; ++i) EXPECT_EQ(v[i].find("numbers")->second.back(), 2 * i);
    EXPECT_EQ(blocks_of(v).size(), 50 * 3u + 6u + 1u)
        << "buckets, node and numbers of each; segments and directory";
  });
  b.update([](vector& v) {
    v.clear();
    EXPECT_TRUE(blocks_of(v).empty());
  });
}

TYPED_TEST(vector_on, pointers_lead_to_objects_of_the_pool) {
  using vector = basic_vector<words<TypeParam>*, TypeParam>;
  bed<vector, TypeParam> b;
  b.update([](vector& v) {
    for (std::uint64_t i = 0; i < 20; ++i)
      v.push_back(TypeParam::template make<words<TypeParam>>())->push_back(i);
    v.insert(v.begin(), v[19].load());
    v.pop_back();
  });
  b.update([](vector& v) {
    for (std::uint64_t i = 0; i < 20; ++i) EXPECT_EQ(v[i]->front(), (i + 19) % 20);
    v.for_each([](const auto& one) { TypeParam::destroy(one.load()); });
    v.clear();
  });
}

}  // namespace
}  // namespace stele::testing
