// The machine of DP2 and a tape with logs and fences: its fences are barriers and its logs are
// known to the controller, so a run takes as many write times as the controller alone
// (pcm_test.cc).
#include <gtest/gtest.h>
#include <sim/controller/memory_fixture.h>
#include <sim/simulation.h>

namespace stele::sim {
namespace {

using media::tape_op;

// Thread 0 has the log, thread 1 what belongs to no log.
constexpr media::tape_options shape_of_tape{.pool_size = 1 << 16,
                                            .home_offset = 2 * 4096,
                                            .log_offset = 4096,
                                            .log_size = 4096,
                                            .commit_offset = 64,
                                            .commit_size = 128};

class tape_of_transactions {
 public:
  explicit tape_of_transactions(unsigned count)
      : tape_(media::tape_writer::to_memory(shape_of_tape)) {
    const media::tape_writer::scoped_lock lock(*tape_);
    for (unsigned i = 0; i < count; ++i) {
      const std::uint64_t slot = i % 2, commit = 4096 + 64 + slot * 64;
      tape_->event(tape_op::invoked, 0, i, 0);
      write(0, 4096 + 192 + slot * 1920);
      write(0, commit);
      write(0, shape_of_tape.home_offset + std::uint64_t{64} * 9);
      write(1, commit);  // the truncation
      tape_->event(tape_op::returned, 0, i, 0);
    }
  }
  std::span<const std::byte> bytes() {
    EXPECT_TRUE(tape_->finish());
    return tape_->memory();
  }

 private:
  void write(unsigned thread, std::uint64_t address) {
    tape_->event(tape_op::store, thread, address, 64);
    tape_->event(tape_op::flush, thread, address, 64);
    tape_->event(tape_op::fence, thread, 0, 0);
  }

  std::unique_ptr<media::tape_writer> tape_;
};

constexpr unsigned run_length = 200;

double machine_write_times(const std::string& scheduler, double log_retention_s = 1e7) {
  tape_of_transactions tape(run_length);
  machine_config m = machine_of("dp2");
  m.nonvolatile_memory.scheduler = scheduler;
  m.nonvolatile_memory.log_retention_s = log_retention_s;
  auto s = simulation::make(m, std::move(*feed::over(tape.bytes(), 12)), {});
  EXPECT_TRUE(s) << s.error().message;
  while ((*s)->advance(1 << 16)) {
  }
  EXPECT_TRUE((*s)->finish());
  EXPECT_EQ((*s)->threads[0]->counts.operations, run_length);
  EXPECT_EQ((*s)->memories->nonvolatile->statistics(0).writes, 4 * run_length);
  return static_cast<double>((*s)->threads[0]->time()) / from_ns(1425);
}

TEST(dp2_machine, strict_order_takes_four_write_times_a_transaction) {
  EXPECT_NEAR(machine_write_times("strict"), 4 * run_length, 2);
}

TEST(dp2_machine, a_rule_saves_what_it_saves_at_the_controller) {
  EXPECT_NEAR(machine_write_times("rule1"), 3 * run_length, 3);
  EXPECT_NEAR(machine_write_times("rules"), 3 * run_length, 3);
  EXPECT_NEAR(machine_write_times("rule2"), 4 * run_length, 2);
  EXPECT_LT(machine_write_times("ideal"), 3 * run_length);
}

TEST(dp2_machine, a_shorter_retention_speeds_up_the_logs_three_writes_of_four) {
  EXPECT_NEAR(machine_write_times("strict", 1e4), run_length * (3 / 1.7 + 1), 2);
}

}  // namespace
}  // namespace stele::sim
