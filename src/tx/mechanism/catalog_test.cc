// Looks media up by name, and published mechanisms by their logs. Names that are no medium:
// tests/conformance/bad_input_test.cc.
#include <gtest/gtest.h>
#include <tx/mechanism/catalog.h>

namespace stele::detail {
namespace {

using kind = media_choice::kind;

TEST(media_names, name_media_without_parameters) {
  for (const auto& [name, what] : {std::pair{"adr", kind::adr},
                                   {"eadr", kind::eadr},
                                   {"process", kind::process},
                                   {"file", kind::file}}) {
    const auto c = parse_media(name);
    ASSERT_TRUE(c) << c.error().message;
    EXPECT_EQ(c->what, what) << name;
  }
}

TEST(published_logs, name_the_mechanisms_that_write_them) {
  EXPECT_EQ(published_with_logs(log_kind::none), "");
  EXPECT_EQ(published_with_logs(log_kind::ordered_writes), "base or base-published");
  EXPECT_EQ(published_with_logs(log_kind::lines_or_blocks), "xil, blurred or adaptive");
}

}  // namespace
}  // namespace stele::detail
