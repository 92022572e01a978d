// Each seed and each bit changes a checksum; a checksum of words equals that of their bytes.
#include <base/checksum.h>
#include <base/rng.h>
#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace stele::base {
namespace {

std::uint64_t sum_of(const std::vector<std::uint64_t>& words, std::uint64_t seed) {
  checksum sum(seed);
  for (const std::uint64_t w : words) sum.add(w);
  return sum.value();
}

TEST(checksum, words_and_bytes_agree) {
  const std::vector<std::uint64_t> words = {1, 2, 3, ~std::uint64_t{0}};
  checksum bytes(9);
  bytes.add(words.data(), words.size() * 8);
  EXPECT_EQ(bytes.value(), sum_of(words, 9));
  EXPECT_EQ(bytes.value32(), static_cast<std::uint32_t>(bytes.value() >> 32));
}

TEST(checksum, every_changed_bit_word_order_length_and_seed_changes_it) {
  rng random(1);
  std::vector<std::uint64_t> words(30);
  for (auto& w : words) w = random();
  const std::uint64_t right = sum_of(words, 1);
  std::set<std::uint64_t> others;
  for (std::size_t bit = 0; bit < words.size() * 64; ++bit) {
    auto changed = words;
    changed[bit / 64] ^= std::uint64_t{1} << bit % 64;
    others.insert(sum_of(changed, 1));
  }
  EXPECT_EQ(others.size(), words.size() * 64) << "two changes give one sum";
  auto swapped = words;
  std::swap(swapped[3], swapped[4]);
  others.insert(sum_of(swapped, 1));
  auto longer = words;
  longer.push_back(0);
  others.insert(sum_of(longer, 1));
  others.insert(sum_of(words, 2));
  EXPECT_EQ(others.size(), words.size() * 64 + 3);
  EXPECT_FALSE(others.contains(right));
}

}  // namespace
}  // namespace stele::base
