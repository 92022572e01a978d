// A child of fork() beside threads of its parent that are in the middle of something: whatever it
// calls is refused with a sentence and waits for nothing, and what it destroys gives back its
// copies of file and mapping.
#include <stele/snapshot.h>
#include <tests/conformance/child.h>
#include <tests/conformance/pools.h>
#include <unistd.h>

#include <barrier>
#include <fstream>
#include <thread>

// The leak sanitizer asks this. A child has the memory of the parent's threads, and not their
// stacks, which lead to it.
static const pid_t parent = ::getpid();
extern "C" int __lsan_is_turned_off() {
  return static_cast<int>(::getpid() != parent);
}

namespace stele::testing {

namespace {

struct numbers {
  field<std::uint64_t> a, b;
};

bool is_told(const error& why, const std::string& path) {
  return why.code == errc::poisoned && why.message.contains("fork") && why.message.contains(path);
}
template <class T>
bool is_told(const result<T>& r, const std::string& path) {
  return !r && is_told(r.error(), path);
}

// Lines of /proc/self/maps, and descriptors, that name the file.
std::size_t held(const std::string& path) {
  std::size_t count = 0;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) count += line.contains(path);
  for (const auto& fd : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    count += std::filesystem::read_symlink(fd, gone) == path;
  }
  return count;
}

// Runs `work` in a child, which ends within 20 s. Returns its status.
int status_of_child(const std::function<void()>& work) {
  child c([&](const word_sender&) {
    ::alarm(20);
    work();
  });
  return c.wait();
}

class forks : public ::testing::TestWithParam<const char*> {
 protected:
  pool<numbers> open(std::size_t logs = 0) {
    return open_pool<numbers>(
        path_,
        {.create_size = 8 << 20,
         .engine = {.media = GetParam(), .log_count = logs, .defer_ordered = deferral::always}});
  }
  scratch_directory dir_;
  const std::string path_ = dir_.file("pool");
};

// The child calls everything while other threads of its parent are in an update and in a backup.
TEST_P(forks, a_child_waits_for_no_thread_of_its_parent) {
  auto p = open();
  auto then = take_snapshot(p);
  ASSERT_TRUE(succeeds(then));
  std::barrier inside(2), done(2), copying(2);
  std::thread copier([&] {
    const auto copied = p.backup(path_ + ".cancelled", [&](std::uint64_t, std::uint64_t) {
      copying.arrive_and_wait();
      copying.arrive_and_wait();
      return false;
    });
    EXPECT_TRUE(fails_with(copied, errc::cancelled));
  });
  copying.arrive_and_wait();
  std::atomic<bool> held_up{false};
  std::thread other([&] {
    EXPECT_TRUE(succeeds(p.update([&](numbers& n) {
      n.a = 7;
      if (held_up.exchange(true)) return;
      inside.arrive_and_wait();
      done.arrive_and_wait();
    })));
  });
  inside.arrive_and_wait();
  EXPECT_EQ(
      status_of_child([&] {
        EXPECT_TRUE(is_told(p.update([](numbers& n) { n.b = 1; }), path_));
        EXPECT_TRUE(is_told(p.update([](numbers& n) { n.b = 1; }, durability::ordered), path_));
        EXPECT_TRUE(is_told(p.read([](const numbers& n) { return n.a.load(); }), path_));
        EXPECT_TRUE(is_told(then->read([] {}), path_));
        EXPECT_TRUE(is_told(take_snapshot(p), path_));
        EXPECT_TRUE(is_told(p.sync(), path_));
        EXPECT_TRUE(is_told(p.grow(16 << 20), path_));
        EXPECT_TRUE(is_told(p.check(), path_));
        EXPECT_TRUE(is_told(p.backup(path_ + ".copy"), path_));
        (void)p.counters();
        (void)p.space();
        bool told = false;
        p.when_durable(p.committed(), [&](const result<>& how) { told = is_told(how, path_); });
        EXPECT_TRUE(told);
        {
          const auto gone = std::move(then);
        }
        EXPECT_TRUE(succeeds(p.close()));
        {
          const auto gone = std::move(p);
        }
        EXPECT_EQ(held(path_), 0u);
        EXPECT_TRUE(fails_with(pool<numbers>::open(path_), errc::in_use));
      }),
      0);
  done.arrive_and_wait();
  other.join();
  copying.arrive_and_wait();
  copier.join();
  {
    const auto gone = std::move(then);
  }
  EXPECT_TRUE(succeeds(p.close()));
}

// A thread whose objects are destroyed when the child ends by exit().
TEST_P(forks, a_child_ends_as_a_process_without_pools) {
  auto p = open();
  // This thread is known. Beside the update below its read would wait for the end of that.
  EXPECT_TRUE(succeeds(p.read([](const numbers& n) { return n.a.load(); })));
  std::barrier inside(2), done(2);
  std::atomic<bool> held_up{false};
  std::thread other([&] {
    EXPECT_TRUE(succeeds(p.update([&](numbers& n) {
      n.a = 7;
      if (held_up.exchange(true)) return;
      inside.arrive_and_wait();
      done.arrive_and_wait();
    })));
  });
  inside.arrive_and_wait();
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::alarm(20);
    std::thread([] {}).join();  // one that may have the place of a thread of the parent
    ::exit(0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
  done.arrive_and_wait();
  other.join();
}

// The forking thread is in an update, and its child goes on with the body.
TEST_P(forks, a_child_born_in_an_update_cannot_go_on_with_it) {
  auto p = open();
  pid_t pid = -1;
  std::string refused;
  const auto done = p.update([&](numbers& n) {
    n.a = 1;
    pid = ::fork();
    if (pid != 0) return;
    ::alarm(20);
    const auto is_refused = [&](auto&& call) {
      try {
        call();
        return false;
      } catch (const failure& f) {
        return is_told(f.why(), path_);
      }
    };
    if (!is_refused([&] { n.b = 2; })) ::_exit(1);
    if (!is_refused([&] { (void)n.a.load(); })) ::_exit(2);
    if (!is_refused([&] { (void)n.b.load(); })) ::_exit(3);
    if (!is_refused([&] { (void)make<numbers>(); })) ::_exit(4);
  });
  if (pid == 0) {
    if (!is_told(done, path_)) ::_exit(5);
    {
      const auto gone = std::move(p);
    }
    ::_exit(held(path_) == 0 ? 0 : 6);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(succeeds(done));
  EXPECT_EQ(p.read([](const numbers& n) { return n.a.load(); }).value_or(0), 1u);
  EXPECT_TRUE(succeeds(p.close()));
  auto again = open();
  EXPECT_EQ(again.read([](const numbers& n) { return n.a.load() + 10 * n.b.load(); }).value_or(0),
            1u);
}

TEST_P(forks, a_child_born_in_a_report_of_a_backup_leaves_the_copy_to_its_parent) {
  auto p = open();
  ASSERT_TRUE(succeeds(p.update([](numbers& n) { n.a = 1; })));
  pid_t pid = -1;
  const auto done = p.backup(path_ + ".copy", [&](std::uint64_t, std::uint64_t) {
    if (pid == -1) pid = ::fork();
    return true;
  });
  if (pid == 0) ::_exit(is_told(done, path_) ? 0 : 1);
  int status = -1;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(succeeds(done));
  const auto copy = pool<numbers>::open(path_ + ".copy");
  ASSERT_TRUE(succeeds(copy));
  EXPECT_EQ(copy->read([](const numbers& n) { return n.a.load(); }).value_or(0), 1u);
}

INSTANTIATE_TEST_SUITE_P(all, forks, ::testing::Values("process", "file", "adr"));

// What the report of a backup calls must not wait for the end of the backup.
TEST(reports, a_report_neither_waits_for_its_backup_nor_ends_the_pool) {
  ::alarm(20);  // a call that waits for the backup waits for itself
  scratch_directory dir;
  const std::string path = dir.file("pool");
  auto p = open_pool<numbers>(path, {.create_size = 8 << 20});
  unsigned calls = 0;
  const auto done = p.backup(path + ".copy", [&](std::uint64_t, std::uint64_t) {
    if (calls++ != 0) return true;
    EXPECT_TRUE(fails_with(p.grow(16 << 20), errc::nested));
    EXPECT_TRUE(fails_with(p.check(), errc::nested));
    EXPECT_TRUE(fails_with(p.backup(path + ".other"), errc::nested));
    EXPECT_TRUE(fails_with(p.close(), errc::in_use));
    EXPECT_TRUE(succeeds(p.update([](numbers& n) { n.a = 5; })));
    return true;
  });
  EXPECT_TRUE(succeeds(done));
  EXPECT_NE(calls, 0u);
  EXPECT_EQ(p.read([](const numbers& n) { return n.a.load(); }).value_or(0), 5u);
  EXPECT_TRUE(succeeds(p.close()));
  ::alarm(0);
}

}  // namespace

}  // namespace stele::testing
