// A pool grows in small steps, many times. Each growth puts the chunk table into new chunks and
// frees those of the previous table.
#include <tests/conformance/exercise.h>
#include <tx/inspect.h>

namespace stele::testing {
namespace {

class small_growth : public ::testing::TestWithParam<std::tuple<std::string, bool>> {};

TEST_P(small_growth, keeps_a_pool_sound_however_often) {
  const auto& [media, sums] = GetParam();
  scratch_directory dir;
  const std::string path = dir.file("pool");
  const pool_options options{.create_size = 64 << 10,
                             .engine = {.media = media,
                                        .log_size = 4096,
                                        .log_count = 2,
                                        .block_checksums = sums ? checksums::on : checksums::off,
                                        .verify = verification::always}};
  std::uint64_t n = 0;
  for (unsigned round = 0; round < 4; ++round) {
    auto p = open_pool<texts_root>(path, options);
    for (unsigned step = 0; step < 60; ++step) {
      SCOPED_TRACE("at " + std::to_string(p.space().size_bytes) + " bytes");
      const std::size_t before = p.space().size_bytes;
      ASSERT_TRUE(succeeds(p.grow(before + (step % 3 == 0 ? 1 : 4096 * step / 2 + 1))));
      EXPECT_GT(p.space().size_bytes, before);
      ASSERT_TRUE(succeeds(p.check()));
      if (step % 8 != 0) continue;
      ASSERT_TRUE(succeeds(p.update([&](texts_root& r) { put_text(r, n); })));
      ++n;
    }
    ASSERT_TRUE(succeeds(p.close()));
    ASSERT_TRUE(succeeds(detail::check_pool(path)));
  }
  EXPECT_EQ(expect_whole(path, options, {.acknowledged = n, .tried = n}), n);
}

INSTANTIATE_TEST_SUITE_P(on, small_growth,
                         ::testing::Combine(::testing::Values("file", "process", "adr"),
                                            ::testing::Bool()),
                         [](const auto& one) {
                           return std::get<0>(one.param) +
                                  (std::get<1>(one.param) ? "_with_sums" : "_without_sums");
                         });

}  // namespace
}  // namespace stele::testing
