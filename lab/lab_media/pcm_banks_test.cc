// Emulated banks: how long waiting fences take, the cost of writes to one bank and to several,
// which writes may pass a barrier, and that a full queue delays its writer. Time stands still
// unless somebody waits.
#include <gtest/gtest.h>
#include <lab_media/banked.h>
#include <lab_media/pcm_banks.h>
#include <media/adr.h>

#include <algorithm>
#include <cstring>

namespace stele::media {
namespace {

constexpr std::uint32_t write_ns = 1000;
constexpr pcm_layout layout{.log_offset = 4096,
                            .log_size = 4096,
                            .home_offset = 3 * 4096,
                            .commit_offset = 64,
                            .commit_size = 128};
constexpr std::uint64_t records = (4096 + 192) / 64, commit = (4096 + 64) / 64,
                        home = 3 * 4096 / 64;

class hand_clock final : public pcm_clock {
 public:
  std::uint64_t now_ns() noexcept override { return now_; }
  void wait_until(std::uint64_t when) noexcept override { now_ = std::max(now_, when); }
  double writes() const noexcept { return static_cast<double>(now_) / write_ns; }

 private:
  std::uint64_t now_ = 0;
};

constexpr pcm_model waiting{.banks = 4, .queue_entries = 4, .write_ns = write_ns, .waits = true};

TEST(pcm_banks, lines_of_different_banks_are_written_at_once) {
  for (const auto& [step, writes] : {std::pair{1, 1.0}, {4, 4.0}}) {
    hand_clock time;
    pcm_banks banks(waiting, layout, 2, time);
    for (int i = 0; i < 4; ++i) banks.write(0, home + static_cast<std::uint64_t>(i * step));
    EXPECT_EQ(time.writes(), 0) << "nobody waits for a write that its bank has room for";
    banks.fence(0);
    EXPECT_EQ(time.writes(), writes);
  }
}

TEST(pcm_banks, a_fence_without_writes_takes_no_time) {
  hand_clock time;
  pcm_banks banks(waiting, layout, 2, time);
  banks.write(0, home);
  banks.fence(1);
  EXPECT_EQ(time.writes(), 0);
}

// 100 ns of work before each call are 350, and a pause is no work.
TEST(pcm_banks, a_slower_processor_takes_so_many_times_as_long_between_calls) {
  hand_clock time;
  pcm_model model = waiting;
  model.slower = 3.5;
  pcm_banks banks(model, layout, 1, time);
  const auto work = [&](std::uint64_t ns) { time.wait_until(time.now_ns() + ns); };
  for (std::uint64_t i = 1; i <= 4; ++i) {
    work(100), banks.write(0, home);
    banks.fence(0);
    EXPECT_EQ(time.now_ns(), i * (350 + write_ns));
  }
  const std::uint64_t before = time.now_ns();
  work(100), banks.fence(0);
  EXPECT_EQ(time.now_ns(), before + 350) << "a fence without writes ends work too";
  work(2 * pcm_model::pause_ns), banks.fence(0);
  EXPECT_EQ(time.now_ns(), before + 350 + 2 * pcm_model::pause_ns);
}

// When the last of `count` transactions is persistent. Each is records, commit line, home and
// truncation, with an ordering fence after each.
double transactions_take(unsigned count, bool rules, double log_speedup = 1,
                         const pcm_layout& logs = layout) {
  hand_clock time;
  const pcm_model model{.banks = 8,
                        .queue_entries = 64,
                        .write_ns = write_ns,
                        .log_speedup = log_speedup,
                        .rules = rules};
  pcm_banks banks(model, logs, 2, time);
  for (unsigned i = 0; i < count; ++i) {
    const std::uint64_t slot = i % 2;
    for (const std::uint64_t line :
         {records + 1 + slot * 30, commit + slot, home + 4, commit + slot})
      banks.write(0, line), banks.fence(0);
  }
  // A bank's queue has room when all but 63 of its writes are done. The first of these writes is
  // done one write time after all others.
  for (unsigned i = 0; i < 64; ++i) banks.write(0, home + 7);
  banks.write(0, home + 7);
  return time.writes() - 1;
}

// D7
TEST(pcm_banks, rules_let_records_pass_barriers) {
  EXPECT_EQ(transactions_take(8, false), 4 * 8);
  EXPECT_EQ(transactions_take(8, true), 3 * 8 + 1)
      << "commit line, home and cut keep their order; the first record has nothing to pass";
}

TEST(pcm_banks, writes_to_logs_are_faster_with_a_shorter_retention) {
  EXPECT_EQ(transactions_take(8, false, 4.0), 8 * (1 + 3.0 / 4));
}

// D2. Nothing tells which of its lines commits.
TEST(pcm_banks, no_line_of_a_log_without_commit_lines_passes_a_barrier) {
  pcm_layout logs = layout;
  logs.commit_offset = logs.commit_size = 0;
  EXPECT_EQ(transactions_take(8, true, 1, logs), 4 * 8);
  EXPECT_EQ(transactions_take(8, true, 4.0, logs), 8 * (1 + 3.0 / 4)) << "kept as a log";
  EXPECT_EQ(transactions_take(8, true, 4.0, {}), 4 * 8) << "no logs";
}

TEST(pcm_banks, a_full_queue_holds_its_writer_up) {
  hand_clock time;
  pcm_model model = waiting;
  model.waits = false;
  pcm_banks banks(model, layout, 1, time);
  for (const double until : {0, 0, 0, 0, 1, 2, 3}) {
    banks.write(0, home);
    EXPECT_EQ(time.writes(), until);
  }
}

TEST(banked, counts_as_what_it_slows_down_and_stores_what_it_is_given) {
  alignas(64) static std::byte memory[4096 * 4];
  banked<adr>::shared shared(memory, waiting, layout, 2);
  banked<adr> m(shared, 0);
  const std::uint64_t value = 42;
  m.store(memory + 3 * 4096, &value, 8);
  const std::uint64_t begin = steady_pcm_clock().now_ns();
  m.flush(memory + 3 * 4096, 8), m.fence();
  EXPECT_GE(steady_pcm_clock().now_ns() - begin, write_ns);
  EXPECT_EQ(m.count.flushed_lines, 1u);
  EXPECT_EQ(m.count.fences, 1u);
  EXPECT_EQ(std::memcmp(memory + 3 * 4096, &value, 8), 0);
}

}  // namespace
}  // namespace stele::media
