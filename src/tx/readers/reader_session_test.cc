// A pool that is open for reading has no engine: what needs one is refused or has nothing to do.
// tests/conformance/readers_test.cc has what a reader sees.
#include <base/scratch_directory.h>
#include <gtest/gtest.h>
#include <stele/pool.h>
#include <tx/open.h>
#include <tx/runtime.h>

#include <cstdint>
#include <string>

namespace stele::testing {
namespace {

struct counters {
  field<std::uint64_t> a;
};

class reader_session : public ::testing::Test {
 protected:
  reader_session() {
    auto writer = pool<counters>::open(path_, {.create_size = 1u << 20});
    EXPECT_TRUE(writer.has_value());
    EXPECT_TRUE(writer->update([](counters& r) { r.a = 7; }).has_value());
    EXPECT_EQ(writer->core().reading(), nullptr);
  }

  static void refused(const result<>& r) {
    ASSERT_FALSE(r.has_value());
    EXPECT_EQ(r.error().code, errc::read_only) << r.error().message;
    EXPECT_NE(r.error().message.find("open for reading only"), std::string::npos);
  }

  base::scratch_directory directory_;
  const std::string path_ = directory_.file("pool");
};

TEST_F(reader_session, refuses_what_needs_a_mechanism) {
  auto reads = pool<counters>::open_read_only(path_);
  ASSERT_TRUE(reads.has_value()) << reads.error().message;
  ASSERT_NE(reads->core().reading(), nullptr);
  refused(reads->grow(2u << 20));
  refused(reads->check());
  refused(reads->backup(directory_.file("copy")));  // no process has the pool open
  refused(reads->update([](counters& r) { r.a = 8; }));
  const auto begun = detail::begin_maintenance(reads->core(), "changed");
  ASSERT_FALSE(begun.has_value());
  EXPECT_EQ(begun.error().code, errc::read_only);
  EXPECT_EQ(reads->read([](const counters& r) { return r.a.load(); }).value_or(0), 7u);
}

TEST_F(reader_session, has_no_commits_that_wait) {
  auto reads = pool<counters>::open_read_only(path_);
  ASSERT_TRUE(reads.has_value()) << reads.error().message;
  EXPECT_EQ(reads->read([](const counters& r) { return r.a.load(); }).value_or(0), 7u);
  EXPECT_TRUE(reads->sync().has_value());
  unsigned calls = 0;
  reads->when_durable({}, [&](const result<>& how) {
    EXPECT_TRUE(how.has_value());
    ++calls;
  });
  EXPECT_EQ(calls, 1u);
  {
    const detail::pool_pause paused = reads->core().pause();
  }
  const pool_counters c = reads->counters();
  EXPECT_EQ(c.commits, 0u);
  EXPECT_EQ(c.fences, 0u);
  EXPECT_GE(c.reads, 1u);
  EXPECT_TRUE(reads->close().has_value());
  EXPECT_TRUE(reads->close().has_value());
}

}  // namespace
}  // namespace stele::testing
