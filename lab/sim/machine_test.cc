// The quantities of a run against a small tape that is computed by hand, and against each other.
#include <base/scratch_directory.h>
#include <gtest/gtest.h>
#include <sim/config_file.h>
#include <sim/controller/command_lines.h>
#include <sim/controller/command_rules.h>
#include <sim/crash.h>
#include <sim/machine.h>

#include <fstream>

namespace stele::sim {
namespace {

class machine_run : public testing::Test {
 protected:
  run_result run(const machine_config& m, std::span<const std::byte> tape,
                 std::uint64_t warm_up = 0, picoseconds epoch = 0,
                 const std::string& commands = {}) {
    std::ofstream(path_, std::ios::binary)
        .write(reinterpret_cast<const char*>(tape.data()),
               static_cast<std::streamsize>(tape.size()));
    run_options how;
    how.tape = path_;
    how.warm_up_transactions = warm_up;
    how.timeline_interval = epoch;
    how.commands = commands;
    auto done = run_machine(m, how);
    if (!done) throw std::runtime_error(done.error().message);
    return std::move(*done);
  }
  static machine_config kiln_machine(const std::string& name) {
    return *load_machine(STELE_SOURCE_DIR "/lab/configs/" + name + ".toml");
  }
  static double of(const run_result& r, std::string_view path) {
    const quantity* q = find(r, path);
    EXPECT_NE(q, nullptr) << path;
    return q == nullptr ? -1 : q->value;
  }

  const base::scratch_directory dir_;
  const std::string path_ = dir_.file("tape");
};

// Four lines of one channel, each load waiting for the one before: row miss, hit, conflict, hit.
TEST_F(machine_run, counts_and_times_the_reads_of_memory) {
  const auto tape = media::tape_writer::to_memory({.mark_pointers = true});
  for (const std::uint64_t address : {0, 128, 1 << 17}) tape->pointer_load(0, address, 8);
  tape->event(media::tape_op::load, 0, (1 << 17) + 128, 8);
  ASSERT_TRUE(tape->finish());
  const run_result r = run(kiln_machine("kiln-sram-l3"), tape->memory());
  const std::string at = "nonvolatile_memory.";
  EXPECT_EQ(of(r, at + "reads"), 4);
  EXPECT_EQ(of(r, at + "forwarded_reads"), 0);
  EXPECT_EQ(of(r, at + "row_misses"), 1);
  EXPECT_EQ(of(r, at + "row_hits"), 2);
  EXPECT_EQ(of(r, at + "row_conflicts"), 1);
  EXPECT_EQ(of(r, at + "activates"), 2);
  EXPECT_EQ(of(r, at + "bytes"), 4 * 64);
  EXPECT_EQ(of(r, at + "read_latency"), (45 + 25 + 65 + 25) / 4.0);
  EXPECT_NEAR(of(r, at + "read_latency_p50"), 25, 0.25);
  EXPECT_NEAR(of(r, at + "read_latency_p99"), 65, 0.65);
  EXPECT_EQ(of(r, at + "write_latency"), 0);
  // Hits do not wait; the miss waits 20 ns, the conflict 40. Closing a row keeps no bank busy.
  const double ns = static_cast<double>(r.simulated) / 1000;
  EXPECT_NEAR(of(r, at + "read_queue"), (20 + 40) / ns / 2, 0.01);
  EXPECT_EQ(of(r, at + "write_queue"), 0);
  EXPECT_NEAR(of(r, at + "busy_banks"), 100 * (45 + 25 + 45 + 25) / ns / 16, 0.1);
  EXPECT_DOUBLE_EQ(of(r, at + "energy"), 512 * (4 * 0.93 + 2 * 1.00) / 1000);
  EXPECT_DOUBLE_EQ(of(r, at + "bandwidth"), of(r, "rate.nonvolatile_memory"));
  EXPECT_EQ(of(r, "volatile_memory.reads"), 0);
  EXPECT_EQ(of(r, "volatile_memory.read_latency_p99"), 0);
}

// K1: DDR4-2133, row closed 34 cycles of 0.9375 ns, row open 19.
TEST_F(machine_run, has_volatile_data_in_the_dram) {
  const auto tape = media::tape_writer::to_memory({.pool_size = 4096, .mark_pointers = true});
  for (const std::uint64_t address : {0, 128, 256})
    tape->pointer_load(0, media::tape_volatile_at + address, 8);
  tape->event(media::tape_op::store, 0, 64, 8);
  tape->event(media::tape_op::flush, 0, 64, 8);
  tape->event(media::tape_op::stream, 0, media::tape_volatile_at + 1024, 64);
  tape->event(media::tape_op::fence, 0, 0, 0);
  ASSERT_TRUE(tape->finish());
  const run_result r = run(kiln_machine("kiln-sram-l3"), tape->memory());
  EXPECT_EQ(of(r, "volatile_memory.reads"), 3);
  EXPECT_EQ(of(r, "volatile_memory.writes"), 1);
  EXPECT_NEAR(of(r, "volatile_memory.read_latency"), (34 + 19 + 19) * 0.9375 / 3, 0.01);
  EXPECT_EQ(of(r, "nonvolatile_memory.reads"), 1);
  EXPECT_EQ(of(r, "nonvolatile_memory.writes"), 1);
}

TEST_F(machine_run, refuses_a_tape_beyond_the_capacity) {
  const auto tape = media::tape_writer::to_memory({});
  tape->event(media::tape_op::load, 0, std::uint64_t{2} << 30, 8);
  ASSERT_TRUE(tape->finish());
  EXPECT_THROW(
      try { run(kiln_machine("kiln"), tape->memory()); } catch (const std::runtime_error& e) {
        EXPECT_NE(std::string(e.what()).find("nonvolatile_memory.capacity_bytes is 2147483648"),
                  std::string::npos);
        throw;
      },
      std::runtime_error);
  machine_config larger = kiln_machine("kiln");
  larger.nonvolatile_memory.capacity_bytes *= 2;
  EXPECT_EQ(of(run(larger, tape->memory()), "nonvolatile_memory.reads"), 1);
}

// The sum of a quantity over the epochs of a run, weighted by another one if it is a mean.
double sum_of(const time_series& line, const std::string& path, const std::string& weight = {}) {
  const auto column = [&](const std::string& name) {
    return static_cast<std::size_t>(std::ranges::find(line.names, name) - line.names.begin());
  };
  double sum = 0;
  for (const std::vector<double>& sample : line.samples)
    sum += sample.at(column(path)) * (weight.empty() ? 1 : sample.at(column(weight)));
  return sum;
}

// Caches so small that the memory has work.
machine_config with_small_caches(machine_config m) {
  m.l1.size_bytes = 512, m.l2.size_bytes = 512, m.l3.size_bytes = 2048;
  m.l3.banks = 2;
  return m;
}

TEST_F(machine_run, has_epochs_that_add_up_and_change_nothing) {
  machine_config m = with_small_caches(kiln_machine("kiln-sram-l3"));
  m.design.name = "rlog";
  const auto tape = make_tape({.seed = 1});
  const run_result alone = run(m, tape), r = run(m, tape, 0, 1'000'000);
  ASSERT_EQ(alone.quantities.size(), r.quantities.size());
  for (std::size_t i = 0; i < r.quantities.size(); ++i)
    EXPECT_EQ(r.quantities[i].value, alone.quantities[i].value) << r.quantities[i].path;
  ASSERT_GT(r.line.samples.size(), 5u);
  EXPECT_EQ(r.line.samples[1][0], 2000);
  const std::string at = "nonvolatile_memory.";
  EXPECT_GT(of(r, at + "writes"), 0);
  for (const char* counted : {"reads", "writes", "row_hits", "row_conflicts", "bytes", "energy"})
    EXPECT_NEAR(sum_of(r.line, at + counted), of(r, at + counted), 1e-6) << counted;
  // A read that ends in another epoch than it is served in has the other one's weight.
  const double latencies = of(r, at + "read_latency") * of(r, at + "reads");
  EXPECT_NEAR(sum_of(r.line, at + "read_latency", at + "reads"), latencies, 0.01 * latencies);
  // All epochs have the same length but the last.
  const double last = r.line.samples.back()[0] - r.line.samples.end()[-2][0], whole = 1000;
  for (const char* mean : {"write_queue", "busy_banks", "bandwidth"}) {
    const auto i = std::ranges::find(r.line.names, at + mean) - r.line.names.begin();
    const double end = r.line.samples.back()[static_cast<std::size_t>(i)];
    EXPECT_NEAR((sum_of(r.line, at + mean) - end) * whole + end * last,
                of(r, at + mean) * r.line.samples.back()[0], 1e-3)
        << mean;
  }
}

// The warm-up is in no epoch; it ends in the middle of what would have been one.
TEST_F(machine_run, has_epochs_that_begin_when_the_warm_up_ends) {
  const machine_config m = with_small_caches(kiln_machine("kiln-sram-l3"));
  const auto tape = make_tape({.seed = 1});
  const run_result whole = run(m, tape), alone = run(m, tape, 20), r = run(m, tape, 20, 500'000);
  ASSERT_GT(r.line.samples.size(), 3u);
  EXPECT_EQ(r.line.samples[0][0], 500);
  EXPECT_EQ(r.line.samples[1][0], 1000);
  // The first epoch has all that came in its time, as two epochs of half its length have.
  for (const picoseconds half : {250'000, 2'000'000, 7'000'000}) {
    const time_series line = run(m, tape, 20, 2 * half).line, two = run(m, tape, 20, half).line;
    for (const char* counted : {"run.loads", "l1.hits", "l3.misses"})
      EXPECT_EQ(sum_of({0, line.names, {line.samples[0]}}, counted),
                sum_of({0, two.names, {two.samples[0], two.samples[1]}}, counted))
          << half;
  }
  const std::string at = "nonvolatile_memory.";
  EXPECT_LT(of(r, at + "reads"), of(whole, at + "reads"));
  for (std::size_t i = 0; i < alone.quantities.size(); ++i) {
    const auto& [path, value, unit] = r.quantities[i];
    EXPECT_EQ(value, alone.quantities[i].value) << path;
    if (unit.empty() && !path.starts_with("ratio.")) {
      EXPECT_EQ(sum_of(r.line, path), value) << path;
    }
  }
  EXPECT_NEAR(sum_of(r.line, at + "energy"), of(r, at + "energy"), 1e-6);
  for (const char* queue : {"read_queue_longest", "write_queue_longest"}) {
    double most = 0;
    for (const auto& sample : r.line.samples)
      most = std::max(most, sum_of({0, r.line.names, {sample}}, at + queue));
    EXPECT_EQ(of(r, at + queue), most) << queue;
    EXPECT_GT(most, 0) << queue;
  }
}

TEST_F(machine_run, writes_the_commands_of_each_of_its_memories) {
  machine_config m = with_small_caches(kiln_machine("kiln-sram-l3"));
  m.volatile_memory.refresh_interval_ns = 4 * m.volatile_memory.refresh_time_ns;
  const auto tape = media::tape_writer::to_memory({});
  for (std::uint64_t i = 0; i < 400; ++i)
    tape->event(i % 3 == 0 ? media::tape_op::store : media::tape_op::load, 0,
                (i % 2 ? volatile_memory_at : 0) + i * 8192 % (1 << 20), 8);
  ASSERT_TRUE(tape->finish());
  const run_result r = run(m, tape->memory(), 0, 0, path_);
  for (const auto& [name, memory] : {std::pair{"nonvolatile_memory", &m.nonvolatile_memory},
                                     {"volatile_memory", &m.volatile_memory}}) {
    const memory_config c = in_cycles(*memory);
    const auto read = commands_of(path_ + "." + name, c);
    EXPECT_EQ(command_rules::broken(c, read), std::vector<std::string>{}) << name;
    for (const auto& [what, counted] : {std::pair{command::activate, ".activates"},
                                        {command::precharge, ".precharges"},
                                        {command::read, ".reads"},
                                        {command::write, ".writes"}})
      EXPECT_EQ(std::ranges::count(read, what, &command_report::what),
                of(r, name + std::string(counted)))
          << name << counted;
    EXPECT_GT(of(r, name + std::string(".writes")), 20);
    EXPECT_EQ(std::ranges::count(read, command::refresh, &command_report::what) > 2,
              c.refresh_interval_ns > 0);
  }
  EXPECT_THROW(run(m, tape->memory(), 0, 0, "/no/where"), std::runtime_error);
}

// Reads that are served from queued writes are in the latencies, but not in the reads.
TEST_F(machine_run, has_histograms_of_all_latencies) {
  const auto tape = make_tape({.seed = 1});
  const machine_config m = with_small_caches(kiln_machine("kiln-sram-l3"));
  for (const unsigned warm_up : {0, 20}) {
    const run_result r = run(m, tape, warm_up);
    ASSERT_EQ(r.histograms.size(), 4u);
    const std::string at = "nonvolatile_memory.";
    EXPECT_EQ(r.histograms[0].path, at + "read_latency");
    EXPECT_EQ(r.histograms[1].path, at + "write_latency");
    for (const latency_histogram* h : {&r.histograms[0], &r.histograms[1]}) {
      double count = 0, least = 0, most = 0;
      for (const latency_class& c : h->classes) {
        count += static_cast<double>(c.count);
        least += static_cast<double>(c.count) * c.from_ns;
        most += static_cast<double>(c.count) * c.below_ns;
      }
      EXPECT_GE(of(r, h->path), least / count);
      EXPECT_LT(of(r, h->path), most / count);
    }
    EXPECT_LE(of(r, at + "write_latency_p50"), of(r, at + "write_latency_p99"));
    EXPECT_GT(of(r, at + "write_latency_p50"), 0);
  }
}

// D8
TEST_F(machine_run, counts_the_wear_of_cells_that_wear_out) {
  const auto tape = media::tape_writer::to_memory({.pool_size = 4096});
  for (const std::uint64_t line : {3, 2, 3})
    for (const auto op : {media::tape_op::stream, media::tape_op::fence})
      tape->event(op, 0, line * 64, 64);
  ASSERT_TRUE(tape->finish());
  machine_config m = kiln_machine("dp2");
  m.nonvolatile_memory.endurance_writes = 1e8;
  const run_result r = run(m, tape->memory());
  const std::string at = "nonvolatile_memory.wear.";
  EXPECT_EQ(of(r, at + "data"), 3);
  EXPECT_EQ(of(r, at + "most_writes"), 2);
  EXPECT_EQ(of(r, at + "most_worn_line"), 3 * 64);
  EXPECT_EQ(of(r, at + "longer_by_equation_1"), 0);
  EXPECT_GT(of(r, at + "lifetime"), 0);
  EXPECT_EQ(find(r, "volatile_memory.wear.data"), nullptr);
  EXPECT_EQ(find(run(kiln_machine("kiln"), tape->memory()), at + "data"), nullptr);
}

// D5
TEST_F(machine_run, writes_its_log_with_the_retention_of_logs) {
  machine_config m = kiln_machine("dp2");
  m.design.isolation = "mutex";
  const auto tape = make_tape({.threads = 1, .transactions = 50});
  const auto time_of = [&](const std::string& design, double retention_s) {
    m.design.name = design;
    m.nonvolatile_memory.log_retention_s = retention_s;
    return run(m, tape).simulated;
  };
  EXPECT_LT(time_of("rlog", 1e2), time_of("rlog", 1e4));
  EXPECT_LT(time_of("rlog", 1e4), time_of("rlog", 1e7));
  EXPECT_EQ(time_of("native", 1e2), time_of("native", 1e7));
}

// D2. A transaction of rlog here is a line of records and a line with the commit record, each
// behind a barrier, and takes two write times. Nothing tells the commit record from the records by
// its address, so no rule may save any of them. The run lasts until they are persistent.
TEST_F(machine_run, no_rule_lets_the_log_of_a_design_pass_barriers) {
  constexpr unsigned transactions = 40;
  const auto tape = media::tape_writer::to_memory({});
  for (unsigned i = 0; i < transactions; ++i) {
    tape->event(media::tape_op::tx_begin, 0, 0, 0);
    tape->event(media::tape_op::store, 0, std::uint64_t{64} * i, 8);
    tape->event(media::tape_op::tx_commit, 0, 0, 0);
  }
  ASSERT_TRUE(tape->finish());
  machine_config m = kiln_machine("dp2");
  m.design.isolation = "mutex";
  const auto write_times = [&](const std::string& scheduler, double log_retention_s = 1e7) {
    m.nonvolatile_memory.scheduler = scheduler;
    m.nonvolatile_memory.log_retention_s = log_retention_s;
    return static_cast<double>(run(m, tape->memory()).simulated) / from_ns(1425);
  };
  for (const char* scheduler : {"strict", "rule1", "rule2", "rules"})
    EXPECT_NEAR(write_times(scheduler), 2 * transactions, 1) << scheduler;
  EXPECT_NEAR(write_times("rules", 1e4), 2 * transactions / 1.7, 1);
  EXPECT_LT(write_times("ideal"), transactions);
}

// K11
TEST_F(machine_run, pays_for_a_line_that_enters_the_shared_cache_as_for_a_write) {
  const auto tape = media::tape_writer::to_memory({});
  for (std::uint64_t line = 0; line < 3; ++line) tape->event(media::tape_op::load, 0, line * 64, 8);
  ASSERT_TRUE(tape->finish());
  machine_config m = crash_machines().back();
  m.design.name = "native";
  m.l3.read_energy_nj = 0.25, m.l3.write_energy_nj = 0.5;
  m.processor_dynamic_peak_w = 0;
  const run_result r = run(m, tape->memory());
  EXPECT_EQ(of(r, "l3.misses"), 3);
  EXPECT_EQ(of(r, "l3.reads"), 0);
  EXPECT_EQ(of(r, "l3.writes"), 3);
  EXPECT_DOUBLE_EQ(of(r, "energy.processor"), 3 * 0.5);
}

// K11: the first level has one line; the second two. Line 0 is stored to and leaves both, newer.
TEST_F(machine_run, pays_for_each_access_of_its_private_caches) {
  const auto tape = media::tape_writer::to_memory({.mark_pointers = true});
  tape->event(media::tape_op::store, 0, 0, 8);  // enters both; stored to
  tape->pointer_load(0, 0, 8);                  // hits
  tape->pointer_load(0, 64, 8);                 // enters both; line 0 goes to the second
  tape->pointer_load(0, 0, 8);                  // comes from the second
  tape->pointer_load(0, 128, 8);                // enters both; of the second, line 64 leaves
  tape->pointer_load(0, 64, 8);                 // enters both; of the second, line 0 leaves
  ASSERT_TRUE(tape->finish());
  machine_config m = crash_machines().back();
  m.design.name = "native";
  m.processor_dynamic_peak_w = 0, m.l3.read_energy_nj = m.l3.write_energy_nj = 0;
  m.l1.size_bytes = 64, m.l1.ways = 1, m.l2.size_bytes = 128, m.l2.ways = 2;
  m.l1.read_energy_nj = 1, m.l1.write_energy_nj = 10;
  m.l2.read_energy_nj = 100, m.l2.write_energy_nj = 1000;
  const run_result r = run(m, tape->memory());
  EXPECT_EQ(of(r, "l1.reads"), 5 + 1);
  EXPECT_EQ(of(r, "l1.writes"), 1 + 5);
  EXPECT_EQ(of(r, "l2.reads"), 1 + 1);
  EXPECT_EQ(of(r, "l2.writes"), 4 + 1);
  EXPECT_DOUBLE_EQ(of(r, "energy.caches"), 6 * 1 + 6 * 10 + 2 * 100 + 5 * 1000);
  EXPECT_DOUBLE_EQ(of(r, "energy.processor"), of(r, "energy.caches"));
}

// A store that the second level has, and the end of its transaction, which waits for it.
TEST_F(machine_run, has_a_stores_latencies_where_a_thread_waits_for_a_store) {
  const auto tape = media::tape_writer::to_memory({});
  for (const std::uint64_t line : {0, 1, 0}) {
    tape->event(media::tape_op::tx_begin, 0, 0, 0);
    tape->event(media::tape_op::store, 0, line * 64, 8);
    tape->event(media::tape_op::tx_commit, 0, 0, 0);
  }
  ASSERT_TRUE(tape->finish());
  machine_config m = crash_machines().back();
  m.design.name = "native", m.design.isolation = "none";
  m.l1.size_bytes = 64, m.l1.ways = 1;
  const picoseconds before = run(m, tape->memory()).simulated;
  m.l1.write_latency_ns += 1;
  EXPECT_EQ(run(m, tape->memory()).simulated, before + 3 * 1000);
  m.l2.write_latency_ns += 10;
  EXPECT_EQ(run(m, tape->memory()).simulated, before + 3 * 11'000);
}

// K2: 14 bits of a line's 512.
TEST_F(machine_run, reports_the_overhead_of_kilns_tags) {
  const run_result r = run(kiln_machine("kiln"), make_tape({.transactions = 1}));
  EXPECT_NEAR(of(r, "kiln.tag_overhead"), 2.7, 0.05);
  EXPECT_EQ(find(r, "kiln.tag_overhead")->unit, "%");
}

// K11
TEST_F(machine_run, has_the_energy_of_its_counts_with_and_without_a_warm_up) {
  const machine_config m = with_small_caches(kiln_machine("kiln-sram-l3"));
  const auto tape = make_tape({.seed = 1});
  for (const unsigned warm_up : {0, 20}) {
    const run_result r = run(m, tape, warm_up);
    const std::string at = "nonvolatile_memory.";
    const double reads = of(r, at + "reads"), writes = of(r, at + "writes");
    EXPECT_GT(reads, 0);
    EXPECT_GT(writes, 0);
    EXPECT_GT(of(r, at + "row_hits"), 0);
    EXPECT_EQ(of(r, at + "row_hits") + of(r, at + "row_misses") + of(r, at + "row_conflicts"),
              reads + writes);
    EXPECT_NEAR(
        of(r, at + "energy"),
        512 * (reads * 0.93 + writes * (1.02 + 2.89) + of(r, at + "activates") * 1.00) / 1000,
        1e-6);
    EXPECT_NEAR(of(r, "energy.memory"), of(r, at + "energy"), 1e-6);  // DRAM's is not counted
    const double instruction_nj = 149 / (8 * 2.5 * m.cores.issue_width);
    EXPECT_NEAR(of(r, "energy.processor"),
                of(r, "run.instructions") * instruction_nj +
                    (of(r, "l3.reads") + of(r, "l3.writes")) * 0.58,
                1e-6);
  }
}

// Memories that draw the same current whatever they do. Slow writes end after the last commit, and
// their energy counts until then; before quick ones end, threads have run ahead of the events.
TEST_F(machine_run, draws_the_power_of_its_memories_over_the_time_of_their_energy) {
  machine_config m = with_small_caches(kiln_machine("kiln-sram-l3"));
  memory_config& c = m.nonvolatile_memory;
  c.row_buffer_read_pj_per_bit = c.row_buffer_write_pj_per_bit = 0;
  c.array_read_pj_per_bit = c.array_write_pj_per_bit = 0;
  c.vdd_v = 1.5, c.devices = 4;
  c.idd0_ma = c.idd2n_ma = c.idd3n_ma = c.idd4r_ma = c.idd4w_ma = c.idd5b_ma = 50;
  c.write_back_rows = false;  // each write ends in the cells
  const auto tape = make_tape({.seed = 1});
  for (const auto& [warm_up, pulse_ns] : {std::pair{0, 2000}, {20, 2000}, {20, 11}}) {
    c.write_pulse_ns = pulse_ns;
    const run_result r = run(m, tape, static_cast<unsigned>(warm_up), 1'000'000);
    const double watts = 1.5 * 4 * 0.05 * c.controllers * c.channels * c.ranks;
    EXPECT_NEAR(of(r, "power.memory"), watts, 1e-9) << warm_up;
    const double after_ns = r.line.samples.back()[0] - static_cast<double>(r.simulated) / 1000;
    EXPECT_GE(after_ns, pulse_ns == 2000 ? 10 : 0);
    EXPECT_NEAR(of(r, "power.processor") * r.line.samples.back()[0], of(r, "energy.processor"),
                1e-6);
  }
}

// The thread computes until half a second before the latest time; its load then takes 0.9 s.
TEST_F(machine_run, refuses_to_go_beyond_the_latest_time) {
  machine_config m = kiln_machine("kiln-sram-l3");
  m.cores.clock_ghz = m.cores.issue_width = 1;
  m.nonvolatile_memory.read_latency_ns = 9e8;
  const auto sentence_of = [&](std::uint64_t instructions) -> std::string {
    const auto tape = media::tape_writer::to_memory({.pool_size = 4096});
    tape->event(media::tape_op::compute, 0, instructions, 0);
    tape->event(media::tape_op::load, 0, 0, 8);
    EXPECT_TRUE(tape->finish());
    try {
      run(m, tape->memory());
    } catch (const std::runtime_error& e) {
      return e.what();
    }
    return "no error";
  };
  EXPECT_EQ(sentence_of(latest / 1000 - 1'500'000'000), "no error");
  EXPECT_EQ(sentence_of(latest / 1000 - 500'000'000)
                .find("the run goes beyond 53 days of simulated time; give"),
            0u);
}

// More than a gigabyte of lines in the logs of both threads, for which there are addresses enough.
TEST_F(machine_run, refuses_logs_in_pcm_whose_ages_it_could_not_keep) {
  const auto tape = media::tape_writer::to_memory({.pool_size = 4096});
  for (const unsigned thread : {0, 1}) tape->event(media::tape_op::load, thread, 0, 8);
  ASSERT_TRUE(tape->finish());
  machine_config m = kiln_machine("dp2");
  m.design.log_bytes = (std::uint64_t{1} << 29) + 64;
  ASSERT_TRUE(check_machine(m));
  EXPECT_THROW(
      try { run(m, tape->memory()); } catch (const std::runtime_error& e) {
        EXPECT_NE(std::string(e.what()).find("the logs of 2 threads in pcm"), std::string::npos);
        throw;
      },
      std::runtime_error);
}

TEST_F(machine_run, has_the_energy_of_both_memories) {
  machine_config m = kiln_machine("kiln-sram-l3");
  m.volatile_memory.row_buffer_read_pj_per_bit = 3;
  const auto tape = media::tape_writer::to_memory({.pool_size = 4096});
  for (const std::uint64_t at : {std::uint64_t{0}, media::tape_volatile_at})
    tape->event(media::tape_op::load, 0, at, 8);
  ASSERT_TRUE(tape->finish());
  const run_result r = run(m, tape->memory());
  const double volatile_nj = of(r, "volatile_memory.energy");
  EXPECT_GE(volatile_nj, 3 * 512 / 1000.0);
  EXPECT_DOUBLE_EQ(of(r, "energy.memory"), of(r, "nonvolatile_memory.energy") + volatile_nj);
}

}  // namespace
}  // namespace stele::sim
