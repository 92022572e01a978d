// What a process of its own tells of a body that died, and of a report that cannot be made.
#include <explore/child_output.h>
#include <explore/trap.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

namespace stele::explore {
namespace {

void die_in_a_body() {
  EXPECT_EQ(run_trapped([] { ::raise(SIGSEGV); }, 5), SIGSEGV);
}

TEST(output_of_child, is_what_is_reported_after_a_signal) {
  const auto out = output_of_child([] {
    die_in_a_body();
    return std::string("a wild pointer");
  });
  ASSERT_TRUE(out) << out.error().message;
  EXPECT_EQ(out->text, "a wild pointer");
  EXPECT_EQ(out->death, "");
}

TEST(output_of_child, is_a_death_where_the_report_waits_for_ever) {
  const auto out = output_of_child([]() -> std::string {
    die_in_a_body();
    for (;;) ::pause();  // as for the lock of malloc, if the signal came within it
  });
  ASSERT_TRUE(out) << out.error().message;
  EXPECT_EQ(out->text, "");
  EXPECT_NE(out->death, "");
}

}  // namespace
}  // namespace stele::explore
