// Counts what a durable commit of each published mechanism costs: its fences, whether it flushes
// home, and when a log is truncated. The numbers are those of docs/protocol/README.md. One thread,
// no background thread, so the counters are exact.
#include <tests/conformance/pools.h>

namespace stele::testing {
namespace {

struct alignas(64) cell {
  field<std::uint64_t> value;
};
struct cells {
  cell at[64];
};

struct cost {
  const char* mechanism;
  std::uint64_t fences;    // of a commit
  bool flushes_home;       // in the commit
  std::uint64_t more = 0;  // fences that all commits of the test may have besides
};
constexpr cost costs[] = {{"base", 4, true},
                          {"base-published", 4, true},
                          {"redo", 3, true},
                          {"redo-async", 1, false},
                          {"undo", 3, true},
                          {"redo-published", 3, true},
                          {"undo-published", 4, true},
                          {"xil", 2, true},
                          {"vcbp", 1, false},
                          {"blurred", 1, false},
                          {"archapt-undo", 2, true},
                          {"archapt-redo", 1, false},
                          {"log_structured", 1, false, 8}};
constexpr std::uint64_t commits = 200;

pool_options options_of(const char* mechanism) {
  auto o = setting{mechanism, "adr"}.options(4u << 20);
  o.engine.log_size = 256 << 10, o.engine.log_count = 2;
  o.engine.background = false;
  return o;
}

void swap(pool<cells>& p, std::uint64_t i, durability d = durability::durable) {
  ASSERT_TRUE(succeeds(p.update(
      [&](cells& c) {
        c.at[i % 64].value = i;
        c.at[(i + 7) % 64].value = i + 1;
      },
      d)));
}

class commits_of : public ::testing::TestWithParam<cost> {};

// A2, A3, B2, B4, B7, B9
TEST_P(commits_of, cost_what_the_page_says) {
  const auto [mechanism, fences, flushes_home, more] = GetParam();
  scratch_directory dir;
  auto p = open_pool<cells>(dir.file("pool"), options_of(mechanism));
  for (std::uint64_t i = 0; i < 64; ++i) swap(p, i);
  ASSERT_TRUE(succeeds(p.sync()));
  const auto before = p.counters();
  for (std::uint64_t i = 0; i < commits; ++i) swap(p, i);
  const auto after = p.counters();
  EXPECT_GE(after.fences - before.fences, commits * fences);
  EXPECT_LE(after.fences - before.fences, commits * fences + more);
  const auto flushed = after.flushed_lines - before.flushed_lines,
             streamed = (after.streamed_bytes - before.streamed_bytes) / 64;
  EXPECT_GE(flushed + streamed, commits) << "each commit writes its log";
  if (flushes_home)
    EXPECT_GE(flushed, 2 * commits) << "two lines of home";
  else
    EXPECT_LT(flushed, 2 * commits);
}

INSTANTIATE_TEST_SUITE_P(published, commits_of, ::testing::ValuesIn(costs), [](const auto& one) {
  std::string name = one.param.mechanism;
  std::ranges::replace(name, '-', '_');
  return name;
});

// What a durable commit of default stores decides nothing about its fences, but for nothing at all:
// step 3 of docs/protocol/default.md. A commit without its fence would be a commit that is lost.
TEST(commits_of_default, take_exactly_one_fence_whatever_they_store) {
  struct shape {
    const char* name;
    std::uint64_t fences;
    std::function<void(cells&, std::uint64_t)> body;
  };
  std::vector<std::byte*> made;
  const shape shapes[] = {
      {"nothing", 0, [](cells& c, std::uint64_t) { (void)c.at[0].value.load(); }},
      {"one word", 1, [](cells& c, std::uint64_t i) { c.at[3].value = i; }},
      {"the same value again", 1, [](cells& c, std::uint64_t) { c.at[3].value = 7; }},
      {"words of two lines", 1,
       [](cells& c, std::uint64_t i) { c.at[1].value = c.at[2].value = i; }},
      {"all lines", 1,
       [](cells& c, std::uint64_t i) {
         for (cell& one : c.at) one.value = i;
       }},
      {"an allocation", 1,
       [&](cells&, std::uint64_t) {
         made.push_back(static_cast<std::byte*>(pool_memory::allocate(48, 16)));
       }},
      {"a block freed", 1,
       [&](cells&, std::uint64_t) {
         pool_memory::deallocate(made.back());
         made.pop_back();
       }},
  };
  for (const auto policy : {concurrency::stm, concurrency::single_writer, concurrency::external}) {
    scratch_directory dir;
    auto o = options_of("default");
    o.policy = policy;
    auto p = open_pool<cells>(dir.file("pool"), o);
    swap(p, 0);
    for (const shape& s : shapes) {
      SCOPED_TRACE(fmt::format("{} under policy {}", s.name, static_cast<int>(policy)));
      for (std::uint64_t i = 0; i < 40; ++i) {
        const auto before = p.counters();
        ASSERT_TRUE(succeeds(p.update([&](cells& c) { s.body(c, i); })));
        const auto after = p.counters();
        ASSERT_EQ(after.truncations, before.truncations) << "its fences are not a commit's";
        ASSERT_EQ(after.fences - before.fences, s.fences);
      }
    }
  }
}

// A record that does not fit in the ring lies in blocks of the heap, which are durable before the
// record that names them is.
TEST(commits_of_default, take_a_second_fence_only_when_their_record_outgrows_the_ring) {
  scratch_directory dir;
  auto o = options_of("default");
  o.engine.log_size = 4096;
  struct words {
    field<std::uint64_t> at[4096];
  };
  auto p = open_pool<words>(dir.file("pool"), o);
  const auto cost_of = [&](std::size_t stored) {
    EXPECT_TRUE(succeeds(p.sync()));
    const auto before = p.counters();
    EXPECT_TRUE(succeeds(p.update([&](words& w) {
      for (std::size_t i = 0; i < stored; ++i) w.at[i] = before.commits + i;
    })));
    const auto after = p.counters();
    return std::pair(after.log_spills - before.log_spills,
                     after.fences - before.fences - (after.truncations - before.truncations));
  };
  EXPECT_EQ(cost_of(16), std::pair(std::uint64_t{0}, std::uint64_t{1}));
  const auto [spills, fences] = cost_of(4096);
  EXPECT_EQ(spills, 1u);
  EXPECT_GE(fences, 2u) << "the payload, then the record";
}

// The log is kept until it is full; then home is made durable, each line once. B4, B5
TEST(bulk_persistence, comes_when_a_log_is_full_and_flushes_each_line_once) {
  for (const char* mechanism : {"vcbp", "blurred"}) {
    SCOPED_TRACE(mechanism);
    scratch_directory dir;
    auto p = open_pool<cells>(dir.file("pool"), options_of(mechanism));
    const auto first = p.counters();
    std::uint64_t done = 0;
    while (p.counters().truncations == first.truncations && done < 20'000) swap(p, done++);
    EXPECT_GT(done, 1000u);
    const auto before = p.counters();
    for (std::uint64_t i = 0; i < 10; ++i) swap(p, i);
    const auto after = p.counters();
    ASSERT_EQ(after.truncations, before.truncations);
    // Ten further commits say how many lines a commit flushes; the rest was the truncation's.
    const std::uint64_t a_commit = (after.flushed_lines - before.flushed_lines) / 10,
                        truncation = before.flushed_lines - first.flushed_lines - done * a_commit;
    EXPECT_GE(truncation, 64u);
    EXPECT_LT(truncation, 64u + 64) << "the heap's own lines, sums and control words";
  }
}

// The thread goes on after the logical commit; the ticket waits for the physical one. A2
TEST(archapt_undo, tells_of_an_ordered_commit_at_its_physical_commit) {
  scratch_directory dir;
  auto o = options_of("archapt-undo");
  auto p = open_pool<cells>(dir.file("pool"), o);
  for (std::uint64_t i = 0; i < 20; ++i) {
    const auto before = p.counters();
    swap(p, i, durability::ordered);
    const auto logical = p.counters();
    EXPECT_EQ(logical.fences - before.fences, 1u);
    EXPECT_EQ(logical.flushed_lines, before.flushed_lines) << "nothing of home";
    int told = 0;
    p.when_durable(p.committed(), [&](result<> r) { told += r ? 1 : 100; });
    EXPECT_EQ(told, 0);
    ASSERT_TRUE(succeeds(p.wait(p.committed())));
    EXPECT_EQ(told, 1);
    EXPECT_GE(p.counters().flushed_lines - logical.flushed_lines, 2u);
  }
}

}  // namespace
}  // namespace stele::testing
