// An allocation of nearly all addresses. The room that a pool was to grow by wrapped round, so the
// pool grew to its most in vain; and a full device made the transaction begin again for ever.
#include <tests/conformance/pools.h>

#include <filesystem>

namespace stele::testing {
namespace {

struct holder {
  field<std::uint64_t> n;
};

TEST(absurd_room, is_refused_and_the_pool_does_not_grow) {
  scratch_directory dir;
  const std::size_t size = 1 << 20;
  auto p = open_pool<holder>(
      dir.file("pool"),
      {.create_size = size, .max_size = 8 * size, .engine = {.media = "process"}});
  for (const std::size_t less : {8u, 64u, 4096u, 65536u, 1u << 20, 16u << 20}) {
    SCOPED_TRACE(less);
    const auto how = p.update([&](holder& h) {
      h.n = 1;
      (void)pool_memory::allocate(std::size_t{0} - less, 8);
    });
    EXPECT_TRUE(fails_with(how, errc::full));
  }
  EXPECT_EQ(std::filesystem::file_size(dir.file("pool")), size);
  EXPECT_EQ(p.read([](const holder& h) { return h.n.load(); }).value_or(9), 0u);
  EXPECT_TRUE(succeeds(p.update([](holder& h) { h.n = 2; })));
}

}  // namespace
}  // namespace stele::testing
