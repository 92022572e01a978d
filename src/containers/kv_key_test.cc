// Keys made of values are ordered as the values, and are read back.
#include <gtest/gtest.h>
#include <stele/key.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace stele::testing {
namespace {

template <class T>
void expect_order(std::vector<T> ascending) {
  for (std::size_t i = 0; i < ascending.size(); ++i) {
    const auto key = key::of(ascending[i]);
    const auto back = key::parse<T>(key);
    ASSERT_TRUE(back.has_value()) << i;
    EXPECT_EQ(std::get<0>(*back), ascending[i]) << i;
    for (std::size_t j = 0; j < ascending.size(); ++j)
      EXPECT_EQ(key < key::of(ascending[j]), i < j) << i << ' ' << j;
  }
}

TEST(keys, are_ordered_as_their_values) {
  expect_order<std::int64_t>({INT64_MIN, -256, -255, -1, 0, 1, 255, 256, INT64_MAX});
  expect_order<std::int8_t>({-128, -1, 0, 1, 127});
  expect_order<std::uint32_t>({0, 1, 255, 256, UINT32_MAX});
  constexpr double infinity = std::numeric_limits<double>::infinity();
  expect_order<double>({-infinity, -1e300, -1.5, -1e-300, 0.0, 1e-300, 1.5, 1e300, infinity});
  EXPECT_LT(key::of(-0.0), key::of(0.0));
  using namespace std::string_literals;
  expect_order<std::string>({"", "\0"s, "\0\0"s, "\0\x01"s, "\0\xFF"s, "\x01", "a", "a\0"s, "a\0b"s,
                             "a\x01", "ab", "b", "\xFF", "\xFF\xFF"});
}

TEST(keys, of_sequences_are_ordered_by_the_first_difference) {
  using sequence = std::tuple<std::string, std::int32_t, double>;
  std::vector<sequence> all;
  using namespace std::string_literals;
  for (const std::string& text : {""s, "a"s, "a\0"s, "ab"s})
    for (const std::int32_t n : {INT32_MIN, -1, 0, 0x7F00'0000, INT32_MAX})
      for (const double d : {-2.0, 0.0, 3.0}) all.emplace_back(text, n, d);
  ASSERT_TRUE(std::ranges::is_sorted(all));
  std::string before;
  for (const auto& [text, n, d] : all) {
    const std::string made = key::of(text, n, d);
    EXPECT_LT(before, made);
    EXPECT_TRUE(made.starts_with(key::of(text, n)));
    EXPECT_EQ((key::parse<std::string, std::int32_t, double>(made)), sequence(text, n, d));
    before = made;
  }
}

TEST(keys, of_other_types_are_not_read) {
  const std::string made = key::of("a", 7);
  EXPECT_FALSE((key::parse<std::string>(made)));
  EXPECT_FALSE((key::parse<std::string, int, int>(made)));
  EXPECT_FALSE((key::parse<std::string>("no end")));
  EXPECT_FALSE((key::parse<std::string>(std::string("a\0", 2))));
  EXPECT_FALSE((key::parse<std::string>(std::string("a\0\x01\0\0", 5))));
  EXPECT_FALSE((key::parse<double>("short")));
}

}  // namespace
}  // namespace stele::testing
