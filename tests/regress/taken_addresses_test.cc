// A pool of plain pointers whose addresses up to max_size are taken was mapped at other addresses,
// and its pointers led elsewhere.
#include <sys/mman.h>
#include <tests/conformance/pools.h>

namespace stele::testing {
namespace {

TEST(taken_addresses, are_no_reason_to_map_a_pool_elsewhere) {
  constexpr std::size_t size = 4 << 20, most = 64 << 20;
  scratch_directory dir;
  // A range that is free, but for a page behind the pool.
  void* const range =
      ::mmap(nullptr, 2 * most, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(range, MAP_FAILED);
  ASSERT_EQ(::munmap(range, most), 0);
  const auto at = reinterpret_cast<std::uintptr_t>(range);
  pool_options options{.create_size = size, .engine = {.media = "process", .map_at = at}};
  (void)open_pool<field<std::uint64_t>>(dir.file("pool"), options);
  void* const taken = ::mmap(reinterpret_cast<void*>(at + most / 2), 4096, PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  ASSERT_EQ(reinterpret_cast<std::uintptr_t>(taken), at + most / 2);
  options.max_size = most;
  const auto opened = pool<field<std::uint64_t>>::open(dir.file("pool"), options);
  EXPECT_TRUE(!opened || reinterpret_cast<std::uintptr_t>(opened->core().base()) == at);
}

}  // namespace
}  // namespace stele::testing
