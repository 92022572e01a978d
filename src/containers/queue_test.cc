// queue compared with std::deque by random operations, on ordinary memory and on pools; and that a
// push and a pop do not conflict.
#include <stele/queue.h>

#include <containers/map_model.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

namespace stele::testing {
namespace {

template <class Memory>
class queue_on : public ::testing::Test {};
using memories = ::testing::Types<plain_memory, pool_memory, coalescing_memory>;
TYPED_TEST_SUITE(queue_on, memories);

template <class Memory>
using words = basic_queue<std::uint64_t, Memory>;

// Random operations in phases that fill and empty the queue.
template <class Queue>
class queue_play {
  using samples = sample<typename Queue::value_type>;
  using value = decltype(samples::of(0));

 public:
  explicit queue_play(std::uint64_t seed) : random_(seed) {}

  void step(Queue& q, bool filling) {
    if (random_.below(500) == 0) q.clear(), model_.clear();
    if (filling == (random_.below(4) != 0)) {
      const value x = samples::of(random_.below(100));
      ASSERT_EQ(value_in(q.push(x)), x);
      model_.push_back(x);
    } else if (model_.empty()) {
      ASSERT_TRUE(q.empty());
      ASSERT_THROW(q.pop(), failure);
      ASSERT_THROW(q.front(), failure);
      ASSERT_THROW(q.back(), failure);
    } else {
      ASSERT_FALSE(q.empty());
      ASSERT_EQ(value_in(q.front()), model_.front());
      q.pop(), model_.pop_front();
    }
  }

  void compare(const Queue& q) const {
    const result<> status = q.check();
    ASSERT_TRUE(status) << status.error().message;
    ASSERT_EQ(q.size(), model_.size());
    ASSERT_EQ(q.empty(), model_.empty());
    std::deque<value> content;
    q.for_each([&](const auto& stored) { content.push_back(value_in(stored)); });
    ASSERT_EQ(content, model_);
    if (model_.empty()) return;
    ASSERT_EQ(value_in(q.back()), model_.back());
  }

 private:
  base::rng random_;
  std::deque<value> model_;
};

template <class Queue, class Memory>
void play(std::uint64_t seed, int operations) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  bed<Queue, Memory> b;
  queue_play<Queue> play(seed);
  for (int i = 0; i < operations; i += 4) {
    b.update([&](Queue& q) {
      for (int k = 0; k < 4; ++k) play.step(q, i / 300 % 2 == 0);
    });
    b.read([&](const Queue& q) { play.compare(q); });
    if (::testing::Test::HasFailure()) return;
  }
}

TYPED_TEST(queue_on, behaves_as_a_queue_of_words) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) play<words<TypeParam>, TypeParam>(seed, 3000);
}

TYPED_TEST(queue_on, behaves_as_a_queue_of_strings) {
  play<basic_queue<basic_string<TypeParam>, TypeParam>, TypeParam>(5, 3000);
}

TYPED_TEST(queue_on, behaves_as_a_queue_of_large_values) {
  play<basic_queue<blob<200>, TypeParam>, TypeParam>(6, 2000);
}

TYPED_TEST(queue_on, clear_gives_every_block_back) {
  using queue = basic_queue<basic_queue<basic_string<TypeParam>, TypeParam>, TypeParam>;
  bed<queue, TypeParam> b;
  b.update([](queue& q) {
    for (int i = 0; i < 10; ++i) {
      auto& inner = q.emplace();
      for (int k = 0; k < 30; ++k) inner.push(std::string(50, 'x'));
      EXPECT_EQ(&inner, &q.back());
    }
    EXPECT_EQ(blocks_of(q).size(), 10 / 4 + 1 + 10 * (30 / 21 + 1 + 30u));
    q.pop();
    EXPECT_EQ(q.front().size(), 30u);
    q.clear();
    EXPECT_TRUE(blocks_of(q).empty());
    EXPECT_TRUE(q.empty() && q.check());
  });
}

// Runs `inner` in another thread, in the middle of an update that runs `outer`. Returns how often
// the two bodies ran: 2 if they do not conflict.
template <class Outer, class Inner>
int runs_at_once(bed<words<pool_memory>, pool_memory>& b, Outer&& outer, Inner&& inner) {
  std::atomic<int> runs = 0;
  std::atomic<bool> done = false;
  std::thread other;
  b.update([&](words<pool_memory>& q) {
    outer(q);
    if (runs++ != 0) return;
    other = std::thread([&] {
      b.update([&](words<pool_memory>& same) { ++runs, inner(same); });
      done = true;
    });
    for (int i = 0; i < 2000 && !done; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_TRUE(done) << "the other transaction waits for this one";
  });
  other.join();
  return runs;
}

TEST(queue, pushing_and_popping_do_not_conflict_while_much_is_between) {
  bed<words<pool_memory>, pool_memory> b;
  const auto push = [](words<pool_memory>& q) { q.push(1); };
  const auto pop = [](words<pool_memory>& q) {
    if (!q.empty()) q.pop();
  };
  b.update([](words<pool_memory>& q) {
    for (int i = 0; i < 300; ++i) q.push(1);
    q.pop();
  });
  for (int i = 0; i < 140; ++i) {
    EXPECT_EQ(runs_at_once(b, push, pop), 2) << i;
    EXPECT_EQ(runs_at_once(b, pop, push), 2) << i;
  }
}

TEST(queue, what_one_thread_pushes_another_pops_in_order) {
  constexpr std::uint64_t most = 20'000;
  bed<words<pool_memory>, pool_memory> b;
  std::thread producer([&] {
    for (std::uint64_t i = 0; i < most; ++i) b.update([&](words<pool_memory>& q) { q.push(i); });
  });
  for (std::uint64_t next = 0; next < most;) {
    const bool popped = b.update([&](words<pool_memory>& q) {
      if (q.empty()) return false;
      EXPECT_EQ(q.front(), next);
      q.pop();
      return true;
    });
    next += popped;
  }
  producer.join();
  b.read([](const words<pool_memory>& q) { EXPECT_TRUE(q.empty() && q.check()); });
}

}  // namespace
}  // namespace stele::testing
