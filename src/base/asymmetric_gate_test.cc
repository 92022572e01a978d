// A thread that closes a gate and one that passes it never miss each other.
#include <base/asymmetric_gate.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>
#include <vector>

namespace stele::base {
namespace {

TEST(asymmetric_gate, is_open_until_it_is_closed) {
  asymmetric_gate<> closed;
  EXPECT_FALSE(closed.look());
  closed.close(true);
  EXPECT_TRUE(closed.look());
  EXPECT_TRUE(closed.peek());
  closed.open();
  EXPECT_FALSE(closed.look());
}

// Refuses membarrier(2) with this error from now on. False: the system has no such filters.
bool refuse_membarrier(unsigned number) {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | number),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{.len = std::size(program), .filter = program};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

// The light fences order nothing by themselves, so a heavy one that is refused must not return.
TEST(asymmetric_gate, is_not_closed_without_its_fence) {
  if (!has_membarrier) GTEST_SKIP() << "the light fences are full ones here";
  EXPECT_EXIT(
      {
        if (!refuse_membarrier(EPERM)) ::_exit(77);
        asymmetric_gate<>().close(true);
        ::_exit(0);
      },
      [](int status) {
        return WIFSIGNALED(status) ? WTERMSIG(status) == SIGABRT : WEXITSTATUS(status) == 77;
      },
      "");
  // Without memory it tries again, and here for ever.
  EXPECT_EXIT(
      {
        if (!refuse_membarrier(ENOMEM)) ::_exit(77);
        ::alarm(1);
        asymmetric_gate<>().close(true);
        ::_exit(0);
      },
      [](int status) {
        return WIFSIGNALED(status) ? WTERMSIG(status) == SIGALRM : WEXITSTATUS(status) == 77;
      },
      "");
}

TEST(asymmetric_gate, is_closed_from_one_state_only) {
  int owner = 0, other = 0;
  asymmetric_gate<int*> gate;
  EXPECT_TRUE(gate.try_close(nullptr, &owner));
  EXPECT_FALSE(gate.try_close(nullptr, &other));
  EXPECT_EQ(gate.exchange(&other), &owner);
  gate.set(nullptr);
  EXPECT_TRUE(gate.try_close(nullptr, &other));
}

TEST(asymmetric_gate, an_announcement_is_seen_until_it_is_withdrawn) {
  announcement<std::uint64_t> epoch{~std::uint64_t{0}};
  EXPECT_EQ(epoch.seen(), ~std::uint64_t{0});
  epoch.announce(7);
  EXPECT_EQ(epoch.seen(), 7u);
  epoch.withdraw(~std::uint64_t{0});
  EXPECT_EQ(epoch.seen(), ~std::uint64_t{0});
}

TEST(asymmetric_gate, wakes_who_found_it_closed) {
  asymmetric_gate<> closed;
  closed.close(true);
  std::jthread waits([&] { closed.wait(true); });
  closed.open();
  closed.notify_all();
}

// Rounds of a test, for a second at most: on busy processors threads wait for each other for long.
class limited_rounds {
 public:
  explicit limited_rounds(int most) : most_(most) {}
  bool next() { return ++round < most_ && std::chrono::steady_clock::now() < end_; }
  int round = 0;

 private:
  int most_;
  std::chrono::steady_clock::time_point end_ =
      std::chrono::steady_clock::now() + std::chrono::seconds(1);
};

void wait_for(const std::atomic<int>& value, int round) {
  for (int looks = 0; value.load(std::memory_order_acquire) < round; ++looks)
    if (looks > 500) ::sched_yield();
}
void linger(int turns) {
  for (int i = 0; i < turns; ++i) std::atomic_signal_fence(std::memory_order_seq_cst);
}

// Again and again one thread announces itself and looks while another closes and looks, both as
// nearly at once as they can. Without the heavy fence both miss each other now and then.
TEST(asymmetric_gate, one_of_two_sees_the_other) {
  constexpr int end = 1 << 30;
  announcement<> inside;
  asymmetric_gate<> closed;
  std::atomic<int> begun{0}, ended{0};
  bool saw_closed = false;
  std::jthread passer([&] {
    for (int round = 1;; ++round) {
      wait_for(begun, round);
      if (begun.load(std::memory_order_relaxed) == end) return;
      linger(3 * (round % 53));
      inside.announce(true);
      saw_closed = closed.look();
      ended.store(round, std::memory_order_release);
    }
  });
  int missed = 0;
  for (limited_rounds r(100'000); r.next();) {
    inside.withdraw();
    closed.open();
    begun.store(r.round, std::memory_order_release);
    linger(13 * (r.round % 61));  // it takes as long until the other thread sees `begun`
    closed.close(true);
    const bool saw_inside = inside.seen();
    wait_for(ended, r.round);
    missed += !saw_inside && !saw_closed;
  }
  begun.store(end, std::memory_order_release);
  EXPECT_EQ(missed, 0);
}

// Threads count inside. The counts are no atomics: while the gate is closed nobody changes them.
TEST(asymmetric_gate, nobody_is_inside_while_it_is_closed) {
  struct alignas(64) passer {
    announcement<> inside;
    std::uint64_t begun = 0, ended = 0;
  };
  passer all[2];
  asymmetric_gate<> closed;
  std::atomic<bool> stop{false};
  std::vector<std::jthread> passers;
  for (passer& p : all)
    passers.emplace_back([&] {
      while (!stop.load(std::memory_order_relaxed)) {
        p.inside.announce(true);
        const bool open = !closed.look();
        if (open) ++p.begun, ++p.ended;
        p.inside.withdraw();
        if (!open) ::sched_yield();
      }
    });
  int torn = 0;
  for (limited_rounds r(1000); r.next();) {
    closed.close(true);
    for (const passer& p : all) {
      p.inside.await_withdrawal(::sched_yield);
      torn += p.begun != p.ended;
    }
    closed.open();
  }
  stop = true;
  passers.clear();
  EXPECT_EQ(torn, 0);
}

}  // namespace
}  // namespace stele::base
