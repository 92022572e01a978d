// A pool whose process was killed: the system may let go of its lock a moment after its end was
// told (gVisor; Linux while another process reads /proc/PID/smaps: 70 ms were seen).
#include <fcntl.h>
#include <format/pool_layout.h>
#include <stele/field.h>
#include <sys/wait.h>
#include <tests/conformance/pools.h>
#include <unistd.h>

#include <chrono>
#include <thread>

namespace stele::testing {
namespace {

struct counted {
  field<std::uint64_t> n;
};

pid_t ended_process() {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(0);
  ::waitpid(pid, nullptr, 0);
  return pid;
}

// Of the file, as another process would hold it.
class held_lock {
 public:
  explicit held_lock(const std::string& path) : fd_(::open(path.c_str(), O_RDWR | O_CLOEXEC)) {
    struct flock whole = {};
    whole.l_type = F_WRLCK;
    EXPECT_EQ(::fcntl(fd_, F_OFD_SETLK, &whole), 0);
  }
  ~held_lock() { ::close(fd_); }
  held_lock(const held_lock&) = delete;
  held_lock& operator=(const held_lock&) = delete;

  void name_owner(pid_t pid) const {
    const auto word = static_cast<std::uint64_t>(pid);
    EXPECT_EQ(::pwrite(fd_, &word, sizeof word, format::owner_offset), ssize_t{sizeof word});
  }

 private:
  const int fd_;
};

class ended_owner : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = pool<counted>::open(path_, {.create_size = 1 << 20});
    ASSERT_TRUE(succeeds(made));
    ASSERT_TRUE(succeeds(made->update([](counted& c) { c.n = 7; })));
    ASSERT_TRUE(succeeds(made->close()));
  }
  scratch_directory dir_;
  const std::string path_ = dir_.file("pool");
};

TEST_F(ended_owner, lets_its_lock_go_a_moment_later) {
  std::optional<held_lock> held(path_);
  held->name_owner(ended_process());
  std::thread end([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    held.reset();
  });
  const auto opened = pool<counted>::open(path_);
  end.join();
  ASSERT_TRUE(succeeds(opened));
  EXPECT_EQ(opened->read([](const counted& c) { return c.n.load(); }).value_or(0), 7u);
}

TEST_F(ended_owner, is_named_where_the_lock_stays) {
  const held_lock held(path_);
  for (const pid_t owner : {ended_process(), ::getppid()}) {
    held.name_owner(owner);
    const auto opened = pool<counted>::open(path_);
    ASSERT_TRUE(fails_with(opened, errc::in_use));
    EXPECT_NE(opened.error().message.find("process " + std::to_string(owner)), std::string::npos)
        << opened.error().message;
  }
}

}  // namespace
}  // namespace stele::testing
