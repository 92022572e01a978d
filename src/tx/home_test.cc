// The two kinds of home: which one with_home() takes, and what home in place copies.
#include <gtest/gtest.h>
#include <tx/home.h>

#include <array>
#include <type_traits>

namespace stele::detail {
namespace {

class home_test : public ::testing::Test {
 protected:
  home_test() {
    for (std::size_t i = 0; i < bytes_.size(); ++i) bytes_[i] = std::byte(i + 1);
  }
  alignas(64) std::array<std::byte, 128> bytes_;
};

TEST_F(home_test, a_pool_without_a_home_of_another_kind_has_it_in_place) {
  const home_of_log home(bytes_.data(), nullptr, 0);
  EXPECT_TRUE(home.is_in_place());
  with_home(home,
            [](auto& kind) { EXPECT_TRUE(std::remove_reference_t<decltype(kind)>::is_in_place); });
}

TEST_F(home_test, another_kind_gives_each_log_a_view_of_its_own) {
  struct views final : virtual_home {
    home_view* of_log(unsigned log) override {
      asked = log;
      return reinterpret_cast<home_view*>(this);  // never used, only compared
    }
    storage::block_states& block_states() noexcept override { std::terminate(); }
    result<> verify(bool) const override { return {}; }
    void measure(pool_space&) const override {}
    unsigned asked = 0;
  } instead;
  const home_of_log home(bytes_.data(), &instead, 5);
  EXPECT_EQ(instead.asked, 5u);
  EXPECT_FALSE(home.is_in_place());
  const bool mapped = with_home(home, [&](auto& kind) {
    return !std::remove_reference_t<decltype(kind)>::is_in_place &&
           static_cast<void*>(&kind) == &instead;
  });
  EXPECT_TRUE(mapped);
}

TEST_F(home_test, copies_any_part_of_a_line_and_nothing_beside_it) {
  const in_place_home home(bytes_.data());
  for (std::size_t at = 0; at < 64; ++at)
    for (std::size_t size = 1; at + size <= 64; ++size) {
      std::array<std::byte, 66> copy{};
      home.copy(64 + at, copy.data() + 1, size);
      EXPECT_EQ(copy[0], std::byte{0});
      EXPECT_EQ(copy[size + 1], std::byte{0}) << at << " " << size;
      for (std::size_t i = 0; i < size; ++i) ASSERT_EQ(copy[i + 1], bytes_[64 + at + i]);
    }
}

TEST_F(home_test, loads_a_word_at_its_offset) {
  std::uint64_t word;
  std::memcpy(&word, bytes_.data() + 72, 8);
  EXPECT_EQ(in_place_home(bytes_.data()).word(72), word);
}

}  // namespace
}  // namespace stele::detail
