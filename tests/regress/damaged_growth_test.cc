// The words of a pool's growth are damaged while it is open. A backup took them for those of a pool
// that has not grown, and published a copy of its begin.
#include <format/pool_layout.h>
#include <tests/conformance/exercise.h>
#include <tx/runtime.h>

#include <filesystem>

namespace stele::testing {
namespace {

TEST(damaged_growth, is_an_error_of_a_backup) {
  scratch_directory dir;
  auto p = open_pool<texts_root>(dir.file("pool"),
                                 {.create_size = 1 << 20, .engine = {.media = "process"}});
  ASSERT_TRUE(succeeds(p.update([](texts_root& r) { put_text(r, 0); })));
  ASSERT_TRUE(succeeds(p.grow(4 << 20)));
  ASSERT_TRUE(succeeds(p.backup(dir.file("sound"))));
  *p.core().state().file.at(format::growth_offset) ^= std::byte{1};
  EXPECT_TRUE(fails_with(p.backup(dir.file("copy")), errc::corrupt));
  EXPECT_FALSE(std::filesystem::exists(dir.file("copy")));
  *p.core().state().file.at(format::growth_offset) ^= std::byte{1};
  EXPECT_TRUE(succeeds(p.backup(dir.file("copy"))));
}

}  // namespace
}  // namespace stele::testing
