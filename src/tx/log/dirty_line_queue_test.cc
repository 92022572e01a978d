// The queue gives back what was put in, in order, over many laps and wherever an entry wraps.
#include <base/rng.h>
#include <gtest/gtest.h>
#include <tx/log/dirty_line_queue.h>

#include <algorithm>
#include <deque>
#include <vector>

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
      if (random.below(4) == 0)
        e.lines.clear(), queue.push_clean(e.txid, e.next);
      else
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
    ASSERT_EQ(got.clean, first.lines.empty());
    std::size_t at = 0;
    queue.pop(got, [&](std::uint64_t line) { ASSERT_EQ(line, first.lines[at++].offset); });
    words -= 2 + first.lines.size();
    model.pop_front();
  }
}

// The owner takes whole entries, of about the words that it asks for, and none twice; the reader
// knows which of them are flushed, wherever the two are.
TEST(dirty_line_queue, gives_each_line_to_the_owner_or_to_the_reader) {
  constexpr std::uint64_t log_lines = 50, batch = 20;
  dirty_line_queue queue;
  queue.resize_for_log(log_lines);
  base::rng random(7);
  std::deque<entry> unread;
  std::uint64_t words = 0, txid = 0, taken = 0, flushed = 0, by_owner = 0, by_reader = 0;
  const auto first_untaken = [&] {
    return std::ranges::find_if(unread, [&](const entry& e) { return e.txid > taken; });
  };
  for (int step = 0; step < 50000; ++step) {
    const std::uint64_t what = random.below(12);
    if (what < 5) {
      entry e{++txid, 3 * txid, std::vector<named_line>(random.below(12))};
      for (named_line& l : e.lines) l.offset = random.below(1 << 30) * line_size;
      if (words + 2 + e.lines.size() >= log_lines * 6) continue;
      queue.push(e.txid, e.next, std::span<const named_line>(e.lines));
      words += 2 + e.lines.size();
      unread.push_back(std::move(e));
    } else if (what < 6) {
      auto at = first_untaken();
      std::vector<std::uint64_t> got;
      if (!queue.has_untaken(batch)) continue;
      queue.take(batch, [&](std::uint64_t line) { got.push_back(line); });
      std::vector<std::uint64_t> expected;
      for (std::uint64_t some = 0; at != unread.end() && some < batch; ++at) {
        for (const named_line& l : at->lines) expected.push_back(l.offset);
        some += 2 + at->lines.size();
        taken = at->txid;
      }
      ASSERT_EQ(got, expected);
      by_owner += got.size();
      if (random.below(4) == 0) queue.set_flushed(), flushed = taken;
    } else {
      dirty_line_queue::entry next;
      if (!queue.peek(next)) continue;
      ASSERT_EQ(queue.is_flushed(), next.txid <= flushed);
      queue.pop(next, [&](std::uint64_t) { by_reader += next.txid > flushed; });
      words -= 2 + next.lines;
      unread.pop_front();
    }
  }
  EXPECT_GT(by_owner, 1000u);
  EXPECT_GT(by_reader, 1000u);
}

}  // namespace
}  // namespace stele::detail
