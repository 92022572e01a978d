// How many lines of home a change of each container writes back, as docs/guide/containers.md states
// it.
//
// Measured by the pool's counters with the mechanism redo on the medium for persistent memory. redo
// flushes every line that a commit stored to once, and one line of its log; it streams its records.
// One operation for each transaction, the mean over many. Lines that the heap writes for allocated
// and freed blocks are included.
#include <stele/queue.h>
#include <stele/vector.h>

#include <containers/test_bed.h>

namespace stele::testing {
namespace {

constexpr std::uint64_t rounds = 1024;

struct shelf {
  using pool_resident = void;
  vector<std::uint64_t> numbers;
  vector<string> texts;
  array<std::uint64_t> fixed;
  queue<std::uint64_t> waiting;
  map<std::uint64_t, std::uint64_t> ordered;
  hash_map<std::uint64_t, std::uint64_t> hashed;
  set<std::uint64_t> present;
  hash_set<std::uint64_t> marked;
  bptree<std::uint64_t, std::uint64_t> tree;
  hash_map<string, string> names;
  coalescing_hash_map<coalescing_string, coalescing_string> coalesced;
  string text;
};

class lines : public ::testing::Test {
 protected:
  // Expects that one run of change(shelf, n) writes this many lines back, on average over n below
  // `rounds`.
  template <class Change>
  void expect(double expected, Change&& change, const char* what) {
    const auto before = pool_->counters();
    for (std::uint64_t n = 0; n < rounds; ++n) {
      const auto done = pool_->update([&](shelf& s) { change(s, n * 7919 % rounds); });
      EXPECT_TRUE(done) << done.error().message;
    }
    const auto after = pool_->counters();
    const double flushed = static_cast<double>(after.flushed_lines - before.flushed_lines) /
                           static_cast<double>(rounds);
    EXPECT_NEAR(flushed - 1, expected, 0.2) << what;
  }

  const std::string text_ = std::string(40, 'x');
  scratch_directory dir_;
  result<pool<shelf>> pool_ = pool<shelf>::open(
      dir_.file("pool"),
      {.create_size = std::size_t{64} << 20, .engine = {.mechanism = "redo", .media = "adr"}});
};

TEST_F(lines, of_sequences) {
  ASSERT_TRUE(pool_->update([](shelf& s) { s.fixed.resize(rounds); }));
  expect(1, [](shelf& s, auto n) { s.fixed[n] = n + 1; }, "array: an element changed");
  expect(2, [](shelf& s, auto n) { s.numbers.push_back(n); }, "vector: push_back");
  expect(1, [](shelf& s, auto n) { s.numbers[n] = n + 1; }, "vector: an element changed");
  expect(1, [](shelf& s, auto) { s.numbers.pop_back(); }, "vector: pop_back");
  expect(4.8, [&](shelf& s, auto) { s.texts.push_back(text_); }, "vector of strings: push_back");
  expect(2, [&](shelf& s, auto) { s.texts.pop_back(); }, "vector of strings: pop_back");
  expect(2, [](shelf& s, auto n) { s.waiting.push(n); }, "queue: push");
  expect(1, [](shelf& s, auto) { s.waiting.pop(); }, "queue: pop");
  expect(2, [](shelf& s, auto) { s.text.push_back('x'); }, "string: a byte more");
}

TEST_F(lines, of_maps_and_sets_of_words) {
  expect(6.4, [](shelf& s, auto n) { s.ordered.insert(n, n); }, "map: insert");
  expect(1, [](shelf& s, auto n) { s.ordered[n] = n + 1; }, "map: a value changed");
  expect(5, [](shelf& s, auto n) { s.ordered.erase(n); }, "map: erase");
  expect(6.4, [](shelf& s, auto n) { s.present.insert(n); }, "set: insert");
  expect(5, [](shelf& s, auto n) { s.present.erase(n); }, "set: erase");
  expect(4.1, [](shelf& s, auto n) { s.hashed.insert(n, n); }, "hash_map: insert");
  expect(1, [](shelf& s, auto n) { s.hashed[n] = n + 1; }, "hash_map: a value changed");
  expect(2.7, [](shelf& s, auto n) { s.hashed.erase(n); }, "hash_map: erase");
  expect(4.1, [](shelf& s, auto n) { s.marked.insert(n); }, "hash_set: insert");
  expect(2.7, [](shelf& s, auto n) { s.marked.erase(n); }, "hash_set: erase");
  expect(3.5, [](shelf& s, auto n) { s.tree.insert(n, n); }, "bptree: insert");
  expect(1, [](shelf& s, auto n) { s.tree.insert_or_assign(n, n + 1); }, "bptree: a value changed");
  expect(1.2, [](shelf& s, auto n) { s.tree.erase(n); }, "bptree: erase");
}

TEST_F(lines, of_maps_of_texts_of_40_bytes) {
  const auto key = [&](auto n) { return std::to_string(n) + text_; };
  expect(7.6, [&](shelf& s, auto n) { s.names.insert(key(n), text_); }, "hash_map: insert");
  expect(
      2.9, [&](shelf& s, auto n) { s.names.insert_or_assign(key(n), text_); },
      "hash_map: a text changed");
  expect(3.1, [&](shelf& s, auto n) { s.names.erase(key(n)); }, "hash_map: erase");
  expect(
      6.4, [&](shelf& s, auto n) { s.coalesced.insert(key(n), text_); },
      "coalescing_hash_map: insert");
  expect(
      2.4, [&](shelf& s, auto n) { s.coalesced.insert_or_assign(key(n), text_); },
      "coalescing_hash_map: a text changed");
  expect(2.1, [&](shelf& s, auto n) { s.coalesced.erase(key(n)); }, "coalescing_hash_map: erase");
}

}  // namespace
}  // namespace stele::testing
