// A system that gives no random bytes, mostly because of a filter of system calls. Creating a pool
// returned an error, but a backup retried for ever while every transaction waited.
#include <media/os.h>
#include <tests/conformance/exercise.h>

namespace stele::testing {
namespace {

// Every call fails, or the first call is interrupted.
class no_random_bytes final : public media::os::syscall_hook {
 public:
  explicit no_random_bytes(int number) : number_(number) { media::os::install_hook(this); }
  ~no_random_bytes() override { media::os::install_hook(nullptr); }
  int before(const media::os::request& r) noexcept override {
    if (r.what != media::os::call::getrandom) return 0;
    return ++draws_ == 1 || number_ != EINTR ? number_ : 0;
  }

 private:
  const int number_;
  unsigned draws_ = 0;
};

TEST(no_random_bytes, are_an_error_of_creation_and_backup) {
  scratch_directory dir;
  const pool_options options{.create_size = 1 << 20};
  auto p = open_pool<texts_root>(dir.file("pool"), options);
  ASSERT_TRUE(succeeds(p.update([](texts_root& r) { put_text(r, 0); })));
  {
    const no_random_bytes now(ENOSYS);
    const auto copied = p.backup(dir.file("copy"));
    ASSERT_TRUE(fails_with(copied, errc::io));
    EXPECT_NE(copied.error().message.find("random"), std::string::npos) << copied.error().message;
    EXPECT_TRUE(fails_with(pool<texts_root>::open(dir.file("new"), options), errc::io));
    EXPECT_TRUE(succeeds(p.update([](texts_root& r) { put_text(r, 1); })));
  }
  EXPECT_FALSE(std::filesystem::exists(dir.file("copy")) ||
               std::filesystem::exists(dir.file("new")));
  const no_random_bytes interrupted(EINTR);
  EXPECT_TRUE(succeeds(p.backup(dir.file("copy"))));
}

}  // namespace
}  // namespace stele::testing
