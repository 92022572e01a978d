// The statistics of a log: what is counted where.
#include <gtest/gtest.h>
#include <tx/transaction/statistics.h>

namespace stele::detail {
namespace {

TEST(statistics, counts_each_end_of_a_transaction_by_its_kind) {
  statistics s;
  s.count_commit();
  s.count_commit(7);
  s.count_read();
  for (int i = 0; i < 3; ++i) s.count_abort();
  s.count_stored_in_place(24);
  pool_counters c;
  c.commits = 100;
  s.add_to(c);
  EXPECT_EQ(c.commits, 102u) << "added to what other logs have";
  EXPECT_EQ(c.reads, 1u);
  EXPECT_EQ(c.aborts, 3u);
  EXPECT_EQ(c.stored_bytes, 24u);
}

TEST(statistics, newest_is_the_last_commit_with_a_record) {
  statistics s;
  EXPECT_EQ(s.newest(), 0u);
  s.count_commit(7);
  s.count_commit();
  EXPECT_EQ(s.newest(), 7u);
}

}  // namespace
}  // namespace stele::detail
