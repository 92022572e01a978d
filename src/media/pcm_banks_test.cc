// Emulated banks: how long fences that wait take, what writes to one bank and to several cost, what may pass a barrier, and
// that a full queue holds its writer up. Upper bounds are loose: a test may lose the processor.
#include <gtest/gtest.h>
#include <media/adr.h>
#include <media/banked.h>
#include <media/pcm_banks.h>

#include <algorithm>
#include <chrono>

namespace stele::media {
namespace {

using clock = std::chrono::steady_clock;
using ns = std::chrono::nanoseconds;

constexpr std::uint32_t write_ns = 200'000;
constexpr pcm_layout layout{.log_offset = 4096, .log_size = 4096, .home_offset = 3 * 4096, .commit_offset = 64, .commit_size = 128};
constexpr std::uint64_t records = (4096 + 192) / 64, commit = (4096 + 64) / 64, home = 3 * 4096 / 64;

pcm_model waiting(bool rules = false) { return {.banks = 4, .queue_entries = 4, .write_ns = write_ns, .rules = rules, .waits = true}; }

// In writes, rounded down: what `act` took.
template <class Act>
std::uint64_t writes_taken(Act&& act) {
  const auto begin = clock::now();
  act();
  return static_cast<std::uint64_t>((clock::now() - begin) / ns(write_ns));
}

TEST(pcm_banks, lines_of_different_banks_are_written_at_once) {
  pcm_banks several(waiting(), layout, 2), one(waiting(), layout, 2);
  const auto apart = writes_taken([&] {
    for (std::uint64_t line : {0, 1, 2, 3}) several.write(0, home + line);
    several.fence(0);
  });
  const auto together = writes_taken([&] {
    for (std::uint64_t line : {0, 4, 8, 12}) one.write(0, home + line);
    one.fence(0);
  });
  EXPECT_GE(apart, 1u);
  EXPECT_GE(together, 4u);
  EXPECT_LT(apart, together);
}

TEST(pcm_banks, a_fence_without_writes_takes_no_time) {
  pcm_banks banks(waiting(), layout, 2);
  banks.write(0, home);
  EXPECT_EQ(writes_taken([&] { banks.fence(1); }), 0u);
}

// Records, commit line, home, cut of a thread; the last fence alone waits.
std::uint64_t transactions_take_once(pcm_model model, unsigned count, double log_speedup) {
  model.waits = false;
  model.log_speedup = log_speedup;
  model.banks = 8;
  model.queue_entries = 64;
  pcm_banks banks(model, layout, 2);
  const auto took = [&] {
    for (unsigned i = 0; i < count; ++i) {
      const std::uint64_t slot = i % 2;
      for (const std::uint64_t line : {records + 1 + slot * 30, commit + slot, home + 4, commit + slot}) banks.write(0, line), banks.fence(0);
    }
    // A bank's queue has room when all but 63 of its writes are done; the last one is done after all others.
    for (unsigned i = 0; i < 64; ++i) banks.write(0, home + 7);
    banks.write(0, home + 7);
  };
  return writes_taken(took);
}

// The shortest of some: the processor may be away for a while.
std::uint64_t transactions_take(const pcm_model& model, unsigned count, double log_speedup = 1) {
  std::uint64_t least = transactions_take_once(model, count, log_speedup);
  for (int i = 0; i < 5; ++i) least = std::min(least, transactions_take_once(model, count, log_speedup));
  return least;
}

TEST(pcm_banks, rules_let_records_pass_barriers) {
  const auto strict = transactions_take(waiting(false), 8), rules = transactions_take(waiting(true), 8);
  EXPECT_GE(strict, 4 * 8u);
  EXPECT_GE(rules, 3 * 8u) << "commit line, home and cut keep their order";
  EXPECT_LT(rules, strict);
}

TEST(pcm_banks, writes_to_logs_are_faster_with_a_shorter_retention) {
  EXPECT_LT(transactions_take(waiting(), 8, 4.0), transactions_take(waiting(), 8));
}

TEST(pcm_banks, a_full_queue_holds_its_writer_up) {
  pcm_model model = waiting();
  model.waits = false;
  pcm_banks banks(model, layout, 1);
  for (std::uint64_t i = 0; i < 4; ++i) banks.write(0, home);
  EXPECT_GE(writes_taken([&] {
              for (std::uint64_t i = 0; i < 3; ++i) banks.write(0, home);
            }),
            2u);
}

TEST(banked, counts_as_what_it_slows_down_and_stores_what_it_is_given) {
  alignas(64) static std::byte memory[4096 * 4];
  banked<adr>::shared shared(memory, waiting(), layout, 2);
  banked<adr> m(shared, 0);
  const std::uint64_t value = 42;
  m.store(memory + 3 * 4096, &value, 8);
  EXPECT_GE(writes_taken([&] { m.flush(memory + 3 * 4096, 8), m.fence(); }), 1u);
  EXPECT_EQ(m.count.flushed_lines, 1u);
  EXPECT_EQ(m.count.fences, 1u);
  EXPECT_EQ(std::memcmp(memory + 3 * 4096, &value, 8), 0);
}

}  // namespace
}  // namespace stele::media
