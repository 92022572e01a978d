// A transaction that reads much ends, although other threads commit all the time and each commit
// changes something that it has read.
#include <stele/array.h>
#include <tests/conformance/pools.h>

#include <atomic>
#include <thread>

namespace stele::testing {
namespace {

constexpr std::uint64_t accounts = 20'000, amount = 100;
// A transaction runs alone after 16 lost attempts, unless another one does so just then.
constexpr unsigned most_attempts = 200;

struct bank {
  using pool_resident = void;
  array<std::uint64_t> money;
  field<std::uint64_t> sum;
};
std::uint64_t total(const bank& b) {
  std::uint64_t all = 0;
  for (std::uint64_t i = 0; i < accounts; ++i) all += b.money[i].load();
  return all;
}

class starvation : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(succeeds(p_.update([](bank& b) { b.money.resize(accounts); })));
    for (std::uint64_t from = 0; from < accounts; from += 1000)
      ASSERT_TRUE(succeeds(p_.update([&](bank& b) {
        for (std::uint64_t i = from; i < from + 1000; ++i) b.money[i] = amount;
      })));
  }
  void transfer_until(const std::atomic<bool>& stop, std::uint64_t seed) {
    base::rng random(seed);
    while (!stop.load()) {
      const std::uint64_t from = random.below(accounts), to = random.below(accounts);
      EXPECT_TRUE(succeeds(p_.update([&](bank& b) {
        if (b.money[from].load() == 0) return;
        b.money[from] -= 1;
        b.money[to] += 1;
      })));
    }
  }
  // Runs work() beside threads that never rest.
  template <class Work>
  void beside_writers(Work&& work) {
    std::atomic<bool> stop{false};
    std::vector<std::jthread> writers;
    for (unsigned i = 0; i < 3; ++i) writers.emplace_back([&, i] { transfer_until(stop, i + 1); });
    work();
    stop = true;
  }

  scratch_directory dir_;
  pool<bank> p_ = open_pool<bank>(dir_.file("pool"), setting{GetParam(), "adr"}.options(4 << 20));
};

TEST_P(starvation, of_updates_that_read_everything_does_not_occur) {
  beside_writers([&] {
    for (unsigned round = 0; round < 5; ++round) {
      unsigned attempts = 0;
      ASSERT_TRUE(succeeds(p_.update([&](bank& b) {
        ++attempts;
        b.sum = total(b);
      })));
      EXPECT_LT(attempts, most_attempts);
    }
  });
  EXPECT_EQ(p_.read([](const bank& b) { return b.sum.load(); }).value(), accounts * amount);
}

TEST_P(starvation, of_two_such_updates_and_reads_at_once_does_not_occur) {
  beside_writers([&] {
    std::vector<std::jthread> threads;
    for (unsigned i = 0; i < 2; ++i)
      threads.emplace_back([&] {
        for (unsigned round = 0; round < 3; ++round) {
          EXPECT_TRUE(succeeds(p_.update([](bank& b) { b.sum = total(b); })));
          const auto seen = p_.read([](const bank& b) { return total(b); });
          EXPECT_TRUE(succeeds(seen));
          EXPECT_EQ(seen.value_or(0), accounts * amount);
        }
      });
  });
  EXPECT_TRUE(succeeds(p_.check()));
}

TEST_P(starvation, beside_backups_and_checks_does_not_occur) {
  beside_writers([&] {
    std::jthread keeper([&] {
      for (int i = 0; i < 3; ++i) {
        EXPECT_TRUE(succeeds(p_.check()));
        const auto copied = p_.backup(dir_.file("copy" + std::to_string(i)));
        EXPECT_TRUE(copied || copied.error().code == errc::unsupported);
      }
    });
    for (unsigned round = 0; round < 3; ++round)
      EXPECT_TRUE(succeeds(p_.update([](bank& b) { b.sum = total(b); })));
  });
  EXPECT_EQ(p_.read(total).value(), accounts * amount);
}

TEST_P(starvation, of_one_that_throws_or_is_cancelled_leaves_the_others_running) {
  beside_writers([&] {
    EXPECT_TRUE(fails_with(p_.update([](bank& b) {
      b.sum = total(b);
      cancel("enough");
    }),
                           errc::cancelled));
    EXPECT_THROW((void)p_.update([](bank& b) {
      b.sum = total(b);
      throw 1;
    }),
                 int);
    EXPECT_TRUE(succeeds(p_.update([](bank& b) { b.sum = total(b); })));
  });
}

INSTANTIATE_TEST_SUITE_P(all, starvation, ::testing::ValuesIn(all_mechanisms()), plain_name);

}  // namespace
}  // namespace stele::testing
