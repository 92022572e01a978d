// Another pool gets a pool's name while that pool is being opened. The medium file opens its file a
// second time. It once opened the file that had the name by then, so the other pool got this one's
// header and logs.
#include <media/os.h>
#include <tests/conformance/exercise.h>

#include <fstream>
#include <iterator>

namespace stele::testing {
namespace {

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Renames `from` to `to` after the k-th open.
class renaming final : public media::os::syscall_hook {
 public:
  renaming(unsigned k, std::string from, std::string to)
      : k_(k), from_(std::move(from)), to_(std::move(to)) {
    media::os::install_hook(this);
  }
  ~renaming() override { media::os::install_hook(nullptr); }
  renaming(const renaming&) = delete;
  renaming& operator=(const renaming&) = delete;
  void after(const media::os::request& r) noexcept override {
    if (r.what != media::os::call::open || ++opens_ != k_) return;
    std::filesystem::rename(from_, to_);
  }

 private:
  const unsigned k_;
  unsigned opens_ = 0;
  const std::string from_, to_;
};

void make(const std::string& path, std::size_t size, std::uint64_t texts) {
  auto p = open_pool<texts_root>(path, {.create_size = size, .engine = {.media = "file"}});
  for (std::uint64_t n = 0; n < texts; ++n)
    ASSERT_TRUE(succeeds(p.update([&](texts_root& r) { put_text(r, n); })));
}

TEST(renamed_pool, gets_nothing_of_the_one_that_had_its_name) {
  scratch_directory dir;
  const std::string path = dir.file("pool"), other = dir.file("other"), kept = dir.file("kept");
  for (unsigned k = 1; k <= 4; ++k) {
    SCOPED_TRACE("after open " + std::to_string(k));
    for (const std::string& old : {path, other, kept}) std::filesystem::remove(old);
    make(path, 1 << 20, 5);
    make(other, 2 << 20, 3);
    std::filesystem::create_hard_link(path, kept);
    const std::string before = bytes_of(other);
    {
      const renaming now(k, other, path);
      auto p = pool<texts_root>::open(path, {.engine = {.media = "file"}});
      if (p) {
        EXPECT_TRUE(succeeds(p->update([](texts_root& r) { put_text(r, 5); })));
        const auto closed = p->close();
        if (std::filesystem::exists(other)) {  // there are fewer opens than k
          EXPECT_TRUE(succeeds(closed));
        } else {
          EXPECT_TRUE(fails_with(closed, errc::read_only)) << "it says that the name is another's";
        }
      }
    }
    if (std::filesystem::exists(other)) continue;  // there are fewer opens than k
    EXPECT_TRUE(bytes_of(path) == before) << "something was written to the other pool";
    EXPECT_EQ(expect_whole(kept, {.engine = {.media = "file"}}, {.acknowledged = 6, .tried = 6}),
              6u);
  }
}

}  // namespace
}  // namespace stele::testing
