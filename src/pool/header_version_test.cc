// The header while its version is raised: what each crash leaves is read as one of the two
// versions, and what is not such a state is damage.
#include <gtest/gtest.h>
#include <pool/header_version.h>
#include <pool/memory_pool.h>

#include <cstring>

namespace stele::storage {
namespace {

struct control_of_test {
  void fence() { fences->push_back(*front); }
  std::vector<std::vector<std::byte>>* fences;
  const std::vector<std::byte>* front;
};
// Keeps what is on media at each fence.
struct medium_of_test {
  std::vector<std::byte> front;
  std::vector<std::vector<std::byte>> fences;
  control_of_test control{&fences, &front};
  void put(std::byte* to, const void* from, std::size_t size) { std::memcpy(to, from, size); }
};

class header_version : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  header_version() {
    testing::memory_pool pool(
        {.size = 64 << 10, .log_size = 4096, .log_count = 1, .layout = "versions"});
    auto h = with_version(pool.file().header(), 1);
    h.log_offset = GetParam();
    before_ = with_version(h, 1), after_ = with_version(h, format::pool_version);
    medium_.front.assign(format::front_size, std::byte{0});
    pool_file::write_header(medium_.front.data(), before_);
  }
  bool reads_as(const std::vector<std::byte>& front, const format::pool_header& h) const {
    const auto found = read_header(front.data());
    return std::memcmp(&found, &h, sizeof h) == 0;
  }
  format::pool_header before_{}, after_{};
  medium_of_test medium_;
};

TEST_P(header_version, is_raised_in_the_copy_first) {
  const auto first = medium_.front;
  raise_version(medium_, medium_.front.data());
  ASSERT_EQ(medium_.fences.size(), 1u);
  const std::uint64_t copy = format::header_copy_offset_of(after_);
  EXPECT_EQ(std::memcmp(medium_.fences[0].data(), first.data(), sizeof before_), 0);
  EXPECT_EQ(std::memcmp(medium_.fences[0].data() + copy, &after_, sizeof after_), 0);
  EXPECT_EQ(std::memcmp(medium_.front.data(), &after_, sizeof after_), 0);
  EXPECT_TRUE(reads_as(medium_.front, after_));
  raise_version(medium_, medium_.front.data());
  EXPECT_EQ(medium_.fences.size(), 1u) << "a pool of the present version is left alone";
}

// A crash leaves any of the words that were stored since the last fence.
TEST_P(header_version, is_found_after_every_crash_and_raised_again) {
  const auto first = medium_.front;
  raise_version(medium_, medium_.front.data());
  // `at`: of the header that is being written; `words`: which of its two words that differ.
  const auto check = [&](const std::vector<std::byte>& from, const std::vector<std::byte>& to,
                         std::uint64_t at, unsigned words, const format::pool_header& expected) {
    auto front = from;
    if ((words & 1) != 0) std::memcpy(&front[at + 8], &to[at + 8], 8);
    if ((words & 2) != 0) std::memcpy(&front[at + 248], &to[at + 248], 8);
    EXPECT_TRUE(reads_as(front, expected)) << words << " at " << at;
    medium_of_test again;
    again.front = front;
    raise_version(again, again.front.data());
    EXPECT_EQ(again.front, medium_.front);
  };
  const std::uint64_t copy = format::header_copy_offset_of(after_);
  for (const unsigned words : {0u, 1u, 2u, 3u}) {
    check(first, medium_.fences[0], copy, words, before_);
    check(medium_.fences[0], medium_.front, 0, words, words == 0 ? before_ : after_);
  }
}

TEST_P(header_version, does_not_hide_damage) {
  raise_version(medium_, medium_.front.data());
  for (std::size_t bit = 0; bit < 8 * sizeof after_; ++bit) {
    auto front = medium_.front;
    front[bit / 8] ^= std::byte{1} << bit % 8;
    EXPECT_FALSE(is_whole(read_header(front.data()))) << "bit " << bit;
  }
}

INSTANTIATE_TEST_SUITE_P(both, header_version,
                         ::testing::Values(format::front_size, format::header_area_size));

}  // namespace
}  // namespace stele::storage
