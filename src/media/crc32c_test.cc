// The CRC against its definition and known values, with and without the processor's instruction.
#include <base/rng.h>
#include <gtest/gtest.h>
#include <media/crc32c.h>

#include <vector>

namespace stele::media {
namespace {

TEST(crc32c, is_that_of_rfc_3720) {  // appendix B.4, where the register begins as ones and the
                                     // result is inverted
  const std::vector<std::uint64_t> zeroes(4, 0), ones(4, ~std::uint64_t{0});
  EXPECT_EQ(~crc32c(~0u, zeroes.data(), 4), 0x8A9136AAu);
  EXPECT_EQ(~crc32c(~0u, ones.data(), 4), 0x62A8AB43u);
  const std::vector<std::uint64_t> counting = {0x0706050403020100u, 0x0F0E0D0C0B0A0908u,
                                               0x1716151413121110u, 0x1F1E1D1C1B1A1918u};
  EXPECT_EQ(~crc32c(~0u, counting.data(), 4), 0x46DD794Eu);
}

TEST(crc32c, is_the_same_by_table) {
  base::rng random(1);
  for (std::size_t words = 0; words < 70; ++words) {
    std::vector<std::uint64_t> w(words);
    for (auto& x : w) x = random();
    const auto seed = static_cast<std::uint32_t>(random());
    ASSERT_EQ(crc32c(seed, w.data(), words), crc32c_by_table(seed, w.data(), words));
  }
}

TEST(crc32c, is_the_same_for_many_lines) {
  base::rng random(2);
  for (const std::size_t lines : {0u, 1u, 3u, 4u, 49u}) {
    std::vector<std::uint64_t> w(8 * lines);
    for (auto& x : w) x = random();
    std::vector<std::uint32_t> crcs(lines);
    crc32c_of_lines(5, w.data(), lines, crcs.data());
    for (std::size_t i = 0; i < lines; ++i) ASSERT_EQ(crcs[i], crc32c(5, w.data() + 8 * i, 8));
  }
}

TEST(crc32c, sees_every_single_bit) {
  std::vector<std::uint64_t> w(6, 0x0123456789ABCDEFu);
  const auto whole = crc32c(7, w.data(), w.size());
  for (std::size_t bit = 0; bit < 64 * w.size(); ++bit) {
    w[bit / 64] ^= std::uint64_t{1} << bit % 64;
    ASSERT_NE(crc32c(7, w.data(), w.size()), whole) << bit;
    w[bit / 64] ^= std::uint64_t{1} << bit % 64;
  }
}

}  // namespace
}  // namespace stele::media
