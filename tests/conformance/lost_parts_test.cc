// A page of 4 KiB or a sector of 512 bytes of a pool is zeroed, filled with 0xFF, or overwritten
// with another one of the same pool, each in turn. The damage must be detected, or must not change
// the content that the pool returns. A pool that was in use is never taken for a new one.
#include <base/mutant.h>
#include <tests/conformance/damage.h>

namespace stele::testing {
namespace {

struct lost_from {
  std::string mechanism, media;
  bool killed;
};

enum part_holds : std::uint64_t { zeroes, ones, another, kinds };

// Damage n with parts of `part` bytes: to part n / kinds, of kind n % kinds.
void overwrite(std::byte* bytes, std::size_t size, std::size_t part, std::uint64_t n) {
  const std::uint64_t parts = size / part, which = n / kinds;
  std::byte* const at = bytes + which * part;
  if (n % kinds == another)
    std::memcpy(at, bytes + (which + 1 + n % (parts - 1)) % parts * part, part);
  else
    std::memset(at, n % kinds == zeroes ? 0 : 0xFF, part);
}

tally lose_parts(const target_pool& v, std::size_t part) {
  const std::size_t size = v.bytes.size();
  return damage_all(v, size / part * kinds,
                    [&](std::byte* bytes, std::uint64_t n) { overwrite(bytes, size, part, n); });
}

class lost_parts : public ::testing::TestWithParam<lost_from> {};

TEST_P(lost_parts, each_is_found_or_harmless) {
  const auto& [mechanism, media, killed] = GetParam();
  scratch_directory dir;
  const target_pool v = make_target_pool(dir.file("pool"), mechanism, media, killed, checksums::on);
  for (const std::size_t part : {std::size_t{4096}, std::size_t{512}}) {
    const tally t = lose_parts(v, part);
    report(v, t);
    EXPECT_EQ(t.bad(), 0u) << "first: part " << t.first_bad / kinds << " of " << part
                           << " bytes, kind " << t.first_bad % kinds;
    EXPECT_GT(t[damage_outcome::refused], 0u);
  }
}

std::vector<lost_from> with_sums() {
  std::vector<lost_from> all;
  for (const char* m : {"default", "redo-async", "vcbp", "redo", "undo", "base"})
    for (const bool killed : {false, true}) all.push_back({m, "process", killed});
  for (const char* m : {"xil", "blurred", "adaptive"}) all.push_back({m, "process", false});
  return all;
}
std::string name_of_lost(const ::testing::TestParamInfo<lost_from>& info) {
  std::string name = info.param.mechanism + (info.param.killed ? "_killed" : "_closed");
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(sums, lost_parts, ::testing::ValuesIn(with_sums()), name_of_lost);

// Without block checksums content may be lost, but not the fact that the pool was in use.
TEST(lost_home, a_pool_without_sums_whose_home_was_zeroed_is_refused) {
  for (const char* mechanism : {"default", "redo", "archapt-redo"})
    for (const bool killed : {false, true}) {
      scratch_directory dir;
      target_pool v =
          make_target_pool(dir.file("pool"), mechanism, "process", killed, checksums::off);
      format::pool_header h;
      std::memcpy(&h, v.bytes.data(), sizeof h);
      ASSERT_EQ(h.block_checksums_offset, 0u);
      for (const std::size_t part : {std::size_t{4096}, std::size_t{512}}) {
        damaged_image p(v);
        std::memset(p.bytes() + h.home_offset, 0, part);
        EXPECT_EQ(p.classify(), damage_outcome::refused) << v.name() << ", " << part << " bytes";
      }
    }
}

// The test above finds the bug that it was written for.
TEST(lost_home, is_missed_when_zero_stands_for_unknown) {
  scratch_directory dir;
  const target_pool v =
      make_target_pool(dir.file("pool"), "default", "process", false, checksums::on);
  EXPECT_EQ(lose_parts(v, 4096).bad(), 0u);
  base::planted_mutant = base::mutant::sums_zero_unjudged;
  EXPECT_NE(lose_parts(v, 4096).bad(), 0u);
  base::planted_mutant = base::mutant::none;
}

}  // namespace
}  // namespace stele::testing
