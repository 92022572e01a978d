// A write to a pool's file fails. close() then returned an error and kept the file's lock, so the
// advice to open the pool again ended in "is open in process N", the program's own; and no sentence
// said what the system had answered.
#include <stele/kv.h>
#include <tests/conformance/pools.h>

#include <media/os.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <system_error>

namespace stele::testing {
namespace {

// While it lives, every write to a pool file fails.
class failing_writes final : public media::os::syscall_hook {
 public:
  explicit failing_writes(int number) : number_(number) { media::os::install_hook(this); }
  ~failing_writes() override { media::os::install_hook(nullptr); }
  failing_writes(const failing_writes&) = delete;
  failing_writes& operator=(const failing_writes&) = delete;
  int before(const media::os::request& r) noexcept override {
    return r.what == media::os::call::write ? number_ : 0;
  }

 private:
  const int number_;
};

unsigned descriptors_of(const std::string& path) {
  unsigned count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code none;
    count += std::filesystem::read_symlink(entry.path(), none) == path;
  }
  return count;
}

class closed_after_failure : public ::testing::TestWithParam<int> {};

TEST_P(closed_after_failure, opens_again_and_says_what_the_system_answered) {
  scratch_directory dir;
  const std::string path = dir.file("pool"), reason = std::generic_category().message(GetParam());
  for (const bool background : {true, false}) {
    SCOPED_TRACE(background ? "with a background thread" : "without");
    std::filesystem::remove(path);
    auto store = kv::open(
        path, {.create_size = 1u << 20, .engine = {.media = "file", .background = background}});
    ASSERT_TRUE(succeeds(store));
    ASSERT_TRUE(succeeds(store->put("a", "1")));
    {
      const failing_writes now(GetParam());
      const auto put = store->put("b", "2");
      ASSERT_TRUE(fails_with(put, errc::poisoned));
      EXPECT_NE(put.error().message.find(reason), std::string::npos) << put.error().message;
    }
    const auto again = store->put("c", "3");
    ASSERT_TRUE(fails_with(again, errc::poisoned));
    EXPECT_NE(again.error().message.find(reason), std::string::npos) << again.error().message;
    const auto closed = store->close();
    ASSERT_TRUE(fails_with(closed, errc::poisoned));
    EXPECT_NE(closed.error().message.find(reason), std::string::npos) << closed.error().message;
    EXPECT_EQ(descriptors_of(path), 1u) << "the file medium's own, until the store is destroyed";
    EXPECT_TRUE(succeeds(store->close())) << "a second close has nothing to do";
    auto reopened = kv::open(path);
    ASSERT_TRUE(succeeds(reopened));
    EXPECT_EQ((*reopened->get("a")).value_or(""), "1");
  }
}

INSTANTIATE_TEST_SUITE_P(reasons, closed_after_failure,
                         ::testing::Values(ENOSPC, EIO, EPERM, EDQUOT),
                         [](const auto& of) { return "errno_" + std::to_string(of.param); });

TEST(pool_opened_twice, names_this_process_when_it_has_the_pool_open) {
  scratch_directory dir;
  auto store = kv::open(dir.file("pool"), {.create_size = 1u << 20});
  ASSERT_TRUE(succeeds(store));
  const auto second = kv::open(dir.file("pool"));
  ASSERT_TRUE(fails_with(second, errc::in_use));
  EXPECT_NE(second.error().message.find("this process"), std::string::npos)
      << second.error().message;
  EXPECT_EQ(second.error().message.find(std::to_string(::getpid())), std::string::npos);
}

}  // namespace
}  // namespace stele::testing
