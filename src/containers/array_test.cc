// array: resize() keeps the remaining elements; all kinds of elements; bounds.
#include <stele/array.h>
#include <stele/string.h>

#include <containers/test_bed.h>

namespace stele::testing {
namespace {

template <class Memory>
class array_on : public ::testing::Test {};
using memories = ::testing::Types<plain_memory, pool_memory, coalescing_memory>;
TYPED_TEST_SUITE(array_on, memories);

TYPED_TEST(array_on, resize_keeps_the_front_and_zeroes_the_rest) {
  using array = basic_array<std::uint32_t, TypeParam>;
  bed<array, TypeParam> b;
  b.update([](array& a) {
    a.resize(10);
    for (std::uint32_t i = 0; i < 10; ++i) a[i] = i + 1;
    a.resize(4);
    a.resize(8);
  });
  b.read([](const array& a) {
    ASSERT_EQ(a.size(), 8u);
    for (std::uint32_t i = 0; i < 8; ++i) EXPECT_EQ(a[i], i < 4 ? i + 1 : 0);
    EXPECT_TRUE(a.check());
    EXPECT_EQ(blocks_of(a).size(), 1u);
  });
}

TYPED_TEST(array_on, holds_strings) {
  using array = basic_array<basic_string<TypeParam>, TypeParam>;
  bed<array, TypeParam> b;
  b.update([](array& a) {
    a.resize(3);
    a[0] = "short";
    a[1] = std::string(99, 'l');
    a.resize(5);
  });
  b.read([](const array& a) {
    EXPECT_EQ(a[0].str(), "short");
    EXPECT_EQ(a[1].str(), std::string(99, 'l'));
    EXPECT_TRUE(a[4].empty());
    EXPECT_EQ(blocks_of(a).size(), 2u);
  });
  b.update([](array& a) { a.clear(); });
  b.read([](const array& a) { EXPECT_TRUE(a.empty() && blocks_of(a).empty()); });
}

TYPED_TEST(array_on, swaps_elements_of_any_size) {
  using array = basic_array<blob<512>, TypeParam>;
  bed<array, TypeParam> b;
  blob<512> one, two;
  std::memset(one.bytes, 1, 512);
  std::memset(two.bytes, 2, 512);
  b.update([&](array& a) {
    a.resize(2);
    a[0] = one;
    a[1] = two;
    a.swap_elements(0, 1);
  });
  b.read([&](const array& a) { EXPECT_TRUE(a[0].load() == two && a[1].load() == one); });
}

TYPED_TEST(array_on, at_refuses_what_is_not_there) {
  using array = basic_array<int, TypeParam>;
  bed<array, TypeParam> b;
  b.update([](array& a) {
    a.resize(1);
    a.at(0) = 1;
    EXPECT_THROW(a.at(1), failure);
  });
}

}  // namespace
}  // namespace stele::testing
