// What base-published, redo-published and undo-published cost beside base, redo and undo: B9, L12.
#include <tests/conformance/pools.h>

namespace stele::testing {
namespace {

constexpr std::size_t lines = 16, words_a_line = 8;
struct numbers {
  field<std::uint64_t> at[lines * words_a_line];
  field<std::uint64_t> many[4096];
};

pool_options options_of(const std::string& mechanism, concurrency policy, std::size_t log_size) {
  auto o = setting{mechanism, "adr", policy}.options();
  o.engine.log_size = log_size, o.engine.log_count = 2;
  o.engine.block_checksums = checksums::off;
  return o;
}

// Fences, log lines and flushed lines of one update.
struct cost {
  std::uint64_t fences, logged, flushed;
  bool operator==(const cost&) const = default;
};
std::ostream& operator<<(std::ostream& out, const cost& c) {
  return out << c.fences << " fences, " << c.logged << " log lines, " << c.flushed << " flushed";
}

template <class Body>
cost cost_of(const std::string& mechanism, concurrency policy, Body&& body,
             std::size_t log_size = 1u << 16) {
  scratch_directory dir;
  auto p = open_pool<numbers>(dir.file("pool"), options_of(mechanism, policy, log_size));
  const auto before = p.counters();
  EXPECT_TRUE(succeeds(p.update(body)));
  const auto after = p.counters();
  return {after.fences - before.fences,
          (after.streamed_bytes - before.streamed_bytes) / detail::line_size,
          after.flushed_lines - before.flushed_lines};
}

// The numbers of a root begin somewhere in a line.
std::size_t first_of_a_line(const numbers& n) {
  const auto in_line = reinterpret_cast<std::uintptr_t>(&n.at[0]) % detail::line_size / 8;
  return (words_a_line - in_line) % words_a_line;
}

class published : public ::testing::TestWithParam<concurrency> {};

TEST_P(published, each_word_stored_is_an_entry_of_the_redo_log_repeated_ones_too) {
  const auto body = [](numbers& n) {
    const std::size_t first = first_of_a_line(n);
    for (std::uint64_t i = 0; i < 30; ++i) n.at[first + i % 3] = i;
  };
  // The TxID and one run of three words; or the TxID and 30 times a head and a word, 7 to a line.
  EXPECT_EQ(cost_of("redo", GetParam(), body), (cost{3, 1, 2}));
  EXPECT_EQ(cost_of("redo-published", GetParam(), body), (cost{3, 9, 2}));
}

TEST_P(published, each_first_store_has_its_own_fence_of_the_undo_log) {
  const auto body = [](numbers& n) {
    const std::size_t first = first_of_a_line(n);
    for (std::uint64_t i = 0; i < 30; ++i) n.at[first + i % 3] = i;
    for (std::size_t line = 1; line < 5; ++line) n.at[first + line * words_a_line] = 7;
  };
  EXPECT_EQ(cost_of("undo", GetParam(), body).fences, 3u);
  EXPECT_EQ(cost_of("undo-published", GetParam(), body), (cost{7 + 2, 7, 6}));
}

// 8 lines of home, the commit line twice, and 65 words of one run; or 64 times a head and a word.
TEST_P(published, each_word_stored_is_a_record_of_the_published_base) {
  const auto body = [](numbers& n) {
    const std::size_t first = first_of_a_line(n);
    for (std::uint64_t i = 0; i < 64; ++i) n.at[first + i] = i;
  };
  EXPECT_EQ(cost_of("base", GetParam(), body), (cost{4, 0, 8 + 2 + 9}));
  EXPECT_EQ(cost_of("base-published", GetParam(), body), (cost{4, 0, 8 + 2 + 16}));
}

// Of a log of 4 KiB a slot has less than 2 KiB: 20 lines are 161 words in runs, and 320 one by one.
TEST_P(published, words_that_outgrow_their_slot_are_logged_in_runs) {
  const auto body = [](numbers& n) {
    const std::size_t first = first_of_a_line(n);
    for (std::uint64_t i = 0; i < 160; ++i) n.many[first + i] = i;
  };
  const cost in_runs{4, 0, 20 + 2 + 21};
  EXPECT_EQ(cost_of("base", GetParam(), body, 4096), in_runs);
  EXPECT_EQ(cost_of("base-published", GetParam(), body, 4096), in_runs);
}

// Two fences more than a read: the log is cut before the locks are released.
TEST_P(published, an_abort_cuts_the_undo_log) {
  scratch_directory dir;
  auto p = open_pool<numbers>(dir.file("pool"), options_of("undo-published", GetParam(), 1u << 16));
  ASSERT_TRUE(succeeds(p.update([](numbers& n) { n.at[0] = 5; })));
  const auto before = p.counters().fences;
  EXPECT_TRUE(fails_with(p.update([](numbers& n) -> result<> {
    n.at[0] = 6;
    return std::unexpected(error{errc::not_found, "changed its mind"});
  }),
                         errc::not_found));
  EXPECT_EQ(p.counters().fences - before, 2u);
  EXPECT_EQ(p.read([](const numbers& n) { return n.at[0].load(); }).value_or(0), 5u);
}

TEST_P(published, a_transaction_may_outgrow_its_log) {
  for (const char* mechanism : {"base-published", "redo-published", "undo-published"}) {
    SCOPED_TRACE(mechanism);
    scratch_directory dir;
    auto p = open_pool<numbers>(dir.file("pool"), options_of(mechanism, GetParam(), 4096));
    for (std::uint64_t round = 1; round < 4; ++round)
      ASSERT_TRUE(succeeds(p.update([&](numbers& n) {
        for (auto& one : n.many) one = one + round;
        n.at[0] += 1;
      })));
    ASSERT_TRUE(succeeds(p.update([&](numbers& n) { n.at[0] += 1; })));
    EXPECT_GE(p.counters().log_spills, 3u);
    const auto wrong = p.read([](const numbers& n) {
      return std::ranges::count_if(n.many, [](const auto& one) { return one != 6; });
    });
    EXPECT_EQ(wrong.value_or(-1), 0);
    EXPECT_EQ(p.read([](const numbers& n) { return n.at[0].load(); }).value_or(0), 4u);
  }
}

INSTANTIATE_TEST_SUITE_P(all, published, ::testing::ValuesIn(all_policies),
                         [](const auto& which) { return name_of(which.param); });

}  // namespace
}  // namespace stele::testing
