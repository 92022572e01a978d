// The quantities that a run reports, added up by hand.
#include <gtest/gtest.h>
#include <media/tape.h>
#include <sim/crash.h>
#include <sim/machine.h>

#include <filesystem>

namespace stele::sim {
namespace {

// K11
TEST(machine, pays_for_a_line_that_enters_the_shared_cache_as_for_a_write) {
  const std::string path = testing::TempDir() + "stele_machine_test.tape";
  auto tape = media::tape_writer::to_file(path, {});
  ASSERT_TRUE(tape) << tape.error().message;
  for (std::uint64_t line = 0; line < 3; ++line)
    (*tape)->event(media::tape_op::load, 0, line * 64, 8);
  ASSERT_TRUE((*tape)->finish());

  machine_config m = crash_machines().back();
  m.design.name = "native";
  m.l3.read_energy_nj = 0.25, m.l3.write_energy_nj = 0.5;
  m.processor_dynamic_peak_w = 0;
  run_options how;
  how.tape = path;
  const auto ran = run_machine(m, how);
  std::filesystem::remove(path);
  ASSERT_TRUE(ran) << ran.error().message;
  EXPECT_EQ(find(*ran, "l3.misses")->value, 3);
  EXPECT_EQ(find(*ran, "l3.reads")->value, 0);
  EXPECT_EQ(find(*ran, "l3.writes")->value, 3);
  EXPECT_DOUBLE_EQ(find(*ran, "energy.processor")->value, 3 * 0.5);
}

}  // namespace
}  // namespace stele::sim
