// Read-only file systems and files. Opening returns an error that says what to do; inspection
// works. A file system that becomes read-only under an open pool loses nothing acknowledged.
#include <media/os.h>
#include <sys/stat.h>
#include <tests/conformance/command.h>
#include <tests/conformance/exercise.h>
#include <tests/conformance/own_mounts.h>
#include <tx/inspect.h>

#include <fstream>

namespace stele::testing {
namespace {

namespace os = media::os;

std::uint64_t make_pool(const std::string& path, const std::string& mechanism = "",
                        bool closes = true) {
  auto p = open_pool<texts_root>(path, {.create_size = 384 << 10,
                                        .engine = {.mechanism = mechanism,
                                                   .media = "process",
                                                   .log_size = 4096,
                                                   .log_count = 2,
                                                   .background = false}});
  for (std::uint64_t n = 0; n < 10; ++n)
    EXPECT_TRUE(succeeds(p.update([&](texts_root& r) { put_text(r, n); })));
  if (!closes) std::filesystem::copy_file(path, path + ".left");
  EXPECT_TRUE(succeeds(p.close()));
  if (!closes) std::filesystem::rename(path + ".left", path);
  return 10;
}

void expect_can_be_looked_at(const std::string& path) {
  EXPECT_TRUE(succeeds(detail::info_of(path)));
  EXPECT_TRUE(succeeds(detail::check_pool(path)));
  for (const char* const verb : {"info ", "check ", "dump "}) {
    const auto o = run_command(std::string("pool ") + verb + path);
    EXPECT_EQ(o.status, 0) << verb << o.said;
  }
}
void expect_sentence(const std::string& sentence, const std::string& part) {
  EXPECT_NE(sentence.find(part), std::string::npos) << sentence;
}

TEST(read_only, a_file_system_is_looked_at_and_not_opened) {
  scratch_directory dir;
  on_own_file_system(dir.file(""), "4m", [&] {
    const std::string path = dir.file("pool"), left = dir.file("left_open"),
                      log = dir.file("log_structured");
    make_pool(path);
    make_pool(left, "", false);
    make_pool(log, "log_structured", false);
    ASSERT_TRUE(make_read_only(dir.file("")));
    for (const std::string& pool_path : {path, left, log}) {
      expect_can_be_looked_at(pool_path);
      const auto opened = pool<texts_root>::open(pool_path);
      EXPECT_TRUE(fails_with(opened, errc::read_only));
      expect_sentence(opened.error().message,
                      "remount its file system for writing, or look at it with `stele pool info`");
    }
    const auto created = pool<texts_root>::open(dir.file("new"), {.create_size = 384 << 10});
    EXPECT_TRUE(fails_with(created, errc::read_only));
    expect_sentence(created.error().message, "remount it for writing");
    EXPECT_NE(run_command("pool check --repair " + left).status, 0);
  });
}

// The process runs as another user than the file's owner.
TEST(read_only, a_file_of_somebody_else_is_looked_at_if_it_may_be_read) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be somebody else than the file's owner";
  scratch_directory dir;
  const std::string path = dir.file("pool");
  make_pool(path, "", false);
  ::chmod(dir.file("").c_str(), 0755);
  child other([&](const word_sender&) {
    constexpr uid_t nobody = 65534;
    ASSERT_EQ(::chmod(path.c_str(), 0444), 0);
    ASSERT_EQ(::setresuid(nobody, nobody, 0), 0);
    EXPECT_TRUE(succeeds(detail::info_of(path)));
    EXPECT_TRUE(succeeds(detail::check_pool(path)));
    EXPECT_TRUE(succeeds(detail::open_copy_of(path, verification::automatic)));
    const auto opened = pool<texts_root>::open(path);
    EXPECT_TRUE(fails_with(opened, errc::permission));
    expect_sentence(opened.error().message, "give this user the right to write it");
    ASSERT_EQ(::setresuid(0, 0, 0), 0);
    ASSERT_EQ(::chmod(path.c_str(), 0400), 0);
    ASSERT_EQ(::setresuid(nobody, nobody, 0), 0);
    EXPECT_TRUE(fails_with(detail::info_of(path), errc::permission));
    EXPECT_TRUE(fails_with(detail::check_pool(path), errc::permission));
  });
  EXPECT_EQ(other.wait(), 0);
}

// Returns, from the k-th changing call on, the kernel's error for a file system that was made
// read-only after an error.
class turned_read_only final : public os::syscall_hook {
 public:
  explicit turned_read_only(std::uint64_t k) : k_(k) { os::install_hook(this); }
  ~turned_read_only() override { os::install_hook(nullptr); }
  int before(const os::request& r) noexcept override {
    const bool changes = r.what == os::call::write || r.what == os::call::sync ||
                         r.what == os::call::fallocate || r.what == os::call::link;
    return changes && seen_.fetch_add(1) + 1 >= k_ ? EROFS : 0;
  }
  bool hit() const { return seen_ >= k_; }

 private:
  const std::uint64_t k_;
  std::atomic<std::uint64_t> seen_{0};
};

TEST(read_only, a_file_system_that_turns_so_under_a_pool_loses_nothing) {
  scratch_directory dir;
  const std::string path = dir.file("pool");
  const pool_options options{
      .create_size = 384 << 10,
      .engine = {.media = "file", .log_size = 4096, .log_count = 2, .background = false}};
  std::uint64_t k = 1;
  for (bool hit = true; hit && !HasFailure(); ++k) {
    SCOPED_TRACE("from the " + std::to_string(k) + "-th change on");
    std::filesystem::remove(path), std::filesystem::remove(path + ".copy");
    outcome o;
    {
      const turned_read_only now(k);
      o = use(path, options, 0);
      hit = now.hit();
    }
    EXPECT_FALSE(hit && o.closed && o.refused_twice);
    (void)expect_whole(path, options, o);
  }
  EXPECT_GT(k, 20u) << "there are more than that";
}

}  // namespace
}  // namespace stele::testing
