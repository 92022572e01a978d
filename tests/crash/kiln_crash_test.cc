// Power failures of a machine with Kiln that runs the workloads, with small structures and caches.
#include <gtest/gtest.h>
#include <sim/crash.h>
#include <workloads/apart/native.h>

namespace stele {
namespace {

class kiln_workloads : public ::testing::TestWithParam<const char*> {};

// K6
TEST_P(kiln_workloads, recover_to_a_prefix) {
  const workloads::native_plan plan{.params = {.value_size = 64, .keys = 64},
                                    .threads = 4,
                                    .operations = 300,
                                    .seed = 3,
                                    .bytes = true};
  auto run = workloads::make_native(GetParam(), plan);
  ASSERT_TRUE(run) << run.error().message;
  const auto tape = media::tape_writer::to_memory(workloads::native_shape(**run, plan));
  const auto recorded =
      workloads::record_native(**run, GetParam(), plan, *tape, [](std::uint64_t) { return true; });
  ASSERT_TRUE(recorded) << recorded.error().message;
  ASSERT_TRUE(tape->finish());
  for (const sim::machine_config& m : sim::crash_machines()) {
    const auto r = sim::crash_machine(m, tape->memory(), {.crashes = 300, .seed = 2});
    ASSERT_TRUE(r) << m.name << ": " << r.error().message;
    for (const auto& v : r->violations)
      ADD_FAILURE() << m.name << " at " << v.at << " ps: " << v.what;
    EXPECT_GT(r->transactions, 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(all, kiln_workloads,
                         ::testing::Values("sps", "hash", "rbtree", "bptree", "sdg", "ssca2"),
                         [](const auto& i) { return std::string(i.param); });

}  // namespace
}  // namespace stele
