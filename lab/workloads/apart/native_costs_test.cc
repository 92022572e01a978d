// Tests nothing: it is the run on which native_costs were measured, for callgrind to count the
// plain twin's instructions. docs/format/native.md has the command lines and the results.
#include <workloads/apart/native.h>
#include <workloads/apart/volatile.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace stele::workloads {
namespace {

constexpr std::uint64_t operations = 20'000;

struct counted {
  std::uint64_t accesses = 0, further_lines = 0, allocations = 0;
};

counted count_accesses(const std::string& workload, native_plan plan) {
  // The only compute events, so their total is the count.
  plan.costs = native_costs{.per_allocation = 1};
  auto run = make_native(workload, plan);
  const auto tape = media::tape_writer::to_memory(native_shape(**run, plan));
  EXPECT_TRUE(record_native(**run, workload, plan, *tape, [](std::uint64_t) { return true; }));
  EXPECT_TRUE(tape->finish());
  auto reader = media::tape_reader::from_memory(tape->memory());
  counted c;
  for (auto e = reader->next(); e && *e; e = reader->next()) {
    if ((*e)->op == media::tape_op::compute) c.allocations += (*e)->address;
    if ((*e)->op != media::tape_op::load && (*e)->op != media::tape_op::store) continue;
    ++c.accesses;
    c.further_lines += ((*e)->length - 1) / 64;
  }
  return c;
}

class native_costs_of_plain_twins
    : public testing::TestWithParam<std::tuple<std::string, std::size_t, std::size_t>> {};
INSTANTIATE_TEST_SUITE_P(
    all, native_costs_of_plain_twins,
    testing::Combine(testing::Values("sps", "hash", "rbtree", "bptree", "sdg", "ssca2"),
                     testing::Values(8u, 512u, 4096u), testing::Values(64u, 1024u, 16384u)),
    [](const auto& i) {
      return fmt::format("{}_{}_{}", std::get<0>(i.param), std::get<1>(i.param),
                         std::get<2>(i.param));
    });

TEST_P(native_costs_of_plain_twins, DISABLED_run) {
  const auto& [workload, size, keys] = GetParam();
  const native_plan plan{.params = {.value_size = size, .keys = keys}, .operations = operations};
  const counted c = count_accesses(workload, plan);
  fmt::print("{} operations, {} accesses, {} further lines, {} allocations\n", operations,
             c.accesses, c.further_lines, c.allocations);
  const auto plain = make_volatile(workload, plan.params);
  ASSERT_TRUE(plain);
  (*plain)->set_up();
  base::rng random(base::mix(plan.seed));
  for (std::uint64_t i = 0; i < operations; ++i) {
    const operation op = (*plain)->draw(random);
    (*plain)->apply({&op, 1});
  }
}

}  // namespace
}  // namespace stele::workloads
