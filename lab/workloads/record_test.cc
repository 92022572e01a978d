// Recorded runs: the same tape every time, each thread in its own log, operations marked; and what
// the mechanism base writes.
#include <gtest/gtest.h>
#include <workloads/record.h>

#include <map>
#include <optional>
#include <set>

namespace stele::workloads {
namespace {

using media::tape_op;

recording_options small(unsigned threads) {
  recording_options r;
  r.mechanism = "base";
  r.content.keys = 64;
  r.operations = 60;
  r.threads = threads;
  r.dir = ::testing::TempDir();
  return r;
}

result<std::unique_ptr<media::tape_writer>> in_memory(const media::tape_options& shape) {
  return media::tape_writer::to_memory(shape);
}

TEST(record, a_run_gives_the_same_events_again) {
  recording_options r = small(3);
  r.record_bytes = false;  // a pool's id is random
  const auto one = record(r, in_memory), other = record(r, in_memory);
  ASSERT_TRUE(one) << one.error().message;
  ASSERT_TRUE(other);
  ASSERT_EQ((*one)->memory().size(), (*other)->memory().size());
  EXPECT_TRUE(std::ranges::equal((*one)->memory(), (*other)->memory()));
}

TEST(record, threads_have_logs_of_their_own_and_operations_are_marked) {
  const auto tape = record(small(3), in_memory);
  ASSERT_TRUE(tape) << tape.error().message;
  auto reader = media::tape_reader::from_memory((*tape)->memory());
  std::set<unsigned> writers;
  std::uint64_t begun = 0, ended = 0, commits = 0;
  while (auto e = *reader->next()) {
    if (e->op == tape_op::invoked) {
      EXPECT_EQ(e->address, begun++);
    } else if (e->op == tape_op::returned) {
      EXPECT_EQ(e->address, ended++);
    }
    if (begun == ended || e->op != tape_op::flush) continue;
    writers.insert(e->thread);
    commits += e->tag == media::tape_tag::commit_record;
  }
  EXPECT_EQ(begun, 60u);
  EXPECT_EQ(ended, 60u);
  EXPECT_EQ(writers.size(), 3u);
  EXPECT_EQ(commits, 2 * 60u) << "a commit line and its cut for each";
}

// In an operation nothing is of another log: what is not of the thread's own is of no log.
TEST(record, marks_name_the_log_of_the_thread_that_runs_the_operation) {
  for (const char* mechanism : {"base", "default", "redo", "undo", "log_structured"}) {
    SCOPED_TRACE(mechanism);
    recording_options r = small(3);
    r.mechanism = mechanism;
    const auto tape = record(r, in_memory);
    ASSERT_TRUE(tape) << tape.error().message;
    auto reader = media::tape_reader::from_memory((*tape)->memory());
    const auto no_log = static_cast<unsigned>(reader->header().threads - 1);
    std::map<unsigned, unsigned> operations;  // by thread
    std::optional<unsigned> running;
    unsigned loads = 0;
    while (auto e = *reader->next()) {
      if (e->op == tape_op::returned) {
        EXPECT_EQ(e->thread, running);
        running.reset();
      } else if (e->op == tape_op::invoked) {
        running = e->thread;
        ++operations[e->thread];
      } else if (running && e->thread != no_log) {
        EXPECT_EQ(e->thread, *running);
        loads += e->op == tape_op::load;
      }
    }
    EXPECT_EQ(operations.size(), 3u);
    for (const auto& [thread, count] : operations) EXPECT_EQ(count, 20u);
    EXPECT_GE(loads, 2 * 60u) << "sps loads what it swaps";
  }
}

TEST(record, may_begin_with_the_empty_pool) {
  recording_options r = small(1);
  const auto filled = record(r, in_memory);
  r.record_set_up = true;
  const auto whole = record(r, in_memory);
  ASSERT_TRUE(filled && whole);
  EXPECT_GT((*whole)->events(), (*filled)->events());
}

TEST(record, refuses_what_there_is_not) {
  recording_options r = small(1);
  r.mechanism = "nonesuch";
  EXPECT_FALSE(record(r, in_memory));
  r = small(1);
  r.dir = "/nonesuch";
  EXPECT_FALSE(record(r, in_memory));
}

}  // namespace
}  // namespace stele::workloads
