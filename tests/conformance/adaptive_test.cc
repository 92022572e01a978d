// The mechanism adaptive: nothing is lost or torn in any mode or while it switches; it reports its
// mode. Also the two ways of bulk persistence that a pool can ask for, and the options of execution
// in log.
#include <base/rng.h>
#include <stele/adaptive_options.h>
#include <stele/blurred_options.h>
#include <tests/conformance/child.h>
#include <tests/conformance/pools.h>

#include <array>
#include <atomic>
#include <thread>

namespace stele::testing {
namespace {

constexpr unsigned thread_count = 3;

struct alignas(64) own_data {
  field<std::uint64_t> count;
  // Each holds the number of the commit that stored it last; every commit stores word 0.
  field<std::uint64_t> words[128];
};
struct content {
  field<std::uint64_t> total;
  own_data of[thread_count];
};

pool_options options(const std::string& media, std::uint64_t warm_up) {
  auto o = setting{"adaptive", media}.options(1u << 20);
  o.engine.log_size = 8192, o.engine.log_count = thread_count;
  o.engine.tuning.of<adaptive_options>().warm_up = warm_up;
  return o;
}

// The n-th commit of a thread stores a function of n, in few words or in many.
std::uint64_t words_of(std::uint64_t n) {
  return n % 11 == 0 ? 100 : 1 + n % 5;
}
void step(content& c, unsigned thread, std::uint64_t n) {
  own_data& mine = c.of[thread];
  mine.count = n;
  for (std::uint64_t i = 0, count = words_of(n); i < count; ++i) mine.words[i] = n;
  if (n % 8 == 0) c.total += 8;
}
std::string problem_of(const content& c, const std::array<std::uint64_t, thread_count>& commits) {
  std::uint64_t total = 0;
  for (unsigned t = 0; t < thread_count; ++t) {
    const std::string who = "thread " + std::to_string(t) + ": ";
    const std::uint64_t n = commits[t];
    if (c.of[t].count != n)
      return who + std::to_string(c.of[t].count) + " commits instead of " + std::to_string(n);
    for (std::uint64_t i = 0; i < 128; ++i) {
      std::uint64_t last = n;
      while (last != 0 && words_of(last) <= i) --last;
      if (c.of[t].words[i] != last)
        return who + "word " + std::to_string(i) + " is of commit " +
               std::to_string(c.of[t].words[i]) + " instead of " + std::to_string(last);
    }
    total += n / 8 * 8;
  }
  return c.total == total
             ? ""
             : "total " + std::to_string(c.total) + " instead of " + std::to_string(total);
}

// Each thread makes this many commits.
void run(pool<content>& p, std::array<std::uint64_t, thread_count>& commits, std::uint64_t each) {
  std::vector<std::jthread> threads;
  for (unsigned t = 0; t < thread_count; ++t)
    threads.emplace_back([&, t] {
      for (std::uint64_t i = 0; i < each; ++i) {
        const std::uint64_t n = ++commits[t];
        EXPECT_TRUE(succeeds(p.update([&](content& c) { step(c, t, n); })));
        if (i % 16 != 0) continue;
        EXPECT_FALSE(
            p.update([&](content& c) { step(c, t, n + 1), cancel("not this one"); }).has_value());
      }
    });
}

class adaptive_on : public ::testing::TestWithParam<std::string> {};

TEST_P(adaptive_on, says_which_mode_it_runs_in) {
  scratch_directory dir;
  std::array<std::uint64_t, thread_count> commits{};
  auto p = open_pool<content>(dir.file("pool"), options(GetParam(), 500));
  EXPECT_EQ(p.counters().mode, "blurred") << "what it begins with";
  EXPECT_EQ(p.counters().of_mechanism["mode_switches"], 0u);
  run(p, commits, 2000);
  const auto c = p.counters();
  EXPECT_TRUE(c.mode == "blurred" || c.mode == "vcbp") << c.mode;
  EXPECT_GE(c.of_mechanism["mode_switches"], 1u) << "vcbp was not tried";
  std::printf("  %s: %s after %lu switches\n", GetParam().c_str(), std::string(c.mode).c_str(),
              c.of_mechanism["mode_switches"]);
  const auto wrong = p.read([&](const content& r) { return problem_of(r, commits); });
  EXPECT_EQ(wrong.value_or("an error"), "");
}

TEST_P(adaptive_on, stays_with_the_mode_that_the_threshold_gives) {
  const unsigned latency = GetParam() == "delayed:35" ? 35 : 2000;
  for (const unsigned threshold : {1u, 35u, 1999u, 2000u, 5000u}) {
    scratch_directory dir;
    std::array<std::uint64_t, thread_count> commits{};
    auto o = options(GetParam(), 10);
    o.engine.tuning.of<adaptive_options>().threshold_ns = threshold;
    auto p = open_pool<content>(dir.file("pool"), o);
    run(p, commits, 100);
    EXPECT_EQ(p.counters().mode, latency > threshold ? "vcbp" : "blurred") << threshold;
    EXPECT_EQ(p.counters().of_mechanism["mode_switches"], 0u) << threshold;
    ASSERT_TRUE(succeeds(p.close()));
    // The other mode takes the logs over.
    o.engine.tuning.of<adaptive_options>().threshold_ns = threshold >= latency ? 1 : 5000;
    p = open_pool<content>(dir.file("pool"), o);
    run(p, commits, 100);
    const auto wrong = p.read([&](const content& r) { return problem_of(r, commits); });
    EXPECT_EQ(wrong.value_or("an error"), "") << threshold;
  }
}

// B8
TEST_P(adaptive_on, loses_nothing_over_hundreds_of_switches) {
  scratch_directory dir;
  std::array<std::uint64_t, thread_count> commits{};
  std::uint64_t switches = 0;
  for (int session = 0; session < 1000 && switches < 300; ++session) {
    auto p = open_pool<content>(dir.file("pool"),
                                options(GetParam(), 8 + static_cast<std::uint64_t>(session) % 20));
    const auto found = p.read([&](const content& r) { return problem_of(r, commits); });
    ASSERT_EQ(found.value_or("an error"), "") << "session " << session;
    run(p, commits, 120);
    const auto left = p.read([&](const content& r) { return problem_of(r, commits); });
    ASSERT_EQ(left.value_or("an error"), "") << "session " << session;
    switches += p.counters().of_mechanism["mode_switches"];
    if (session % 2 == 0) {
      ASSERT_TRUE(succeeds(p.close()));
    }
  }
  EXPECT_GE(switches, 200u);
  std::printf("  %lu switches, %lu commits a thread\n", switches, commits[0]);
}

// The child is killed in any mode.
TEST_P(adaptive_on, recovers_what_was_acknowledged_when_killed_while_it_changes) {
  scratch_directory dir;
  base::rng random(seed_from("STELE_SEED"));
  for (int kill = 0; kill < 30; ++kill) {
    std::uint64_t acknowledged;
    {
      child writer([&](const word_sender& send) {
        auto p = open_pool<content>(dir.file("pool"), options(GetParam(), 8));
        std::uint64_t n = p.read([](const content& c) { return c.of[0].count.load(); }).value_or(0);
        for (send(n);; send(n))
          if (++n; !p.update([&](content& c) { step(c, 0, n); })) ::_exit(4);
      });
      ASSERT_TRUE(writer.receive(acknowledged));
      for (std::uint64_t words = random.below(60); words != 0; --words)
        ASSERT_TRUE(writer.receive(acknowledged));
      acknowledged = writer.kill_and_drain(acknowledged);
    }
    auto p = open_pool<content>(dir.file("pool"), options(GetParam(), 8));
    const auto wrong = p.read([&](const content& c) {
      const std::uint64_t n = c.of[0].count;
      if (n < acknowledged || n > acknowledged + 1)
        return std::to_string(n) + " commits, " + std::to_string(acknowledged) + " acknowledged";
      return problem_of(c, {n, 0, 0});
    });
    ASSERT_EQ(wrong.value_or("an error"), "") << "kill " << kill;
  }
}

INSTANTIATE_TEST_SUITE_P(all, adaptive_on, ::testing::Values("delayed:35", "delayed:2000"),
                         plain_name);

class bulk_persistence_of : public ::testing::TestWithParam<std::string> {};

TEST_P(bulk_persistence_of, whole_cache_is_refused_where_no_program_can_do_it) {
  for (const char* media : {"adr", "eadr", "process", "delayed:35"}) {
    scratch_directory dir;
    auto o = setting{GetParam(), media}.options();
    o.engine.bulk = bulk_persistence::whole_cache;
    EXPECT_TRUE(fails_with(pool<content>::open(dir.file("pool"), o), errc::unsupported)) << media;
    EXPECT_FALSE(std::filesystem::exists(dir.file("pool"))) << media;
    o.engine.bulk = bulk_persistence::automatic;
    auto p = open_pool<content>(dir.file("pool"), o);
    EXPECT_TRUE(succeeds(p.update([](content& c) { step(c, 0, 1); })));
  }
}

// The logs are so small that each way is taken many times.
// B5
TEST_P(bulk_persistence_of, either_way_keeps_everything_on_a_file) {
  for (const auto way :
       {bulk_persistence::automatic, bulk_persistence::log_walk, bulk_persistence::whole_cache}) {
    SCOPED_TRACE(static_cast<int>(way));
    scratch_directory dir;
    std::array<std::uint64_t, thread_count> commits{};
    auto o = setting{GetParam(), "file"}.options();
    o.engine.log_size = 4096, o.engine.log_count = thread_count, o.engine.bulk = way;
    for (int session = 0; session < 3; ++session) {
      auto p = open_pool<content>(dir.file("pool"), o);
      run(p, commits, 200);
      const auto wrong = p.read([&](const content& r) { return problem_of(r, commits); });
      ASSERT_EQ(wrong.value_or("an error"), "");
      ASSERT_TRUE(succeeds(p.close()));
      EXPECT_GT(p.counters().truncations, 3u);
    }
    child writer([&](const word_sender& send) {  // and a process that does not close the pool
      auto p = open_pool<content>(dir.file("pool"), o);
      for (std::uint64_t n = commits[0] + 1; n <= commits[0] + 300; ++n) {
        if (!p.update([&](content& c) { step(c, 0, n); })) ::_exit(4);
        send(n);
      }
      ::_exit(0);
    });
    commits[0] = writer.drain(0);
    ASSERT_EQ(writer.wait(), 0);
    auto p = open_pool<content>(dir.file("pool"), o);
    const auto wrong = p.read([&](const content& r) { return problem_of(r, commits); });
    EXPECT_EQ(wrong.value_or("an error"), "");
  }
}

INSTANTIATE_TEST_SUITE_P(all, bulk_persistence_of,
                         ::testing::Values("default", "redo-async", "vcbp", "blurred", "adaptive"),
                         plain_name);

class block_log_options : public ::testing::TestWithParam<std::string> {};

TEST_P(block_log_options, an_abort_interval_out_of_bounds_is_refused) {
  scratch_directory dir;
  auto o = setting{GetParam(), "adr"}.options();
  auto& own = o.engine.tuning.of<blurred_options>();
  for (const unsigned wrong : {0u, 3u, 6u, 1023u, 1028u}) {
    own.abort_interval = wrong;
    EXPECT_TRUE(fails_with(pool<content>::open(dir.file("pool"), o), errc::invalid_argument))
        << wrong;
  }
  for (const unsigned right : {4u, 64u, 1024u}) {
    own.abort_interval = right;
    auto p = open_pool<content>(dir.file("pool"), o);
    EXPECT_TRUE(succeeds(p.update([](content& c) { step(c, 0, 1); })));
  }
}

// Processes that do not close the pool, with runs and without in turn.
TEST_P(block_log_options, a_session_recovers_what_another_wrote_in_the_other_format) {
  scratch_directory dir;
  std::array<std::uint64_t, thread_count> commits{};
  auto o = setting{GetParam(), "adr"}.options();
  o.engine.log_size = 16384, o.engine.log_count = thread_count;
  auto& own = o.engine.tuning.of<blurred_options>();
  for (int session = 0; session < 4; ++session) {
    own.runs = session % 2 == 0;
    child writer([&](const word_sender& send) {
      auto p = open_pool<content>(dir.file("pool"), o);
      for (std::uint64_t n = commits[0] + 1; n <= commits[0] + 100; ++n) {
        if (!p.update([&](content& c) { step(c, 0, n); })) ::_exit(4);
        send(n);
      }
      ::_exit(0);
    });
    commits[0] = writer.drain(commits[0]);
    ASSERT_EQ(writer.wait(), 0);
  }
  auto p = open_pool<content>(dir.file("pool"), o);
  const auto wrong = p.read([&](const content& r) { return problem_of(r, commits); });
  EXPECT_EQ(wrong.value_or("an error"), "");
}

INSTANTIATE_TEST_SUITE_P(all, block_log_options, ::testing::Values("xil", "blurred", "adaptive"),
                         plain_name);

}  // namespace
}  // namespace stele::testing
