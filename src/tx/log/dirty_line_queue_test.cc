// The queue gives back what was put in, in order, over many laps and wherever an entry wraps.
#include <base/rng.h>
#include <gtest/gtest.h>
#include <tx/log/dirty_line_queue.h>

#include <deque>

namespace stele::detail {
namespace {

struct named_line {
  std::uint64_t offset;
};
struct entry {
  std::uint64_t txid, next;
  std::vector<named_line> lines;
};

TEST(dirty_line_queue, gives_entries_back_in_order) {
  constexpr std::uint64_t log_lines = 50;
  dirty_line_queue queue;
  queue.resize_for_log(log_lines);
  base::rng random(3);
  std::deque<entry> model;
  std::uint64_t words = 0, txid = 0;
  for (int step = 0; step < 20000; ++step) {
    entry e{++txid, 3 * txid, std::vector<named_line>(1 + random.below(12))};
    for (named_line& l : e.lines) l.offset = random.below(1 << 30) * line_size;
    if (words + 2 + e.lines.size() < log_lines * 6 && random.below(2) == 0) {
      queue.push(e.txid, e.next, std::span<const named_line>(e.lines));
      words += 2 + e.lines.size();
      model.push_back(std::move(e));
      continue;
    }
    dirty_line_queue::entry got;
    ASSERT_EQ(queue.peek(got), !model.empty());
    if (model.empty()) continue;
    const entry& first = model.front();
    ASSERT_EQ(got.txid, first.txid);
    ASSERT_EQ(got.next, first.next);
    ASSERT_EQ(got.lines, first.lines.size());
    std::size_t at = 0;
    queue.pop(got, [&](std::uint64_t line) { ASSERT_EQ(line, first.lines[at++].offset); });
    words -= 2 + first.lines.size();
    model.pop_front();
  }
}

}  // namespace
}  // namespace stele::detail
