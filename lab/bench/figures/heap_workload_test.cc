// The workloads of the fragmentation figure match their definition, however their operations are
// drawn.
#include <bench/figures/heap_workload.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

namespace stele::bench {

// Names of tests contain it.
static std::ostream& operator<<(std::ostream& out, const heap_workload& w) {
  return out << w.name;
}

namespace {

using kind = heap_operation::kind;

constexpr std::uint64_t small_bytes = std::uint64_t{1} << 20;

std::vector<heap_operation> all_of(heap_operations operations) {
  std::vector<heap_operation> all;
  while (const auto next = operations.next()) all.push_back(*next);
  return all;
}

struct totals {
  std::uint64_t objects = 0, bytes = 0, least = ~std::uint64_t{0}, most = 0;
  void add(const heap_operation& op) {
    ++objects;
    bytes += op.size_bytes;
    least = std::min<std::uint64_t>(least, op.size_bytes);
    most = std::max<std::uint64_t>(most, op.size_bytes);
  }
};

class heap_workload_of : public testing::TestWithParam<heap_workload> {};

TEST_P(heap_workload_of, requests_its_bytes_in_both_phases_and_frees_its_share) {
  const heap_workload& w = GetParam();
  const std::uint64_t bytes = 16 * small_bytes;
  const auto all = all_of(heap_operations(w, bytes, 1));
  totals phases[2], freed;
  for (const heap_operation& op : all)
    (op.what == kind::free ? freed : phases[phases[0].bytes >= bytes]).add(op);
  EXPECT_LT(phases[0].bytes - bytes, w.first.most);
  EXPECT_LT(phases[1].bytes - bytes, w.second.most);
  EXPECT_EQ(phases[0].least, w.first.least);
  EXPECT_EQ(phases[0].most, w.first.most);
  EXPECT_EQ(phases[1].least, w.second.least);
  EXPECT_EQ(phases[1].most, w.second.most);
  EXPECT_EQ(freed.objects, phases[0].objects * w.freed_percent / 100);
  EXPECT_LE(phases[0].objects + phases[1].objects, heap_operations(w, bytes, 1).most_objects());
}

TEST_P(heap_workload_of, frees_each_object_once_with_the_size_it_was_allocated_with) {
  std::vector<std::uint32_t> sizes;
  std::uint64_t live = 0;
  for (const heap_operation& op : all_of(heap_operations(GetParam(), small_bytes, 2))) {
    if (op.what == kind::allocate) {
      ASSERT_EQ(op.object, sizes.size());
      sizes.push_back(op.size_bytes);
      live += op.size_bytes;
    } else {
      ASSERT_EQ(std::exchange(sizes.at(op.object), 0), op.size_bytes);
      live -= op.size_bytes;
    }
  }
  const auto ran = run_heap_workload(heap_operations(GetParam(), small_bytes, 2),
                                     [](auto) { return result<>{}; });
  EXPECT_EQ(ran.value(), live);
}

TEST_P(heap_workload_of, comes_in_batches_as_one_by_one) {
  const heap_operations operations(GetParam(), small_bytes, 3);
  const auto all = all_of(operations);
  std::size_t seen = 0, spans = 0;
  const auto ran =
      run_heap_workload<256>(operations, [&](std::span<const heap_operation> ops) -> result<> {
        for (const heap_operation& op : ops) EXPECT_EQ(op.object, all.at(seen++).object);
        ++spans;
        return {};
      });
  EXPECT_TRUE(ran.has_value());
  EXPECT_EQ(seen, all.size());
  EXPECT_EQ(spans, (all.size() + 255) / 256);
}

TEST_P(heap_workload_of, differs_by_seed_alone) {
  const auto sizes = [](std::uint64_t seed) {
    std::vector<std::uint32_t> of;
    for (const heap_operation& op : all_of(heap_operations(GetParam(), small_bytes, seed)))
      of.push_back(op.size_bytes);
    return of;
  };
  EXPECT_EQ(sizes(4), sizes(4));
  EXPECT_NE(sizes(4), sizes(5));
}

INSTANTIATE_TEST_SUITE_P(workloads, heap_workload_of, testing::ValuesIn(heap_workloads),
                         [](const auto& i) { return std::string(i.param.name); });

TEST(heap_workload, ends_with_the_first_error) {
  int applied = 0;
  const auto ran =
      run_heap_workload(heap_operations(heap_workloads[0], small_bytes, 1), [&](auto) -> result<> {
        if (++applied == 3) return std::unexpected(error{errc::full, "no room"});
        return {};
      });
  ASSERT_FALSE(ran.has_value());
  EXPECT_EQ(ran.error().message, "no room");
  EXPECT_EQ(applied, 3);
}

}  // namespace
}  // namespace stele::bench
