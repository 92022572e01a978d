// Tests the choice between blurred and vcbp: by threshold, in turn under the fake clock, and by
// real time.
//
// Busy waits make the real clock show what a test wants. The compared times differ by a factor, and
// there are several tries, so that the tests pass on a busy machine too: a wrong choice is wrong
// each time.
#include <gtest/gtest.h>
#include <published/blurred/mode_choice.h>

#include <thread>
#include <vector>

namespace stele::detail {
namespace {

using namespace std::chrono_literals;

void busy_wait(std::chrono::nanoseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
  }
}

// Runs a window of single commits. The mode must not change before the last of them.
void window(mode_choice& c, std::uint64_t warm_up) {
  const bool mode = c.wants_blocks();
  for (std::uint64_t i = 0; i < warm_up; ++i) {
    EXPECT_EQ(c.wants_blocks(), mode) << "changed after " << i << " of " << warm_up;
    c.committed(1);
  }
}

TEST(mode_choice, with_a_threshold_goes_by_the_latency_and_never_changes) {
  for (const bool made_up : {false, true})
    for (const auto& [latency, blocks] :
         {std::pair{0u, true}, {99u, true}, {100u, true}, {101u, false}, {5000u, false}}) {
      mode_choice c({.warm_up = 4, .threshold_ns = 100}, latency, made_up);
      for (int i = 0; i < 1000; ++i) {
        ASSERT_EQ(c.wants_blocks(), blocks) << latency << " ns, after " << i;
        c.committed(1);
      }
    }
}

TEST(mode_choice, without_a_threshold_does_not_go_by_the_latency) {
  for (const unsigned latency : {0u, 100u, 1'000'000u}) {
    mode_choice c({.warm_up = 10}, latency, true);
    EXPECT_TRUE(c.wants_blocks());
  }
}

// Blurred, vcbp, then the winner. By the fake clock, blurred wins the first time and vcbp the
// second, for two windows each.
// B8
TEST(mode_choice, tries_blurred_then_vcbp_then_stays_with_the_better) {
  for (const std::uint64_t warm_up : {1u, 2u, 7u, 8u, 9u, 100u}) {
    SCOPED_TRACE("warm-up " + std::to_string(warm_up));
    mode_choice c({.warm_up = warm_up}, 0, true);
    std::vector<bool> ran_in;
    for (int w = 0; w < 16; ++w) {
      ran_in.push_back(c.wants_blocks());
      window(c, warm_up);
    }
    const std::vector<bool> round_one = {true, false, true, true},
                            round_two = {true, false, false, false};
    std::vector<bool> expected;
    for (int r = 0; r < 4; ++r)
      expected.insert(expected.end(), (r % 2 == 0 ? round_one : round_two).begin(),
                      (r % 2 == 0 ? round_one : round_two).end());
    EXPECT_EQ(ran_in, expected);
  }
}

TEST(mode_choice, is_the_same_in_every_run_under_the_made_up_clock) {
  std::vector<bool> first;
  for (int run = 0; run < 3; ++run) {
    mode_choice c({.warm_up = 5}, 0, true);
    std::vector<bool> modes;
    for (int i = 0; i < 300; ++i) {
      modes.push_back(c.wants_blocks());
      if (i % 7 == 0) c.exclude_time([&] { return busy_wait(10us), 0; });
      c.committed(1);
    }
    if (run == 0) first = modes;
    EXPECT_EQ(modes, first);
  }
}

TEST(mode_choice, takes_a_warm_up_of_nothing_for_one) {
  mode_choice c({.warm_up = 0}, 0, true);
  EXPECT_EQ(c.batch(), 1u);
  c.committed(1);
  EXPECT_FALSE(c.wants_blocks());
}

TEST(mode_choice, asks_for_batches_that_are_small_beside_the_warm_up) {
  for (std::uint64_t warm_up = 0; warm_up < 2000; ++warm_up) {
    const std::uint64_t batch = mode_choice({.warm_up = warm_up}, 0, true).batch();
    ASSERT_GE(batch, 1u);
    ASSERT_LE(batch, 64u);
    ASSERT_LE(batch, std::max<std::uint64_t>(1, warm_up / 8)) << warm_up;
  }
  EXPECT_EQ(mode_choice({.warm_up = ~std::uint64_t{0}}, 0, true).batch(), 64u);
}

TEST(mode_choice, ends_a_window_when_a_batch_reaches_over_its_end) {
  mode_choice c({.warm_up = 100}, 0, true);
  for (int w = 0; w < 8; ++w) {
    const bool mode = c.wants_blocks();
    for (int i = 0; i < 8; ++i) {
      c.committed(12);
      EXPECT_EQ(c.wants_blocks(), mode);
    }
    c.committed(12);  // 108
    EXPECT_EQ(c.wants_blocks(), std::vector({false, true, true, true, false, false, false,
                                             true})[static_cast<std::size_t>(w)])
        << "after window " << w;
  }
}

constexpr std::uint64_t warm_up = 40;

template <class Try>
bool in_one_of_some_tries(Try&& once) {
  for (int i = 0; i < 5; ++i)
    if (once()) return true;
  return false;
}

// The mode that is chosen when commits take as long as `wait(mode_choice&, number in its window)`.
template <class Wait>
bool chosen_with(Wait&& wait, std::uint64_t window = warm_up) {
  mode_choice c({.warm_up = window}, 0, false);
  for (std::uint64_t i = 0; i < 2 * window; ++i) {
    wait(c, i % window);
    c.committed(1);
  }
  const bool chosen = c.wants_blocks();
  for (std::uint64_t i = 0; i < 20 * window; ++i) {
    EXPECT_EQ(c.wants_blocks(), chosen) << "asked again after " << i;
    c.committed(1);
  }
  return chosen;
}

TEST(mode_choice, chooses_the_mode_whose_commits_are_quicker) {
  EXPECT_TRUE(in_one_of_some_tries([] {
    return chosen_with(
        [](mode_choice& c, std::uint64_t) { busy_wait(c.wants_blocks() ? 20us : 200us); });
  }));
  EXPECT_TRUE(in_one_of_some_tries([] {
    return !chosen_with(
        [](mode_choice& c, std::uint64_t) { busy_wait(c.wants_blocks() ? 200us : 20us); });
  }));
}

// So short a warm-up leaves out one commit or none; the clock must start at the first one that
// counts.
TEST(mode_choice, measures_a_warm_up_of_a_few_commits) {
  for (const std::uint64_t window : {1u, 2u, 7u, 8u, 15u}) {
    SCOPED_TRACE("warm-up " + std::to_string(window));
    EXPECT_TRUE(in_one_of_some_tries([&] {
      return chosen_with(
          [](mode_choice& c, std::uint64_t) { busy_wait(c.wants_blocks() ? 20us : 1000us); },
          window);
    }));
    EXPECT_TRUE(in_one_of_some_tries([&] {
      return !chosen_with(
          [](mode_choice& c, std::uint64_t) { busy_wait(c.wants_blocks() ? 1000us : 20us); },
          window);
    }));
  }
}

TEST(mode_choice, does_not_count_what_was_left_out) {
  EXPECT_TRUE(in_one_of_some_tries([] {
    return chosen_with([](mode_choice& c, std::uint64_t) {
      busy_wait(c.wants_blocks() ? 20us : 100us);
      if (!c.wants_blocks()) return;
      EXPECT_EQ(c.exclude_time([] { return busy_wait(200us), 42; }), 42);
    });
  })) << "waiting was held against the mode";
}

TEST(mode_choice, does_not_count_the_first_commits_after_a_switch) {
  EXPECT_TRUE(in_one_of_some_tries([] {
    return chosen_with([](mode_choice& c, std::uint64_t number) {
      const bool first = number < warm_up / 8;
      busy_wait(!c.wants_blocks() ? 100us : first ? 2000us : 20us);
    });
  })) << "the switch was held against the mode";
}

// A hundred windows at the rate of the choice, then a slower workload: both modes are tried again.
TEST(mode_choice, asks_again_when_the_workload_has_become_another) {
  EXPECT_TRUE(in_one_of_some_tries([] {
    mode_choice c({.warm_up = 10}, 0, false);
    const auto commits = [&](int windows, std::chrono::nanoseconds blurred,
                             std::chrono::nanoseconds vcbp) {
      for (int i = 0; i < 10 * windows; ++i) {
        busy_wait(c.wants_blocks() ? blurred : vcbp);
        c.committed(1);
      }
    };
    commits(2, 50us, 10us);
    const bool first = c.wants_blocks();
    commits(96, 50us, 10us);
    EXPECT_EQ(c.wants_blocks(), first) << "asked before there was reason to";
    commits(20, 50us, 500us);
    return !first && c.wants_blocks();
  })) << "went on with what is ten times slower now";
}

TEST(mode_choice, counts_the_commits_of_all_threads) {
  mode_choice c({.warm_up = 3000}, 0, true);
  std::vector<std::jthread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 1000 / 20; ++i) c.committed(20);
    });
  threads.clear();
  EXPECT_FALSE(c.wants_blocks());
}

}  // namespace
}  // namespace stele::detail
