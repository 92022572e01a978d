// Backups that went wrong instead of being refused: beside as many snapshots as there may be, while
// another backup ended; of a pool whose header another program had overwritten; and with a report
// that used a pool whose transactions wait for the end of its backup.
#include <stele/snapshot.h>
#include <tests/conformance/pools.h>
#include <tx/open.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

namespace stele::testing {
namespace {

using number = field<std::uint64_t>;

// Where a backup that has ended waits before it gives its place back.
class lock_of_front_end final : public detail::front_end_lock {
 public:
  std::function<void()> at_second;
  bool acquire() noexcept override {
    if (++times_ == 2 && at_second) at_second();
    return true;
  }
  void release() noexcept override {}

 private:
  std::atomic<unsigned> times_ = 0;
};

TEST(refused_backup, has_no_place_for_its_pages) {
  scratch_directory dir;
  static lock_of_front_end lock;
  auto p =
      open_pool<number>(dir.file("pool"), {.create_size = 1 << 20, .engine = {.media = "process"}});
  p.core().set_front_end_lock(&lock);
  std::vector<pool_snapshot> held;
  for (unsigned i = 0; i < 15; ++i) {
    auto s = take_snapshot(p);
    ASSERT_TRUE(succeeds(s));
    held.push_back(std::move(*s));
  }
  result<> beside;
  lock.at_second = [&] { beside = p.backup(dir.file("second")); };
  EXPECT_TRUE(succeeds(p.backup(dir.file("first"))));
  EXPECT_TRUE(fails_with(beside, errc::in_use));
  EXPECT_TRUE(succeeds(p.backup(dir.file("third"))));
  held.clear();
  EXPECT_TRUE(succeeds(p.update([](number& n) { n = 1; })));
}

TEST(refused_backup, is_of_a_pool_whose_header_has_changed) {
  scratch_directory dir;
  auto p = open_pool<number>(
      dir.file("pool"),
      {.create_size = 1 << 20, .layout = "numbers", .engine = {.media = "process"}});
  for (const bool grown : {false, true}) {
    if (grown) {
      ASSERT_TRUE(succeeds(p.grow(2 << 20)));
    }
    EXPECT_TRUE(succeeds(p.backup(dir.file(grown ? "grown copy" : "copy"))));
    const auto put = [&](char c) {
      std::fstream file(dir.file("pool"), std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(offsetof(format::pool_header, layout));
      file.put(c);
    };
    put('N');
    EXPECT_TRUE(fails_with(p.backup(dir.file("other")), errc::corrupt));
    EXPECT_TRUE(
        fails_with(detail::back_up_used_part(p.core(), dir.file("other"), {}), errc::corrupt));
    EXPECT_FALSE(std::filesystem::exists(dir.file("other")));
    put('n');
  }
}

class report_of_a_backup : public ::testing::TestWithParam<concurrency> {};

TEST_P(report_of_a_backup, is_told_that_transactions_wait_for_its_end) {
  scratch_directory dir;
  auto p =
      open_pool<number>(dir.file("pool"), {.create_size = 1 << 20,
                                           .policy = GetParam(),
                                           .engine = {.mechanism = "none", .media = "process"}});
  const auto change = [&] { return p.update([](number& n) { n += 1; }); };
  ASSERT_TRUE(succeeds(change()));
  unsigned reports = 0;
  ::alarm(60);  // it waited for itself for ever
  EXPECT_TRUE(succeeds(p.backup(dir.file("copy"), [&](std::uint64_t, std::uint64_t) {
    ++reports;
    EXPECT_TRUE(fails_with(change(), errc::nested));
    EXPECT_TRUE(fails_with(p.read([](const number& n) { return n.load(); }), errc::nested));
    EXPECT_GT(p.space().size_bytes, 0u);
    return true;
  })));
  ::alarm(0);
  EXPECT_NE(reports, 0u);
  EXPECT_TRUE(succeeds(change()));
  EXPECT_EQ(p.read([](const number& n) { return n.load(); }).value_or(9), 2u);
}

INSTANTIATE_TEST_SUITE_P(of, report_of_a_backup,
                         ::testing::Values(concurrency::single_writer, concurrency::external),
                         [](const auto& one) { return name_of(one.param); });

}  // namespace
}  // namespace stele::testing
