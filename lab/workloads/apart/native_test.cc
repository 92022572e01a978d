// Native runs: the same plan gives the same tape, the structure equals the model, the tape's stores
// give the memory's content, transactions are well-formed, large elements take little memory. R-MAT
// edges follow their probabilities.
#include <workloads/apart/native.h>
#include <workloads/apart/volatile.h>
#include <workloads/rmat.h>

#include <gtest/gtest.h>

#include <sys/resource.h>

#include <cmath>
#include <map>
#include <set>

namespace stele::workloads {
namespace {

using media::tape_event;
using media::tape_op;

const std::vector<std::string> native_workloads = {"sps",    "hash", "rbtree",
                                                   "bptree", "sdg",  "ssca2"};

struct recorded {
  std::unique_ptr<native_run> run;
  std::unique_ptr<media::tape_writer> tape;
  std::vector<operation> operations;
};

recorded record(const std::string& workload, const native_plan& plan) {
  recorded r;
  auto made = make_native(workload, plan);
  EXPECT_TRUE(made) << made.error().message;
  r.run = std::move(*made);
  r.tape = media::tape_writer::to_memory(native_shape(*r.run, plan));
  const auto done = record_native(
      *r.run, workload, plan, *r.tape, [](std::uint64_t) { return true; }, &r.operations);
  EXPECT_TRUE(done) << done.error().message;
  EXPECT_TRUE(r.tape->finish());
  return r;
}

template <class F>
void for_each_event(const media::tape_writer& tape, F&& f) {
  auto reader = media::tape_reader::from_memory(tape.memory());
  ASSERT_TRUE(reader);
  for (;;) {
    const auto e = reader->next();
    ASSERT_TRUE(e) << e.error().message;
    if (!*e) return;
    f(**e);
  }
}

class native : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(all, native, testing::ValuesIn(native_workloads),
                         [](const auto& i) { return i.param; });

// K10
TEST_P(native, agrees_with_its_model_and_its_plain_twin) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const native_plan plan{.params = {.value_size = std::size_t{8} << seed % 10,
                                      .keys = 1 + seed * 13,
                                      .read_share = 0.2,
                                      .seed = seed},
                           .threads = static_cast<unsigned>(1 + seed % 5),
                           .operations = 400,
                           .seed = seed,
                           .bytes = seed % 2 == 0};
    const recorded r = record(GetParam(), plan);
    const auto model = r.run->make_model();
    const auto plain = make_volatile(GetParam(), plan.params);
    ASSERT_TRUE(plain);
    (*plain)->set_up();
    for (const operation& op : r.operations) model->apply(op);
    (*plain)->apply(r.operations);
    EXPECT_EQ(r.operations.size(), plan.operations);
    EXPECT_EQ(r.run->digest(), model->digest()) << "seed " << seed;
    EXPECT_EQ((*plain)->digest(), model->digest()) << "seed " << seed;
  }
}

TEST_P(native, a_plan_has_one_tape) {
  for (const bool bytes : {false, true}) {
    const native_plan plan{.params = {.value_size = 64, .keys = 300, .read_share = 0.1},
                           .threads = 3,
                           .operations = 500,
                           .bytes = bytes};
    const recorded a = record(GetParam(), plan);
    const recorded elsewhere =
        record("sps", {.params = {.keys = 100'000}});  // other host addresses
    const recorded b = record(GetParam(), plan);
    EXPECT_TRUE(std::ranges::equal(a.tape->memory(), b.tape->memory()));
    native_plan other = plan;
    other.seed = 2;
    EXPECT_FALSE(std::ranges::equal(a.tape->memory(), record(GetParam(), other).tape->memory()));
  }
}

TEST_P(native, the_tape_makes_the_memory) {
  const recorded r = record(GetParam(), {.params = {.value_size = 128, .keys = 200},
                                         .threads = 2,
                                         .operations = 2000,
                                         .bytes = true});
  const native_space& space = r.run->space();
  std::vector<std::byte> memory(space.size());
  std::uint64_t stores = 0;
  for_each_event(*r.tape, [&](const tape_event& e) {
    if (e.op != tape_op::image && e.op != tape_op::store) return;
    ASSERT_EQ(e.bytes.size(), e.length);
    ASSERT_LE(e.address + e.length, memory.size());
    std::ranges::copy(e.bytes, memory.begin() + static_cast<std::ptrdiff_t>(e.address));
    stores += e.op == tape_op::store;
  });
  EXPECT_GT(stores, 2000u);
  EXPECT_TRUE(std::equal(memory.begin(), memory.begin() + static_cast<std::ptrdiff_t>(space.used()),
                         space.base()));
}

// invoked, begin, accesses, commit, returned, all of the thread in turn, and nothing in between.
// K7
TEST_P(native, transactions_are_well_formed) {
  constexpr unsigned threads = 4;
  const recorded r =
      record(GetParam(), {.params = {.value_size = 32, .keys = 500, .read_share = 0.3},
                          .threads = threads,
                          .operations = 1000});
  const std::vector<tape_op> order = {tape_op::invoked, tape_op::tx_begin, tape_op::tx_commit,
                                      tape_op::returned};
  std::uint64_t number = 0, marks = 0, pointers = 0, accesses = 0;
  for_each_event(*r.tape, [&](const tape_event& e) {
    ASSERT_EQ(e.thread, number % threads);
    pointers += e.loads_pointer;
    if (e.op == tape_op::load || e.op == tape_op::store) {
      ASSERT_EQ(marks, 2u) << "an access outside a transaction";
      ASSERT_EQ(e.tag, media::tape_tag::data);
      ASSERT_GE(e.address, native_space::first_address);
      ASSERT_LE(e.address + e.length, r.run->space().used());
      ASSERT_TRUE(e.length > 0 && e.length <= native_space::max_access_bytes);
      ASSERT_TRUE(!e.loads_pointer || (e.op == tape_op::load && e.length == 8));
      ASSERT_TRUE(e.bytes.empty());
      ++accesses;
      return;
    }
    if (e.op == tape_op::compute) {
      ASSERT_EQ(marks, 2u);
      return;
    }
    ASSERT_EQ(e.op, order.at(marks));
    ASSERT_EQ(e.address, number);
    marks = (marks + 1) % order.size();
    number += marks == 0;
  });
  EXPECT_EQ(number, 1000u);
  EXPECT_GE(pointers, 1000u);
  EXPECT_LT(pointers, accesses);
}

TEST_P(native, reads_store_nothing) {
  const recorded r =
      record(GetParam(), {.params = {.keys = 200, .read_share = 1}, .operations = 300});
  std::uint64_t loads = 0;
  for_each_event(*r.tape, [&](const tape_event& e) {
    loads += e.op == tape_op::load;
    ASSERT_NE(e.op, tape_op::store);
  });
  EXPECT_GT(loads, 300u);
}

std::size_t resident_bytes() {
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  return static_cast<std::size_t>(use.ru_maxrss) * 1024;
}

// K10
TEST_P(native, elements_of_512_KiB_take_little_memory_and_are_on_the_tape_whole) {
  constexpr std::size_t element = std::size_t{512} << 10;
  const std::size_t before = resident_bytes();
  const recorded r =
      record(GetParam(),
             {.params = {.value_size = element, .keys = 1024}, .threads = 2, .operations = 20});
  std::uint64_t stored = 0, longest = 0, inserts = 0;
  for_each_event(*r.tape, [&](const tape_event& e) {
    if (e.op != tape_op::store) return;
    stored += e.length;
    longest = std::max<std::uint64_t>(longest, e.length);
    inserts += e.length == native_space::max_access_bytes;
  });
  EXPECT_EQ(longest, native_space::max_access_bytes);
  EXPECT_EQ(inserts % (element / native_space::max_access_bytes), 0u);
  EXPECT_GT(stored, 2 * element);
  EXPECT_LT(resident_bytes() - before, std::size_t{64} << 20);
}

TEST_P(native, takes_every_size) {
  for (std::size_t size = 8; size <= largest_native_value; size *= 2) {
    const recorded r =
        record(GetParam(), {.params = {.value_size = size, .keys = 40}, .operations = 30});
    const auto model = r.run->make_model();
    for (const operation& op : r.operations) model->apply(op);
    EXPECT_EQ(r.run->digest(), model->digest()) << size;
  }
}

// Toggling reuses freed blocks: the structure does not move through its address space.
TEST_P(native, freed_blocks_are_reused) {
  const recorded few = record(
      GetParam(), {.params = {.value_size = 512, .keys = 256}, .threads = 4, .operations = 2'000});
  const recorded many = record(
      GetParam(), {.params = {.value_size = 512, .keys = 256}, .threads = 4, .operations = 40'000});
  EXPECT_LT(many.run->space().used(), 2 * few.run->space().used());
}

TEST_P(native, compute_is_what_the_costs_say) {
  native_plan plan{.params = {.keys = 100}, .operations = 200, .costs = native_costs{}};
  for_each_event(*record(GetParam(), plan).tape,
                 [](const tape_event& e) { ASSERT_NE(e.op, tape_op::compute); });
  plan.costs = native_costs{.per_access = 3, .per_operation = 10};
  std::uint64_t compute = 0, accesses = 0;
  for_each_event(*record(GetParam(), plan).tape, [&](const tape_event& e) {
    compute += e.op == tape_op::compute ? e.address : 0;
    accesses += e.op == tape_op::load || e.op == tape_op::store;
  });
  EXPECT_EQ(compute, 3 * accesses + 10 * 200);
}

TEST(native_runs, have_measured_costs) {
  for (const std::string& w : native_workloads) {
    const native_costs c = native_costs_of(w);
    EXPECT_TRUE(c.per_access > 0 && c.per_operation > 0 && c.per_line > 0) << w;
  }
}

TEST(native_runs, bad_plans_are_refused) {
  EXPECT_EQ(make_native("spss", {}).error().code, errc::not_found);
  EXPECT_EQ(make_native("kv", {}).error().code, errc::invalid_argument);
  EXPECT_EQ(make_native("sps", {.params = {.value_size = 2u << 20}}).error().code,
            errc::invalid_argument);
  EXPECT_EQ(make_native("sps", {.params = {.value_size = 1u << 20, .keys = 1u << 21}}).error().code,
            errc::invalid_argument);
  EXPECT_EQ(make_native("sps", {.threads = 0}).error().code, errc::invalid_argument);
  EXPECT_EQ(make_native("sps", {.threads = 65536}).error().code, errc::invalid_argument);
}

TEST(native_space, gives_distinct_aligned_blocks_and_tells_when_it_is_full) {
  auto space = native_space::make(std::size_t{1} << 16, false);
  ASSERT_TRUE(space);
  std::map<std::byte*, std::size_t> blocks;
  std::size_t size = 1;
  try {
    for (;; size = size * 7 % 509 + 1) {
      const std::size_t alignment = size % 3 == 0 ? 64 : 8;
      auto* block = static_cast<std::byte*>((*space)->allocate(size, alignment));
      EXPECT_EQ(static_cast<std::size_t>(block - (*space)->base()) % alignment, 0u);
      const auto next = blocks.lower_bound(block);
      EXPECT_TRUE(next == blocks.end() || block + size <= next->first);
      EXPECT_TRUE(next == blocks.begin() ||
                  std::prev(next)->first + std::prev(next)->second <= block);
      blocks.emplace(block, size);
    }
  } catch (const failure& f) {
    EXPECT_EQ(f.why().code, errc::full);
  }
  EXPECT_GT(blocks.size(), 100u);
  auto* const last = blocks.begin()->first;
  (*space)->deallocate(last);
  EXPECT_EQ((*space)->allocate(blocks.begin()->second, blocks.begin()->second % 3 == 0 ? 64 : 8),
            last);
}

TEST(rmat, probabilities_add_up_and_edges_fall_into_their_quarters) {
  EXPECT_DOUBLE_EQ(rmat::a + rmat::b + rmat::c + rmat::d, 1);
  const rmat edges(1);  // one level: the quarters are the edges
  std::map<std::pair<std::uint32_t, std::uint32_t>, double> share;
  base::rng random(1);
  constexpr int draws = 400'000;
  for (int i = 0; i < draws; ++i) {
    const rmat::edge e = edges.draw(random);
    share[{e.from, e.to}] += 1.0 / draws;
  }
  const std::uint32_t early = edges.scattered(0), late = edges.scattered(1);
  EXPECT_NEAR((share[{early, early}]), rmat::a, 0.005);
  EXPECT_NEAR((share[{early, late}]), rmat::b, 0.005);
  EXPECT_NEAR((share[{late, early}]), rmat::c, 0.005);
  EXPECT_NEAR((share[{late, late}]), rmat::d, 0.005);
}

// The vertex that all levels prefer has (a + b)^scale of the edges; an even share would be
// 2^-scale.
TEST(rmat, degrees_are_skewed) {
  constexpr unsigned scale = 10;
  const rmat edges(scale);
  std::vector<double> degree(edges.vertices());
  base::rng random(2);
  constexpr int draws = 1'000'000;
  for (int i = 0; i < draws; ++i) ++degree.at(edges.draw(random).from);
  const double expected = draws * std::pow(rmat::a + rmat::b, scale);
  EXPECT_NEAR(degree[edges.scattered(0)], expected, expected * 0.05);
  EXPECT_EQ(std::ranges::max(degree), degree[edges.scattered(0)]);
  EXPECT_GT(expected, 10.0 * draws / static_cast<double>(edges.vertices()));
}

TEST(rmat, scattering_is_a_permutation) {
  for (unsigned scale = 0; scale <= 14; ++scale) {
    const rmat edges(scale);
    std::set<std::uint32_t> seen;
    for (std::uint32_t v = 0; v < edges.vertices(); ++v) seen.insert(edges.scattered(v));
    EXPECT_EQ(seen.size(), edges.vertices());
    EXPECT_LT(*seen.rbegin(), edges.vertices());
  }
}

}  // namespace
}  // namespace stele::workloads
