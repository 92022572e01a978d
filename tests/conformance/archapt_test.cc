// What only archapt-undo and archapt-redo do: checkpoints, fallback to one, and reporting the
// fallback.
#include <gmock/gmock.h>
#include <stele/archapt_fallback.h>
#include <stele/archapt_options.h>
#include <tests/conformance/pools.h>

#include <published/archapt/parity_area.h>
#include <tx/inspect.h>

#include <filesystem>
#include <fstream>

namespace stele::testing {
namespace {

constexpr std::size_t lines = 512, words_a_line = 8;
struct numbers {
  field<std::uint64_t> at[lines * words_a_line];
};
constexpr std::uint64_t between = 10, least_commits = 64;

pool_options options_of(const std::string& mechanism, std::uint64_t checkpoint_commits) {
  pool_options o;
  o.create_size = std::size_t{2} << 20;
  o.engine.mechanism = mechanism;
  o.engine.media = "process";
  o.engine.background = false;
  o.engine.log_size = 32768;  // three commits: truncated more often than checkpoints are made
  o.engine.log_count = 2;
  o.engine.tuning = archapt_options{
      .cache_bytes = 448, .skip = skipping::always, .checkpoint_commits = checkpoint_commits};
  return o;
}

// Stores one number in every line.
result<> commit_number(pool<numbers>& p, std::uint64_t n) {
  return p.update([&](numbers& all) {
    for (std::size_t i = 0; i < lines; ++i) all.at[i * words_a_line] = n;
  });
}
std::uint64_t number_of(const pool<numbers>& p) {
  return p
      .read([](const numbers& all) -> std::uint64_t {
        const std::uint64_t n = all.at[0];
        for (std::size_t i = 0; i < lines; ++i)
          if (all.at[i * words_a_line] != n) return ~std::uint64_t{0};
        return n;
      })
      .value_or(~std::uint64_t{0});
}

// Overwrites four skipped lines, two in each of two rows and columns, in a file that is not open.
// Returns false when there are no such lines.
bool lose_lines(const std::string& path) {
  const auto file = storage::pool_file::open_copy(path);
  if (!succeeds(file)) return false;
  const detail::parity_area area(*file);
  const auto first =
      format::read_control_word(file->base(), file->header().id, format::parity_epoch_offset);
  constexpr std::uint64_t square = 1u << format::line_of(1, 1) | 1u << format::line_of(1, 2) |
                                   1u << format::line_of(3, 1) | 1u << format::line_of(3, 2);
  for (std::uint64_t m = 0; first && m < area.matrices(); ++m) {
    const auto at = area.newest(m, *first);
    if (!at || at->block.kind != format::parity_kind::active ||
        (at->block.skipped & square) != square)
      continue;
    std::fstream out(path, std::ios::in | std::ios::out | std::ios::binary);
    for (std::uint64_t left = square; left != 0; left &= left - 1) {
      out.seekp(static_cast<std::streamoff>(
          area.offset_of(m, static_cast<unsigned>(std::countr_zero(left)))));
      out << std::string(64, 'x');
    }
    return true;
  }
  return false;
}

// A pool as a crash after so many commits leaves it, with lines lost that no checksum restores.
struct crashed_pool {
  crashed_pool(const scratch_directory& dir, const pool_options& options)
      : path(dir.file("crashed")) {
    auto p = open_pool<numbers>(dir.file("pool"), options);
    // No line is skipped right after a checkpoint, so some commits may lose none.
    for (bool lost = false; !lost; lost = commits >= least_commits && lose_lines(path)) {
      EXPECT_TRUE(succeeds(commit_number(p, ++commits)));
      std::filesystem::copy_file(dir.file("pool"), path,
                                 std::filesystem::copy_options::overwrite_existing);
      if (commits > 2 * least_commits)
        throw std::runtime_error("nothing was skipped that can be lost");
    }
  }
  std::string path;
  std::uint64_t commits = 0;
};

class archapt : public ::testing::TestWithParam<std::string> {};

// A9
TEST_P(archapt, goes_back_to_a_checkpoint_and_says_so_until_that_is_acknowledged) {
  scratch_directory dir;
  const pool_options options = options_of(GetParam(), between);
  const auto [path, commits] = crashed_pool(dir, options);

  const auto report = detail::check_pool(path);  // on a copy
  ASSERT_TRUE(succeeds(report));
  EXPECT_THAT(report->fallback_reason, ::testing::HasSubstr("object"));
  std::uint64_t number = 0;
  {
    auto p = open_pool<numbers>(path, options);
    number = number_of(p);
    EXPECT_LT(number, commits);
    EXPECT_GE(number + between + 1, commits);
    const auto fallback = fallback_of(p);
    ASSERT_TRUE(fallback);
    EXPECT_EQ(fallback->from.commit - fallback->to.commit, commits - number);
    EXPECT_EQ(fallback->lost, report->fallback_reason);
    EXPECT_TRUE(succeeds(commit_number(p, 1000)));
    EXPECT_GT(p.committed().commit, fallback->from.commit)
        << "numbers of commits that are gone are not given again";
  }
  {
    auto p = open_pool<numbers>(path, options);
    EXPECT_EQ(number_of(p), 1000u);
    ASSERT_TRUE(fallback_of(p));
    EXPECT_EQ(fallback_of(p)->lost, "");
    EXPECT_EQ(detail::info_of(path)->fallback.state, format::fallback_state::done);
    EXPECT_TRUE(succeeds(acknowledge_fallback(p)));
    EXPECT_FALSE(fallback_of(p));
  }
  EXPECT_FALSE(fallback_of(open_pool<numbers>(path, options)));
}

// The header of a pool without a copy of home was copied over home.
TEST_P(archapt, refuses_to_go_back_to_a_checkpoint_that_no_room_was_made_for) {
  scratch_directory dir;
  const pool_options options = options_of(GetParam(), 0);
  const std::string path = dir.file("left");
  {
    auto p = open_pool<numbers>(dir.file("pool"), options);
    EXPECT_TRUE(succeeds(commit_number(p, 1)));
    std::filesystem::copy_file(dir.file("pool"), path);
  }
  const auto h = storage::pool_file::peek(path);
  ASSERT_TRUE(succeeds(h));
  const std::uint64_t word =
      format::guard(static_cast<std::uint64_t>(format::fallback_state::under_way), h->id,
                    format::fallback_state_offset);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(format::fallback_state_offset);
  file.write(reinterpret_cast<const char*>(&word), sizeof word);
  file.close();
  EXPECT_TRUE(fails_with(pool<numbers>::open(path, options), errc::corrupt));
}

// A6
TEST_P(archapt, refuses_what_it_cannot_restore_without_a_checkpoint) {
  scratch_directory dir;
  const pool_options options = options_of(GetParam(), 0);
  const std::string path = crashed_pool(dir, options).path;
  const auto p = pool<numbers>::open(path, options);
  ASSERT_FALSE(p);
  EXPECT_EQ(p.error().code, errc::lost);
  EXPECT_THAT(p.error().message, ::testing::HasSubstr("object"));
}

TEST_P(archapt, leaves_a_note_that_every_mechanism_can_acknowledge) {
  for (const std::string& name : all_mechanisms()) {
    if (!share_pools(GetParam(), name)) continue;
    scratch_directory dir;
    pool_options options = options_of(GetParam(), between);
    const std::string path = crashed_pool(dir, options).path;
    options.engine.mechanism = name;
    {
      auto opened = pool<numbers>::open(path, options);
      ASSERT_TRUE(opened) << opened.error().message;
      EXPECT_TRUE(fallback_of(*opened)) << name;
      const auto inside =
          opened->update([&](numbers&) -> result<> { return acknowledge_fallback(*opened); });
      EXPECT_EQ(inside.error().code, errc::nested);
      EXPECT_TRUE(succeeds(acknowledge_fallback(*opened))) << name;
      EXPECT_TRUE(succeeds(acknowledge_fallback(*opened))) << "nothing is left to acknowledge";
    }
    EXPECT_FALSE(fallback_of(open_pool<numbers>(path, options))) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(both, archapt, ::testing::Values("archapt-undo", "archapt-redo"),
                         [](const auto& one) {
                           return one.param == "archapt-undo" ? "undo" : "redo";
                         });

}  // namespace
}  // namespace stele::testing
