// Flips every single bit of a pool, which was closed or left by a killed process. The flip must be
// detected, or must not change the content that the pool returns.
//
// STELE_FLIP_STRIDE=1 flips each bit (some minutes), STELE_FLIP_ONLY=MECHANISM those of one
// mechanism. Without them a fixed sample of bits is flipped. A flip in the newest record of a log
// looks like a commit that a power failure interrupted (docs/protocol/sums.md); such flips are
// counted separately. Where detection is not promised, outcomes are only counted and printed.
#include <published/mutant.h>
#include <tests/conformance/damage.h>

namespace stele::testing {
namespace {

// Where wrong content is not excluded, it may be read through a wild pointer, which sanitizers
// report.
constexpr bool reads_wildly = !budget::sanitized;

struct flips_of {
  std::string mechanism, media;
  bool killed;
  bool promised = true;  // there must be no wrong content
};

// Flips one bit in so many.
tally flip_each(const target_pool& v, std::uint64_t stride) {
  const std::uint64_t bits = v.bytes.size() * 8;
  return damage_all(v, (bits + stride - 1) / stride, [stride](std::byte* bytes, std::uint64_t n) {
    bytes[n * stride / 8] ^= std::byte{1} << n * stride % 8;
  });
}

class bit_flips : public ::testing::TestWithParam<flips_of> {};

TEST_P(bit_flips, each_is_found_or_harmless) {
  const auto& [mechanism, media, killed, promised] = GetParam();
  if (const char* only = ::getenv("STELE_FLIP_ONLY"); only != nullptr && mechanism != only)
    GTEST_SKIP();
  if (!promised && !reads_wildly) GTEST_SKIP();
  scratch_directory dir;
  const target_pool v = make_target_pool(dir.file("pool"), mechanism, media, killed);
  const std::uint64_t stride = count_from("STELE_FLIP_STRIDE", 61);
  const tally t = flip_each(v, stride);
  report(v, t);
  if (!promised) return;
  EXPECT_EQ(t.bad(), 0u) << "first: bit " << t.first_bad * stride % 8 << " of byte "
                         << t.first_bad * stride / 8;
  EXPECT_GT(t[damage_outcome::refused] + t[damage_outcome::detected],
            t[damage_outcome::harmless] / 16)
      << "what is in use takes more than that";
}

std::vector<flips_of> all_flips() {
  std::vector<flips_of> all;
  const auto judged_when_killed = {"default",  "redo-async", "vcbp", "xil", "blurred",
                                   "adaptive", "redo",       "undo", "base"};
  for (const std::string& m : durable_mechanisms())
    for (const bool killed : {false, true}) {
      const bool judged =
          !killed || std::ranges::find(judged_when_killed, m) != judged_when_killed.end();
      all.push_back({m, "process", killed, judged});
    }
  all.push_back({"default", "file", true});
  return all;
}
std::string name_of_flips(const ::testing::TestParamInfo<flips_of>& info) {
  std::string name =
      info.param.mechanism + "_" + info.param.media + (info.param.killed ? "_killed" : "_closed");
  std::replace_if(name.begin(), name.end(), [](char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(every, bit_flips, ::testing::ValuesIn(all_flips()), name_of_flips);

// In a log-structured pool left by a process, most flips are found. Data that cleaning has moved is
// not lost without notice.
TEST(bit_flips_of_logs, are_told_by_how_far_chunks_have_blocks) {
  if (!reads_wildly) GTEST_SKIP();
  scratch_directory dir;
  const target_pool v = make_target_pool(dir.file("pool"), "log_structured", "process", true);
  const tally as_it_is = flip_each(v, 61);
  EXPECT_EQ(as_it_is[damage_outcome::signal] + as_it_is[damage_outcome::hang], 0u);
  base::planted_mutant = published::number_of(published::mutant::ls_copies_unsaid);
  const tally unsaid = flip_each(v, 61);
  base::planted_mutant = base::mutant::none;
  EXPECT_LT(as_it_is.bad() * 2, unsaid.bad());
}

// In a closed pool, also if there were no chunks for the map of home.
TEST(bit_flips_of_logs, are_told_by_where_commits_and_closing_say_that_blocks_end) {
  if (!reads_wildly) GTEST_SKIP();
  scratch_directory dir;
  const auto missed = [&] {
    const target_pool v = make_target_pool(dir.file("pool"), "log_structured", "process", false);
    std::filesystem::remove(dir.file("pool"));
    const tally t = flip_each(v, 61);
    return t.bad() + t[damage_outcome::newest_lost];
  };
  EXPECT_EQ(missed(), 0u);
  for (const auto m : {published::mutant::ls_full_unsaid, published::mutant::ls_tails_unsaid}) {
    base::planted_mutant = published::number_of(m);
    EXPECT_GT(missed(), 0u) << static_cast<int>(m);
  }
  base::planted_mutant = base::mutant::none;
}

// Lines of the logs that hold anything, so those of each record of the pool's last commits.
std::vector<std::uint64_t> lines_of_logs(const std::vector<std::byte>& pool) {
  format::pool_header h;
  std::memcpy(&h, pool.data(), sizeof h);
  std::vector<std::uint64_t> lines;
  const auto is_zero = [](std::byte b) { return b == std::byte{0}; };
  for (std::uint64_t at = h.log_offset; at < h.home_offset; at += 64)
    if (!std::all_of(pool.begin() + static_cast<std::ptrdiff_t>(at),
                     pool.begin() + static_cast<std::ptrdiff_t>(at + 64), is_zero))
      lines.push_back(at);
  return lines;
}

// Every bit, not a sample: a field that no check covers has few.
TEST(bit_flips_of_records, each_is_found_or_harmless) {
  for (const std::string media : {"process", "file"}) {
    scratch_directory dir;
    const target_pool v = make_target_pool(dir.file("pool"), "default", media, true);
    const auto lines = lines_of_logs(v.bytes);
    ASSERT_GT(lines.size(), 6u) << "one for each of the last commits, and more";
    const tally t = damage_all(v, lines.size() * 512, [&](std::byte* bytes, std::uint64_t n) {
      bytes[lines[n / 512] + n % 512 / 8] ^= std::byte{1} << n % 8;
    });
    report(v, t);
    EXPECT_EQ(t.bad(), 0u) << media << ", first: bit " << t.first_bad % 8 << " of byte "
                           << lines[t.first_bad / 512 % lines.size()] + t.first_bad % 512 / 8;
  }
}

TEST(bit_flips_on_files, a_sample_of_them) {
  scratch_directory dir;
  const std::string path = dir.file("pool");
  const target_pool v = make_target_pool(path, "default", "process", false, checksums::on);
  base::rng random(7);
  for (unsigned i = 0; i < 400; ++i) {
    std::vector<std::byte> flipped = v.bytes;
    const std::size_t bit = random.below(flipped.size() * 8);
    flipped[bit / 8] ^= std::byte{1} << bit % 8;
    std::ofstream(path, std::ios::binary | std::ios::trunc)
        .write(reinterpret_cast<const char*>(flipped.data()),
               static_cast<std::streamsize>(flipped.size()));
    const auto opened = pool<damaged_content>::open(path);
    if (!opened) continue;
    EXPECT_EQ(opened->read(content_of).value(), v.content)
        << "bit " << bit % 8 << " of byte " << bit / 8;
  }
}

}  // namespace
}  // namespace stele::testing
