// A device fails while a pool recovers, at each call in turn. The next recovery must find
// everything.
#include <tests/conformance/call_failure.h>
#include <tests/conformance/damage.h>

namespace stele::testing {
namespace {

class failing_recovery : public ::testing::TestWithParam<std::string> {};

TEST_P(failing_recovery, is_an_error_and_loses_nothing) {
  scratch_directory dir;
  const std::string path = dir.file("pool");
  const auto has_sums = (**detail::find_mechanism(GetParam())).home == format::home_kind::in_place;
  const target_pool v = make_target_pool(path, GetParam(), "process", true,
                                         has_sums ? checksums::on : checksums::automatic);
  const pool_options options{
      .engine = {.mechanism = GetParam(), .media = "file", .background = false}};
  for (const bool permanent : {false, true}) {
    std::uint64_t k = 1, refusals = 0;
    for (bool hit = true; hit; ++k) {
      SCOPED_TRACE("call " + std::to_string(k) + (permanent ? " and all after it fail" : " fails"));
      std::filesystem::remove(path);
      std::ofstream(path).write(reinterpret_cast<const char*>(v.bytes.data()),
                                static_cast<std::streamsize>(v.bytes.size()));
      {
        const call_failure call(k, permanent, EIO);
        const auto opened = pool<damaged_content>::open(path, options);
        hit = call.hit();
        if (!opened) {
          ++refusals;
        } else if (!hit) {
          EXPECT_EQ(*opened->read(content_of), v.content);
        }
      }
      const auto again = pool<damaged_content>::open(path, options);
      ASSERT_TRUE(succeeds(again));
      ASSERT_EQ(*again->read(content_of), v.content);
    }
    EXPECT_GT(refusals, 5u) << "of " << k << " calls";
  }
}

INSTANTIATE_TEST_SUITE_P(of, failing_recovery, ::testing::ValuesIn(durable_mechanisms()),
                         plain_name);

}  // namespace
}  // namespace stele::testing
