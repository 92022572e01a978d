// Long reads: a read that each attempt would restart ends, sees one moment, and leaves nothing
// behind. On every mechanism that has them, and on those that have not.
#include <stele/hash_map.h>
#include <stele/string.h>
#include <tests/conformance/pools.h>

#include <atomic>
#include <thread>

namespace stele::testing {
namespace {

constexpr std::uint64_t count = 200;

struct shelf {
  using pool_resident = void;
  field<std::uint64_t> first;
  field<std::uint64_t> filler[600];  // more than a page
  field<std::uint64_t> last;         // equals `first` after every commit
  string text;
  hash_map<std::uint64_t, std::uint64_t> items;  // each has the value of `first`
};

class long_reads : public ::testing::TestWithParam<std::string> {
 protected:
  setting with() const { return {GetParam(), "adr", concurrency::stm}; }
  bool has_long_reads() const { return GetParam() != "log_structured"; }

  // In another thread, as the body may hold a transaction.
  template <class Body>
  void elsewhere(Body&& body) {
    std::thread([&] { EXPECT_TRUE(succeeds(p_.update(body))); }).join();
  }
  // A commit that changes all that a reader loads.
  void change() {
    elsewhere([](shelf& s) {
      s.first = s.first.load() + 1;
      s.last = s.first.load();
      s.text = "text " + std::to_string(s.first.load());
      for (std::uint64_t i = 0; i < count; ++i) s.items.insert_or_assign(i, s.first.load());
    });
  }
  // Each attempt that `conflict` meets loads a line before and a line after it. So it is restarted,
  // unless it sees a moment. The value of `first` that the read ended with.
  result<std::uint64_t> read_across(const std::function<void()>& conflict) {
    attempts_ = 0;
    return p_.read([&](const shelf& s) {
      const std::uint64_t then = s.first;
      ++attempts_;
      if (has_long_reads() || attempts_ < 4) conflict();
      EXPECT_EQ(s.last.load(), then);
      EXPECT_EQ(s.text.str(), "text " + std::to_string(then));
      for (std::uint64_t i = 0; i < count; ++i) {
        const auto found = s.items.find(i);
        EXPECT_TRUE(found != s.items.end() && found->second.load() == then) << i;
      }
      return then;
    });
  }

  scratch_directory dir_;
  pool<shelf> p_ = open_pool<shelf>(dir_.file("pool"), with().options(4u << 20));
  unsigned attempts_ = 0;
};

TEST_P(long_reads, end_although_each_attempt_meets_a_commit) {
  change();
  for (unsigned round = 0; round < 3; ++round) {
    const auto seen = read_across([&] { change(); });
    ASSERT_TRUE(succeeds(seen));
    EXPECT_GE(attempts_, 3u);
    EXPECT_LT(attempts_, 200u);
    const std::uint64_t now = p_.read([](const shelf& s) { return s.first.load(); }).value_or(0);
    EXPECT_EQ(*seen, has_long_reads() ? now - 1 : now);
  }
  EXPECT_TRUE(succeeds(p_.check()));
}

TEST_P(long_reads, see_what_was_erased_and_whose_memory_was_used_again) {
  change();
  const auto seen = read_across([&] {
    elsewhere([](shelf& s) {
      s.first = s.first.load() + 1;
      s.items.clear();
      s.text = std::string(3000, 'x');
    });
    elsewhere([](shelf& s) {
      for (std::uint64_t i = 0; i < count; ++i) s.items.insert(1000 + i, 7);
    });
    change();  // as the next attempt expects it
  });
  ASSERT_TRUE(succeeds(seen));
}

TEST_P(long_reads, go_on_beside_a_backup_and_growth) {
  change();
  const auto seen = read_across([&] {
    change();
    if (!p_.core().has_page_snapshots()) return;  // both would wait for a read that is not long
    std::thread([&] {
      EXPECT_TRUE(succeeds(p_.backup(dir_.file("copy"))));
      const auto grown = p_.grow(8u << 20);
      EXPECT_TRUE(grown || grown.error().code == errc::unsupported);
    }).join();
    change();
  });
  ASSERT_TRUE(succeeds(seen));
  if (!has_long_reads()) return;
  auto copy = open_pool<shelf>(dir_.file("copy"), with().options());
  EXPECT_TRUE(succeeds(copy.check()));
  EXPECT_TRUE(
      succeeds(copy.read([](const shelf& s) { EXPECT_EQ(s.first.load(), s.last.load()); })));
}

TEST_P(long_reads, that_end_by_an_exception_or_a_store_leave_nothing) {
  change();
  EXPECT_THROW((void)p_.read([&](const shelf& s) {
    (void)s.first.load();
    ++attempts_;
    if (has_long_reads() || attempts_ < 4) change();
    (void)s.last.load();
    throw std::runtime_error("enough");
  }),
               std::runtime_error);
  const auto stored = p_.read([&](const shelf& s) {
    (void)s.first.load();
    ++attempts_;
    if (has_long_reads() || attempts_ < 8) change();
    (void)s.last.load();
    const_cast<shelf&>(s).last = 0;
  });
  EXPECT_TRUE(fails_with(stored, errc::read_only));
  EXPECT_FALSE(p_.core().has_page_snapshots());
  change();
  EXPECT_TRUE(succeeds(p_.update([](shelf& s) { s.first = s.last = 1; })));
  EXPECT_TRUE(succeeds(p_.close()));
}

TEST_P(long_reads, keep_the_pool_open_and_are_counted_once) {
  change();
  const auto before = p_.counters();
  const auto seen = read_across([&] {
    change();
    std::thread([&] { EXPECT_TRUE(fails_with(p_.close(), errc::in_use)); }).join();
  });
  ASSERT_TRUE(succeeds(seen));
  EXPECT_EQ(p_.counters().reads, before.reads + 1);
  EXPECT_TRUE(succeeds(p_.close()));
}

TEST_P(long_reads, of_four_threads_see_sums_beside_two_writers) {
  constexpr std::uint64_t amount = 1000;
  ASSERT_TRUE(succeeds(p_.update([](shelf& s) {
    for (std::uint64_t i = 0; i < count; ++i) s.items.insert(i, amount);
  })));
  std::atomic<bool> stop{false};
  std::vector<std::thread> writers, readers;
  for (std::uint64_t w = 0; w < 2; ++w)
    writers.emplace_back([&, w] {
      for (std::uint64_t n = w; !stop; n += 2)
        EXPECT_TRUE(succeeds(p_.update([&](shelf& s) {
          auto &from = s.items.find(n % count)->second, &to = s.items.find(n * 7 % count)->second;
          if (from.load() == 0) return;
          from = from.load() - 1;
          to = to.load() + 1;
        })));
    });
  for (unsigned r = 0; r < 4; ++r)
    readers.emplace_back([&] {
      for (unsigned n = 0; n < 20; ++n) {
        const auto sum = p_.read([](const shelf& s) {
          std::uint64_t total = 0;
          for (unsigned again = 0; again < 20; ++again) {
            total = 0;
            for (std::uint64_t i = 0; i < count; ++i) total += s.items.find(i)->second.load();
          }
          return total;
        });
        EXPECT_EQ(sum.value_or(0), count * amount);
      }
    });
  if (!has_long_reads()) stop = true;  // its readers may starve
  for (auto& t : readers) t.join();
  stop = true;
  for (auto& t : writers) t.join();
  EXPECT_FALSE(p_.core().has_page_snapshots());
}

INSTANTIATE_TEST_SUITE_P(all, long_reads, ::testing::ValuesIn(all_mechanisms()), plain_name);

}  // namespace
}  // namespace stele::testing
