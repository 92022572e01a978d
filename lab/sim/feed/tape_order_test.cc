// What threads may do on a tape: each kind of mistake is told with the numbers of event and thread,
// by every reader that runs tapes.
#include <gmock/gmock.h>
#include <sim/feed/feed.h>
#include <sim/feed/write_trace.h>

namespace stele::sim {
namespace {

using media::tape_op;
using testing::StartsWith;

struct tape_event {
  tape_op op;
  unsigned thread = 0;
  std::uint64_t argument = 0;
};

std::unique_ptr<media::tape_writer> tape_of(const std::vector<tape_event>& events) {
  auto tape = media::tape_writer::to_memory({});
  for (const tape_event& e : events) tape->event(e.op, e.thread, e.argument, 0);
  EXPECT_TRUE(tape->finish());
  return tape;
}

// The sentences of the feed before a run and during it, and of the trace of writes.
std::vector<std::string> sentences_of(const std::vector<tape_event>& events) {
  const auto tape = tape_of(events);
  auto before = feed::over(tape->memory(), 2), during = feed::over(tape->memory(), 2);
  for (unsigned thread = 0; thread < during->threads(); ++thread)
    while (!during->next(thread).empty()) {
    }
  write_trace writes(*media::tape_reader::from_memory(tape->memory()));
  result<> replayed;
  for (bool more = true; more && replayed;) {
    const auto step = writes.next();
    if (!step) replayed = std::unexpected(step.error());
    more = step && *step;
  }
  std::vector<std::string> said;
  for (const result<>& r : {before->set_space({}), during->status(), replayed})
    said.push_back(r ? "no error" : r.error().message);
  return said;
}

constexpr tape_event begin{tape_op::tx_begin}, commit{tape_op::tx_commit};

TEST(tape_order, takes_transactions_that_begin_and_commit_in_turn_in_each_thread) {
  EXPECT_THAT(
      sentences_of({begin, {tape_op::tx_begin, 1}, commit, begin, {tape_op::tx_commit, 1}, commit}),
      testing::Each("no error"));
}

struct mistake {
  const char* name;
  std::vector<tape_event> events;
  const char* said;
};
void PrintTo(const mistake& m, std::ostream* out) {
  *out << m.name;
}

class tape_order_mistakes : public testing::TestWithParam<mistake> {};

TEST_P(tape_order_mistakes, are_told_with_event_and_thread) {
  EXPECT_THAT(sentences_of(GetParam().events), testing::Each(StartsWith(GetParam().said)));
}

INSTANTIATE_TEST_SUITE_P(
    tape_order, tape_order_mistakes,
    testing::Values(
        mistake{"abort",
                {begin, {tape_op::tx_abort}},
                "event 1 of the tape, of thread 0, aborts a transaction"},
        mistake{"abort_alone",
                {{tape_op::fence}, {tape_op::tx_abort, 1}},
                "event 1 of the tape, of thread 1, aborts a transaction"},
        mistake{"nested",
                {begin, {tape_op::tx_begin, 1}, begin, commit, commit},
                "event 2 of the tape, of thread 0, begins a transaction within the one that event "
                "0 began"},
        mistake{"commit_without_begin",
                {begin, commit, commit},
                "event 2 of the tape, of thread 0, commits a transaction that has not begun"},
        mistake{"commit_of_another_thread",
                {begin, {tape_op::tx_commit, 1}},
                "event 1 of the tape, of thread 1, commits a transaction that has not begun"},
        mistake{"begin_without_commit",
                {begin, commit, {tape_op::tx_begin, 1}, {tape_op::fence}},
                "event 2 of the tape, of thread 1, begins a transaction that does not commit"}),
    [](const auto& at) { return std::string(at.param.name); });

}  // namespace
}  // namespace stele::sim
