// Every system call on a pool file fails in turn, alone or with all later ones. Each time an error
// is returned, and reopening the pool finds everything acknowledged.
#include <tests/conformance/call_failure.h>
#include <tests/conformance/exercise.h>

namespace stele::testing {
namespace {

class failing_calls : public ::testing::TestWithParam<std::tuple<std::string, bool>> {};

TEST_P(failing_calls, are_errors_and_lose_nothing) {
  const auto& [media, permanent] = GetParam();
  scratch_directory dir;
  const std::string path = dir.file("pool"), copy = path + ".copy";
  const pool_options options{.create_size = 128 << 10,
                             .engine = {.media = media,
                                        .log_size = 4096,
                                        .log_count = 2,
                                        .block_checksums = checksums::on,
                                        .verify = verification::always,
                                        .background = false}};
  for (const int number : {EIO, ENOSPC}) {
    std::uint64_t k = 1, held = 0;
    for (bool hit = true; hit; ++k) {
      SCOPED_TRACE("call " + std::to_string(k) + " fails");
      outcome o;
      {
        const call_failure call(k, permanent, number);
        o = use(path, options, held);
        hit = call.hit();
      }
      if (std::filesystem::exists(copy))
        expect_whole(copy, options, {.acknowledged = 0, .tried = o.tried});
      held = expect_whole(path, options, o);
      std::filesystem::remove(copy);
      // Then creation fails too, not only a pool that was used before.
      if (k % 4 == 0) std::filesystem::remove(path), held = 0;
      if (HasFailure()) return;
    }
    EXPECT_GT(k, 20u) << "there are more calls than that";
    std::filesystem::remove(path);
  }
}

INSTANTIATE_TEST_SUITE_P(
    of, failing_calls, ::testing::Combine(::testing::Values("file", "process"), ::testing::Bool()),
    [](const auto& one) {
      return std::get<0>(one.param) + (std::get<1>(one.param) ? "_for_good" : "_once");
    });

}  // namespace
}  // namespace stele::testing
