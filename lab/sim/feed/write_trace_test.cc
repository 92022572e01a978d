// The writes and barriers of a tape at the controller, and the overlap of operations of several
// threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sim/feed/write_trace.h>

#include <string>

namespace stele::sim {
namespace {

using media::tape_op;
using testing::ElementsAre;

constexpr media::tape_options shape{.pool_size = 1 << 16,
                                    .home_offset = 3 * 4096,
                                    .log_offset = 4096,
                                    .log_size = 4096,
                                    .commit_offset = 64,
                                    .commit_size = 128};
constexpr std::uint64_t home = shape.home_offset;

class taped {
 public:
  taped& event(tape_op op, unsigned thread, std::uint64_t address, std::uint32_t length) {
    const media::tape_writer::scoped_lock lock(*tape_);
    tape_->event(op, thread, address, length);
    return *this;
  }
  // One operation: a record, a commit line, two lines of home, each with its fence.
  taped& operation(std::uint64_t number, unsigned thread, std::uint64_t line) {
    const std::uint64_t log = 4096 * (1 + thread);
    event(tape_op::invoked, thread, number, 0);
    event(tape_op::flush, thread, log + 192, 64).event(tape_op::fence, thread, 0, 0);
    event(tape_op::flush, thread, log + 64, 64).event(tape_op::fence, thread, 0, 0);
    event(tape_op::flush, thread, home + 64 * line, 128).event(tape_op::fence, thread, 0, 0);
    return event(tape_op::returned, thread, number, 0);
  }
  // Each step as a word: the thread, then w and the line, | for a barrier, ( and ) for the begin
  // and end of an operation.
  std::string steps(bool overlap = true, bool truncations = true) {
    EXPECT_TRUE(tape_->finish());
    write_trace trace(std::move(*media::tape_reader::from_memory(tape_->memory())), overlap);
    EXPECT_TRUE(truncations || trace.leave_out_truncations());
    std::string text;
    for (;;) {
      const auto s = trace.next();
      EXPECT_TRUE(s) << s.error().message;
      if (!s || !*s) return text;
      const trace_step& step = **s;
      if (step.what == trace_step::kind::write)
        text += std::to_string(step.source) + "w" + std::to_string(step.address / 64) + " ";
      if (step.what == trace_step::kind::barrier) text += std::to_string(step.source) + "| ";
      if (step.what == trace_step::kind::began) text += "(" + std::to_string(step.number) + " ";
      if (step.what == trace_step::kind::ended) text += ")" + std::to_string(step.number) + " ";
    }
  }

  // The numbers of the writes, in order.
  std::vector<std::uint64_t> numbers() {
    EXPECT_TRUE(tape_->finish());
    write_trace trace(std::move(*media::tape_reader::from_memory(tape_->memory())));
    std::vector<std::uint64_t> all;
    for (auto s = trace.next(); s && *s; s = trace.next())
      if ((*s)->what == trace_step::kind::write) all.push_back((*s)->number);
    return all;
  }

 private:
  std::unique_ptr<media::tape_writer> tape_ = media::tape_writer::to_memory(shape);
};

TEST(write_trace, a_fence_without_writes_is_no_barrier) {
  taped t;
  t.event(tape_op::fence, 0, 0, 0).event(tape_op::store, 0, home, 8).event(tape_op::fence, 0, 0, 0);
  t.event(tape_op::flush, 0, home + 60, 8)
      .event(tape_op::fence, 1, 0, 0)
      .event(tape_op::fence, 0, 0, 0)
      .event(tape_op::fence, 0, 0, 0);
  EXPECT_EQ(t.steps(), "0w192 0w193 0| ");
}

TEST(write_trace, streams_and_bulk_persistence_write_lines) {
  taped t;
  t.event(tape_op::stream, 0, home, 128)
      .event(tape_op::fence, 0, 0, 0)
      .event(tape_op::bulk, 0, home + 128, 64);
  EXPECT_EQ(t.steps(), "0w192 0w193 0| 0w194 0| ");
}

// D6
TEST(write_trace, operations_of_two_threads_take_turns_barrier_by_barrier) {
  taped t;
  t.operation(0, 0, 0).operation(1, 1, 4);
  EXPECT_EQ(t.steps(),
            "(0 0w67 0| (1 1w131 1| 0w65 0| 1w129 1| 0w192 0w193 0| 1w196 1w197 1| )0 )1 ");
}

TEST(write_trace, operations_that_share_a_line_or_a_thread_do_not_overlap) {
  taped lines, thread;
  lines.operation(0, 0, 0).operation(1, 1, 1);
  EXPECT_EQ(lines.steps(),
            "(0 0w67 0| 0w65 0| 0w192 0w193 0| )0 (1 1w131 1| 1w129 1| 1w193 1w194 1| )1 ");
  thread.operation(0, 0, 0).operation(1, 0, 4);
  EXPECT_EQ(thread.steps(),
            "(0 0w67 0| 0w65 0| 0w192 0w193 0| )0 (1 0w67 0| 0w65 0| 0w196 0w197 0| )1 ");
}

TEST(write_trace, what_is_outside_of_operations_overlaps_with_nothing) {
  taped t;
  t.operation(0, 0, 0)
      .event(tape_op::flush, 1, home + 640, 8)
      .event(tape_op::fence, 1, 0, 0)
      .operation(1, 1, 4);
  EXPECT_EQ(
      t.steps(),
      "(0 0w67 0| 0w65 0| 0w192 0w193 0| )0 1w202 1| (1 1w131 1| 1w129 1| 1w196 1w197 1| )1 ");
}

TEST(write_trace, without_overlap_the_order_is_the_tapes) {
  taped t;
  t.operation(0, 0, 0).operation(1, 1, 4);
  EXPECT_EQ(t.steps(false),
            "(0 0w67 0| 0w65 0| 0w192 0w193 0| )0 (1 1w131 1| 1w129 1| 1w196 1w197 1| )1 ");
}

// The log of a thread has two slots: commit lines at 64 and 128, records at 192 and 2112.
TEST(write_trace, truncations_are_left_out_on_demand_with_their_barriers) {
  const auto transactions = [](taped& t) {
    const auto flush = [&](std::uint64_t at) {
      t.event(tape_op::flush, 0, at, 8).event(tape_op::fence, 0, 0, 0);
    };
    t.event(tape_op::invoked, 0, 7, 0);
    for (const std::uint64_t slot : {0, 1, 0}) {
      const std::uint64_t commit = 4096 + 64 + 64 * slot;
      flush(4096 + 192 + 1920 * slot), flush(commit), flush(home), flush(commit);
    }
    t.event(tape_op::returned, 0, 7, 0);
  };
  taped all, some;
  transactions(all), transactions(some);
  EXPECT_EQ(all.steps(),
            "(7 0w67 0| 0w65 0| 0w192 0| 0w65 0| 0w97 0| 0w66 0| 0w192 0| 0w66 0| "
            "0w67 0| 0w65 0| 0w192 0| 0w65 0| )7 ");
  EXPECT_EQ(some.steps(true, false),
            "(7 0w67 0| 0w65 0| 0w192 0| 0w97 0| 0w66 0| 0w192 0| 0w67 0| 0w65 0| 0w192 0| )7 ");
}

TEST(write_trace, an_event_writes_the_lines_that_it_touches) {
  const auto lines = [](tape_op op, std::uint64_t address, std::uint32_t length) {
    return lines_written_by({op, media::tape_tag::none, 0, length, address, {}}).count;
  };
  EXPECT_EQ(lines(tape_op::flush, 64, 0), 0u);
  EXPECT_EQ(lines(tape_op::flush, 63, 2), 2u);
  EXPECT_EQ(lines(tape_op::store, 63, 2), 0u);
}

TEST(write_trace, writes_keep_their_numbers_on_the_tape) {
  taped t;
  t.operation(0, 0, 0).operation(1, 1, 4);
  EXPECT_THAT(t.numbers(), ElementsAre(0, 4, 1, 5, 2, 3, 6, 7));
}

media::tape_header header_with_commit_lines() {
  media::tape_header h{};
  h.pool_size = 1 << 16, h.log_offset = 4096, h.log_size = 4096, h.home_offset = 3 * 4096;
  h.commit_offset = 64, h.commit_size = 128;
  return h;
}

TEST(write_trace, each_slot_of_a_log_is_a_log_to_the_controller) {
  media::tape_header h = header_with_commit_lines();
  const auto made = log_ranges_of(h);
  ASSERT_TRUE(made) << made.error().message;
  const auto& r = *made;
  ASSERT_EQ(r.size(), 4u);
  EXPECT_EQ(r[1].commit_begin, 4096u + 128);
  EXPECT_EQ(r[1].commit_end, r[0].records_begin);
  EXPECT_EQ(r[0].records_end - r[0].records_begin, 1920u);
  EXPECT_EQ(r[1].records_begin, r[0].records_end);
  EXPECT_EQ(r[2].commit_begin, 2 * 4096u + 64);
  EXPECT_LE(r[3].records_end, h.home_offset);
}

// D2. Its lines are a log's all the same.
TEST(write_trace, a_log_without_commit_lines_is_one_range) {
  media::tape_header h = header_with_commit_lines();
  h.commit_size = h.commit_offset = 0;
  const auto made = log_ranges_of(h);
  ASSERT_TRUE(made) << made.error().message;
  ASSERT_EQ(made->size(), 2u);
  EXPECT_EQ((*made)[1].records_begin, 2u * 4096);
  EXPECT_EQ((*made)[1].records_end, h.home_offset);
  EXPECT_FALSE((*made)[1].has_commits());
  h.home_offset = h.pool_size;
  EXPECT_TRUE(log_ranges_of(h)->empty()) << "the logs hold the data itself";
}

TEST(write_trace, a_header_whose_logs_cannot_be_is_an_error) {
  media::tape_header h = header_with_commit_lines();
  ASSERT_TRUE(log_ranges_of(h));
  const auto refused = [&](std::uint64_t media::tape_header::* field, std::uint64_t value) {
    media::tape_header wrong = h;
    wrong.*field = value;
    const auto r = log_ranges_of(wrong);
    return !r && r.error().code == errc::corrupt;
  };
  EXPECT_TRUE(refused(&media::tape_header::log_offset, 4 * 4096));
  EXPECT_TRUE(refused(&media::tape_header::home_offset, std::uint64_t{1} << 40));
  EXPECT_TRUE(refused(&media::tape_header::home_offset, h.pool_size + 64));
  EXPECT_TRUE(refused(&media::tape_header::log_size, 256));
  EXPECT_TRUE(refused(&media::tape_header::log_size, 4095));
  h.log_size = ~std::uint64_t{0} - 63;
  EXPECT_TRUE(log_ranges_of(h)->empty()) << "no log fits";
}

TEST(write_trace, a_tape_that_was_cut_off_is_an_error) {
  auto tape = media::tape_writer::to_memory(shape);
  {
    const media::tape_writer::scoped_lock lock(*tape);
    tape->event(tape_op::flush, 0, home, 64);
  }
  write_trace trace(std::move(*media::tape_reader::from_memory(tape->memory())));
  const auto s = trace.next();
  ASSERT_FALSE(s);
  EXPECT_EQ(s.error().code, errc::corrupt);
}

}  // namespace
}  // namespace stele::sim
