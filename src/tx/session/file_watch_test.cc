// A pool whose name leads elsewhere takes no more updates, and says what has become of the name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tx/session/file_watch.h>

namespace stele::detail {
namespace {

using storage::file_place;
using testing::HasSubstr;

TEST(file_watch, a_file_in_its_place_changes_nothing) {
  file_watch watch(true);
  watch.note(file_place::in_place);
  EXPECT_TRUE(watch.has_plain_updates());
  EXPECT_EQ(watch.place(), file_place::in_place);
  EXPECT_FALSE(file_watch(false).has_plain_updates());
}

TEST(file_watch, updates_take_the_long_way_for_good_once_the_name_leads_elsewhere) {
  file_watch watch(true);
  watch.note(file_place::renamed);
  watch.note(file_place::in_place);  // renamed back: what others did meanwhile is not known
  EXPECT_FALSE(watch.has_plain_updates());
  EXPECT_EQ(watch.place(), file_place::renamed);
}

TEST(file_watch, the_refusal_says_where_the_commits_are) {
  const auto said = [](file_place where) {
    file_watch watch(true);
    watch.note(where);
    const error why = watch.refusal("a.stele", 7);
    EXPECT_EQ(why.code, errc::read_only);
    return why.message;
  };
  EXPECT_THAT(said(file_place::renamed), HasSubstr("a.stele was renamed or moved"));
  EXPECT_THAT(said(file_place::replaced), HasSubstr("a.stele names another file now"));
  EXPECT_THAT(said(file_place::removed), HasSubstr("a.stele was removed"));
  EXPECT_THAT(said(file_place::removed), HasSubstr("/fd/7"));
}

}  // namespace
}  // namespace stele::detail
