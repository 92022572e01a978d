// A name with a NUL byte. The system ends the name there, so a pool of the shorter name was once
// opened, made or overwritten.
#include <stele/kv.h>
#include <tests/conformance/pools.h>
#include <tx/inspect.h>

#include <filesystem>

namespace stele::testing {
namespace {

template <class R>
void expect_refused(const R& outcome) {
  ASSERT_TRUE(fails_with(outcome, errc::invalid_argument));
  EXPECT_NE(outcome.error().message.find("NUL byte"), std::string::npos) << outcome.error().message;
}

TEST(nul_in_name, is_refused_wherever_a_name_is_given) {
  using namespace std::string_literals;
  scratch_directory dir;
  const std::string path = dir.file("pool"), longer = path + "\0.more"s, fresh = dir.file("new");
  auto store = kv::open(path, {.create_size = 1 << 20});
  ASSERT_TRUE(succeeds(store));
  ASSERT_TRUE(succeeds(store->put("a", "1")));
  expect_refused(store->backup(fresh + "\0.more"s));
  expect_refused(kv::open(fresh + "\0.more"s, {.create_size = 1 << 20}));
  ASSERT_TRUE(succeeds(store->close()));
  expect_refused(kv::open(longer));
  expect_refused(kv::open(longer, {.create_size = 1 << 20}));
  expect_refused(kv::open_read_only(longer));
  expect_refused(detail::info_of(longer));
  expect_refused(detail::check_pool(longer));
  EXPECT_FALSE(std::filesystem::exists(fresh));
}

}  // namespace
}  // namespace stele::testing
