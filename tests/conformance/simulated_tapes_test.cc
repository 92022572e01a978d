// Tapes of real mechanisms on simulated machines: every run takes time, reads memory and moves no
// more than the memory's banks and buses can; on the machine of DP2 fences are barriers.
#include <base/scratch_directory.h>
#include <gtest/gtest.h>
#include <sim/config_file.h>
#include <sim/machine.h>
#include <workloads/record.h>

namespace stele {
namespace {

sim::machine_config machine_of(const std::string& name) {
  auto loaded = sim::load_machine(STELE_SOURCE_DIR "/lab/configs/" + name + ".toml");
  if (!loaded) throw failure(loaded.error());
  loaded->design.name = "native";  // the mechanism and its isolation are on the tape
  loaded->design.isolation = "none";
  return std::move(*loaded);
}

// What the memory can move at most: what its buses can, and what its banks can write past a bus
// that is not modelled.
double bytes_per_ns(const sim::memory_config& m) {
  double read = 0, write = 0;
  for (const auto& rule : m.timing) {
    if (rule.level != "channel" || rule.latency_ns == 0) continue;
    const double rate = 64 / rule.latency_ns * m.channels * m.controllers;
    if (rule.preceding == "read" && rule.following == "read") read = rate;
    if (rule.preceding == "write" && rule.following == "write") write = rate;
  }
  if (write != 0) return std::max(read, write);
  double speedup = 1;
  for (const auto& r : m.retention) speedup = std::max(speedup, r.speedup);
  const double banks = m.ranks * m.banks * m.channels * m.controllers;
  return read + banks * 64 / (m.iterations * m.iteration_ns / speedup);
}

class simulated_tapes : public ::testing::Test {
 protected:
  void record(const std::string& mechanism, unsigned threads) const {
    workloads::recording_options r{.workload = "hash", .mechanism = mechanism, .dir = dir_.path()};
    r.content.keys = 1 << 10;
    r.operations = 600;
    r.threads = threads;
    r.record_bytes = false;
    const auto tape = workloads::record(r, [&](const media::tape_options& shape) {
      return media::tape_writer::to_file(path_, shape);
    });
    ASSERT_TRUE(tape) << tape.error().message;
  }

  sim::run_result run(const sim::machine_config& m) const {
    sim::run_options o;
    o.tape = path_;
    auto r = sim::run_machine(m, o);
    if (!r) throw failure(r.error());
    EXPECT_GT(r->simulated, 0);
    EXPECT_EQ(value(*r, "run.operations"), 600);
    EXPECT_GT(value(*r, "rate.operations"), 0);
    EXPECT_GT(value(*r, "run.loads"), 600) << "an operation loads more than one word";
    EXPECT_GT(value(*r, "nonvolatile_memory.reads"), 0);
    EXPECT_GT(value(*r, "rate.nonvolatile_memory"), 0);
    EXPECT_LE(value(*r, "rate.nonvolatile_memory"), bytes_per_ns(m.nonvolatile_memory));
    return *r;
  }
  static double value(const sim::run_result& r, std::string_view path) {
    const sim::quantity* const q = sim::find(r, path);
    return q == nullptr ? 0 : q->value;
  }

  // The time of the tape on the machine of DP2.
  double dp2_ns(const std::string& scheduler, double log_retention_s = 1e7) const {
    sim::machine_config m = machine_of("dp2");
    m.nonvolatile_memory.scheduler = scheduler;
    m.nonvolatile_memory.log_retention_s = log_retention_s;
    return static_cast<double>(run(m).simulated) / 1000;
  }

  base::scratch_directory dir_;
  std::string path_ = dir_.file("tape");
};

TEST_F(simulated_tapes, of_each_kind_of_mechanism_take_time_and_read_memory) {
  for (const char* mechanism : {"default", "redo", "undo", "log_structured"})
    for (const unsigned threads : {1u, 3u}) {
      SCOPED_TRACE(std::string(mechanism) + ", threads: " + std::to_string(threads));
      record(mechanism, threads);
      for (const char* machine : {"kiln", "dp2", "ddr4-2400"}) run(machine_of(machine));
    }
}

// Earlier programs marked all operations on thread 0.
TEST_F(simulated_tapes, with_marks_on_another_thread_than_the_accesses_take_time) {
  auto tape = std::move(*media::tape_writer::to_file(path_, {.pool_size = 1 << 20}));
  for (std::uint64_t n = 0; n < 100; ++n) {
    const media::tape_writer::scoped_lock lock(*tape);
    tape->event(media::tape_op::invoked, 0, n, 0);
    tape->event(media::tape_op::store, 1, n * 4096, 8);
    tape->event(media::tape_op::flush, 1, n * 4096, 8);
    tape->event(media::tape_op::fence, 1, 0, 0);
    tape->event(media::tape_op::returned, 0, n, 0);
  }
  ASSERT_TRUE(tape->finish());
  sim::run_options o;
  o.tape = path_;
  const auto r = sim::run_machine(machine_of("kiln"), o);
  ASSERT_TRUE(r) << r.error().message;
  EXPECT_GT(r->simulated, sim::from_ns(100 * 65)) << "a line is read and written for each";
  EXPECT_GT(value(*r, "rate.operations"), 0);
}

TEST_F(simulated_tapes, of_several_threads_overlap) {
  record("redo", 1);
  const auto alone = run(machine_of("kiln")).simulated;
  record("redo", 4);
  EXPECT_LT(run(machine_of("kiln")).simulated, alone * 3 / 4) << "the same number of operations";
}

// Sun, Lu, Shu, "DP2" (2015), sections 3.3 and 4.2: either rule saves time, both save more, and so
// does a shorter retention of logs.
TEST_F(simulated_tapes, of_base_take_the_time_that_dp2_s_rules_and_retention_leave) {
  for (const unsigned threads : {1u, 4u}) {
    SCOPED_TRACE(threads);
    record("base", threads);
    const double strict = dp2_ns("strict"), rule1 = dp2_ns("rule1"), rule2 = dp2_ns("rule2"),
                 both = dp2_ns("rules"), none = dp2_ns("ideal");
    EXPECT_LT(rule1, 0.9 * strict);
    EXPECT_LE(rule2, strict);
    EXPECT_LE(both, rule1);
    EXPECT_LT(none, both);
    EXPECT_TRUE(threads == 1 || rule2 < strict) << "rule 2 gains by other threads' data";
    EXPECT_LT(dp2_ns("strict", 1e4), 0.9 * strict);
    EXPECT_LT(dp2_ns("rules", 1e4), both);
  }
}

}  // namespace
}  // namespace stele
