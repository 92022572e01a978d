// A pool remembers the type of its root, so that a program with another type of the same size does
// not take its bytes for its own.
#include <tests/conformance/pools.h>

namespace stele::testing {
namespace {

struct account {
  field<std::uint64_t> cents;
};
struct visitors {
  field<double> mean;
};
template <class... T>
struct with_a_long_name {
  field<std::uint64_t> n;
};
using long_name = with_a_long_name<account, visitors, with_a_long_name<account, visitors>>;
using other_long_name = with_a_long_name<account, visitors, with_a_long_name<visitors, account>>;

constexpr std::size_t pool_bytes = 1 << 20;

TEST(layout_names, of_another_root_type_are_refused_and_the_message_names_both) {
  scratch_directory dir;
  const std::string path = dir.file("pool");
  {
    auto p = open_pool<account>(path, {.create_size = pool_bytes});
    ASSERT_TRUE(succeeds(p.update([](account& a) { a.cents = 1234; })));
  }
  const auto refused = pool<visitors>::open(path);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::layout);
  for (const char* said : {"account'", "visitors'", "pool_options::layout = \"type "})
    EXPECT_NE(refused.error().message.find(said), std::string::npos) << refused.error().message;
  auto p = open_pool<account>(path, {});
  EXPECT_EQ(p.read([](const account& a) { return a.cents.load(); }).value(), 1234u);
}

TEST(layout_names, of_a_renamed_type_are_given) {
  scratch_directory dir;
  const std::string path = dir.file("pool");
  open_pool<account>(path, {.create_size = pool_bytes});
  const std::string held = open_pool<account>(path, {}).core().state().file.header().layout.data();
  EXPECT_EQ(held.substr(0, 5), "type ");
  EXPECT_NE(held.find("account"), std::string::npos);
  EXPECT_TRUE(pool<visitors>::open(path, {.layout = held}));
}

TEST(layout_names, that_programs_choose_are_compared_only_with_theirs) {
  scratch_directory dir;
  const std::string path = dir.file("pool");
  open_pool<account>(path, {.create_size = pool_bytes, .layout = "purse"});
  EXPECT_TRUE(pool<visitors>::open(path));
  EXPECT_TRUE(fails_with(pool<account>::open(path, {.layout = "wallet"}), errc::layout));
}

TEST(layout_names, of_types_do_not_hinder_a_migration_to_another_type) {
  scratch_directory dir;
  const std::string path = dir.file("pool");
  open_pool<account>(path, {.create_size = pool_bytes});
  const auto keep = [](migration&) -> result<> { return {}; };
  EXPECT_TRUE(pool<visitors>::open(path, {.layout_version = 1, .migrate = keep}));
  EXPECT_TRUE(pool<visitors>::open(path, {.layout_version = 1}));
}

TEST(layout_names, of_long_types_differ_where_their_beginnings_do_not) {
  scratch_directory dir;
  const std::string path = dir.file("pool");
  open_pool<long_name>(path, {.create_size = pool_bytes});
  EXPECT_TRUE(pool<long_name>::open(path));
  EXPECT_TRUE(fails_with(pool<other_long_name>::open(path), errc::layout));
}

TEST(layout_names, are_unknown_in_pools_of_programs_without_root_types) {
  scratch_directory dir;
  const std::string path = dir.file("pool");
  ASSERT_TRUE(detail::pool_handle::open(path, {.create_size = pool_bytes}, sizeof(account)));
  EXPECT_TRUE(pool<account>::open(path));
  EXPECT_TRUE(pool<visitors>::open(path));
}

}  // namespace
}  // namespace stele::testing
