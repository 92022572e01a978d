// The chunk table of a growth is damaged before the heap reads it. The file has grown then and the
// heap has not; the pool could be used further.
#include <media/os.h>
#include <tests/conformance/pools.h>

#include <cstring>

namespace stele::testing {
namespace {

using number = field<std::uint64_t>;

// Damages the table's last word at the first look at the file after the growth.
class damaged_table final : public media::os::syscall_hook {
 public:
  explicit damaged_table(const storage::pool_file& f) : file_(f), chunks_(f.header().chunk_count) {
    media::os::install_hook(this);
  }
  ~damaged_table() override { media::os::install_hook(nullptr); }
  int before(const media::os::request&) noexcept override {
    const auto& h = file_.header();
    if (h.chunk_count != chunks_)
      std::memset(file_.at(h.table_offset + 8 * (h.chunk_count - 1)), 0x5A, 8);
    return 0;
  }

 private:
  const storage::pool_file& file_;
  const std::uint64_t chunks_;
};

TEST(corrupt_growth, poisons_the_pool) {
  scratch_directory dir;
  auto p =
      open_pool<number>(dir.file("pool"), {.create_size = 1 << 20, .engine = {.media = "process"}});
  {
    const damaged_table hook(p.core().state().file);
    EXPECT_TRUE(fails_with(p.grow(4 << 20), errc::corrupt));
  }
  EXPECT_TRUE(fails_with(p.update([](number& n) { n = 1; }), errc::poisoned));
}

}  // namespace
}  // namespace stele::testing
