// Looks media up by name. Names that are no medium: tests/conformance/bad_input_test.cc.
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

}  // namespace
}  // namespace stele::detail
