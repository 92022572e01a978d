// Pools that grow again and again, in every crash state, beside each other feature that the
// explorer knows: named stores, ordered commits, a shared log, records longer than a log, two
// threads, files. The chunks of the former tables are used again, and each opening verifies all
// checksums.
#include <explore/explorer.h>
#include <explore/report.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <pool/pool_file.h>
#include <tests/budget.h>

#include <cstdio>

namespace stele::explore {
namespace {

constexpr std::uint32_t chunk_shift = 14;
constexpr std::size_t page = 4096, chunk = std::size_t{1} << chunk_shift;

// The size of a pool with so much room behind its last chunk.
std::size_t size_with_room(std::size_t base, std::size_t room) {
  const auto h = *storage::pool_file::make_header({.size = base,
                                                   .log_size = 4096,
                                                   .log_count = 2,
                                                   .layout = "",
                                                   .chunk_shift = chunk_shift,
                                                   .sums = true});
  return h.chunks_end() + room;
}

plan growing(std::size_t room) {
  plan p;
  p.mechanism = "default";
  p.workload = "churn";
  p.operations = 200;
  p.pool_size = size_with_room(90'000, room);
  p.chunk_shift = chunk_shift;
  p.block_checksums = true;
  p.grow_every = 40;
  return p;
}

void expect_no_violation(const plan& p) {
  settings s;
  s.bound =
      std::max<std::uint64_t>(budget::count_from("STELE_EXPLORE_BOUND", 32) / budget::slowness, 1);
  s.recovery_depth = 2;
  const auto found = explore_isolated(p, s);
  ASSERT_TRUE(found) << found.error().message;
  fmt::print("  {}/{}, {} bytes: {}\n", p.mechanism, p.workload, p.pool_size, summary_of(*found));
  std::fflush(stdout);
  EXPECT_GT(found->recoveries, 0u);
  for (const violation& v : found->violations)
    ADD_FAILURE() << v.what << "\n  stele crash replay \"" << v.line << '"';
}

TEST(explored_growth, with_each_room_behind_the_last_chunk) {
  for (std::size_t room = 0; room < chunk; room += page) expect_no_violation(growing(room));
}

TEST(explored_growth, beside_each_other_feature) {
  for (const std::size_t room : {std::size_t{0}, chunk - page}) {
    plan stores = growing(room);
    stores.workload = "stores", stores.operations = 80;
    stores.pool_size = size_with_room(262'144, room);
    expect_no_violation(stores);
    plan ordered = growing(room);
    ordered.sync_every = 8;
    expect_no_violation(ordered);
    plan shared = growing(room);
    shared.shared_log = true, shared.threads = 2, shared.sync_every = 30;
    expect_no_violation(shared);
    plan spilled = growing(room);
    spilled.workload = "rbtree", spilled.keys = 8, spilled.value_size = 4096;
    spilled.operations = 80, spilled.grow_every = 25;
    spilled.pool_size = size_with_room(131'072, room);
    expect_no_violation(spilled);
    plan two = growing(room);
    two.threads = 2, two.operations = 120;
    expect_no_violation(two);
    plan on_file = growing(room);
    on_file.media = "file", on_file.operations = 120;
    expect_no_violation(on_file);
    plan in_commits = growing(room);
    in_commits.mechanism = "redo", in_commits.operations = 120;
    expect_no_violation(in_commits);
  }
}

}  // namespace
}  // namespace stele::explore
