// A store that begins in its pool and ends after it, as one by a damaged length does, ended the
// program.
#include <tests/conformance/pools.h>

#include <array>

namespace stele::testing {
namespace {

TEST(past_the_end, is_an_error_of_the_transaction) {
  scratch_directory dir;
  auto p = open_pool<field<std::uint64_t>>(
      dir.file("pool"), {.create_size = 1 << 20, .engine = {.media = "process"}});
  std::byte* const last = p.core().base() + p.core().size() - 8;
  const std::array<std::byte, 64> bytes{};
  EXPECT_TRUE(fails_with(p.update([&](field<std::uint64_t>& n) {
    n = 1;
    detail::store_range(last, bytes.data(), bytes.size());
  }),
                         errc::corrupt));
  EXPECT_TRUE(fails_with(p.update([&](field<std::uint64_t>& n) {
    n = 1;
    detail::fill_zero(last, bytes.size());
  }),
                         errc::corrupt));
  EXPECT_EQ(p.read([](const auto& n) { return n.load(); }).value_or(9), 0u);
}

}  // namespace
}  // namespace stele::testing
