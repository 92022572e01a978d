// Devices behave as their publications say.
#include <sim/controller/memory_fixture.h>
#include <sim/dp2/pcm.h>

namespace stele::sim {
namespace {

// K1. A row that was written goes to the cells when it closes.
TEST(stt_mram, has_the_latencies_of_kilns_table_2) {
  memory_fixture bed(machine_of("kiln").nonvolatile_memory);
  const auto latency = [&](access kind, std::uint32_t row, unsigned column) {
    const picoseconds from = bed.events.now();
    const unsigned token = bed.submit(kind, bed.address(0, row, column));
    bed.run();
    return bed.completed[token] - from;
  };
  latency(access::read, 1, 0);
  EXPECT_EQ(latency(access::read, 1, 1), 25'000u);
  EXPECT_EQ(latency(access::read, 2, 0), 65'000u);
  EXPECT_EQ(latency(access::write, 2, 1), 25'000u);
  EXPECT_EQ(latency(access::write, 2, 2), 25'000u);
  EXPECT_EQ(latency(access::write, 3, 0), 76'000u);
  EXPECT_EQ(latency(access::write, 4, 0), 76'000u);
}

// D4
TEST(pcm, writes_take_iterations_over_the_speedup) {
  const std::pair<double, picoseconds> rows[] = {{1e7, 1'425'000}, {1e6, 1'187'500},
                                                 {1e5, 950'000},   {1e4, 838'235},
                                                 {1e3, 750'000},   {1e2, 678'571}};
  for (const auto& [retention_s, pulse] : rows) {
    memory_config c = dp2_memory("strict");
    c.data_retention_s = retention_s;
    memory_fixture bed(c);
    const unsigned w = bed.write(0, 1);
    bed.run();
    EXPECT_EQ(bed.completed[w], pulse) << retention_s;
  }
}

TEST(pcm, an_unknown_retention_is_refused_with_the_known) {
  memory_config c = dp2_memory("strict");
  c.log_retention_s = 5e4;
  event_queue events;
  const auto made = make_memory(events, c);
  ASSERT_FALSE(made);
  EXPECT_NE(
      made.error().message.find("50000 s; known are (s) 1e+07, 1e+06, 100000, 10000, 1000, 100"),
      std::string::npos)
      << made.error().message;
}

// D8
TEST(pcm, endurance_is_equation_1) {
  EXPECT_NEAR(endurance(2.0 / 3, 1.7), 1.4667, 5e-5);
  EXPECT_EQ(endurance(0, 1.7), 1);
  EXPECT_EQ(endurance(1, 2.1), 2.1);
  EXPECT_EQ(endurance(0.25, 1.7, 1.2), 0.25 * 1.7 + 0.75 * 1.2);
}

// Of three log writes and one of data, with 10 iterations each at speed-up 1, 40 in all: at 1.5 and
// 1 it is 30.
TEST(pcm, endurance_by_iterations_is_their_ratio) {
  EXPECT_DOUBLE_EQ(endurance_by_iterations(0.75, 1.5), 40.0 / 30);
  EXPECT_DOUBLE_EQ(endurance_by_iterations(0.75, 1.5, 2), 40.0 / 25);
}

TEST(pcm, a_log_lies_spread_over_all_banks) {
  memory_fixture bed(dp2_memory("strict"));
  for (unsigned i = 0; i < 64; ++i) bed.submit(access::write, i * 64);
  bed.run();
  for (const std::uint64_t writes : bed.statistics().bank_writes) EXPECT_EQ(writes, 2u);
  EXPECT_EQ(bed.events.now(), 2 * 1'425'000u);
}

// Row closed: activate 17, column 17, burst 4 cycles of 1/1.2 ns; the other 15, 15, 4 of 0.9375 ns.
TEST(ddr4, an_idle_read_takes_row_column_and_burst) {
  memory_fixture bed(machine_of("ddr4-2400").nonvolatile_memory);
  const unsigned r = bed.read(0, 1);
  bed.run();
  EXPECT_NEAR(static_cast<double>(bed.completed[r]), 38 * 833, 2);
  memory_fixture slower(machine_of("kiln").volatile_memory);
  const unsigned s = slower.read(0, 1);
  slower.run();
  EXPECT_NEAR(static_cast<double>(slower.completed[s]), 34 * 0.9375 * 1000, 2);
}

TEST(ddr4, a_stream_comes_near_the_bus) {
  memory_fixture bed(machine_of("ddr4-2400").nonvolatile_memory);
  for (unsigned i = 0; i < 20'000; ++i) bed.submit(access::read, i * 64);
  bed.run();
  const double gb_per_s = 20'000 * 64 / (static_cast<double>(bed.events.now()) / 1000);
  EXPECT_LT(gb_per_s, 19.2);
  EXPECT_GT(gb_per_s, 19.2 * 0.9);
}

}  // namespace
}  // namespace stele::sim
