// stele::testing as its users use it: structures that are right pass, planted
// bugs are found and repeated by their lines, bad input is told in a sentence.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tests/testing/structures.h>

#include <cstdlib>

#include "examples/skip_list_test.h"

namespace tested {
namespace {

using stele::testing::explore;
using stele::testing::options;
using stele::testing::report;
using ::testing::HasSubstr;

TEST(testing, a_skip_list_survives_every_crash) {
  const report found = explore<skip_list_test>(
      {.mechanisms = stele::testing::mechanisms(), .operations = 30, .states = 64});
  EXPECT_TRUE(found.passed()) << found;
  EXPECT_GT(found.states, 10000u);
  EXPECT_GT(found.recoveries, 0u);
  std::cout << found << '\n';
}

template <class T>
void expect_right(const options& how = {.operations = 40, .states = 64}) {
  const report found = explore<T>(how);
  EXPECT_TRUE(found.passed()) << found;
  EXPECT_GT(found.states, 100u);
}

TEST(testing, structures_that_are_right_pass) {
  expect_right<stack_test>();
  expect_right<cancels>();
  expect_right<begins_with_some>();
  expect_right<map_test>();
  expect_right<skip_list_test>({.media = "file", .operations = 15, .states = 16});
  expect_right<stack_test>({.operations = 20, .per_transaction = 3, .threads = 3, .states = 32});
  expect_right<stack_test>({.mechanisms = {"default", "default"}, .operations = 15, .states = 16});
}

// The bug is found, its sentence says this, and its line repeats it, and
// nothing else.
template <class T>
void expect_found(const std::string& sentence, const options& how = {.operations = 40}) {
  const report found = explore<T>(how);
  ASSERT_FALSE(found.passed()) << found;
  const auto& failure = found.failures[0];
  EXPECT_THAT(failure.what, HasSubstr(sentence));
  EXPECT_THAT(found.message(), HasSubstr("STELE_REPLAY='" + failure.replay + "'"));
  ASSERT_FALSE(failure.replay.empty()) << found;

  options again = how;
  again.replay = failure.replay;
  const report repeated = explore<T>(again);
  ASSERT_FALSE(repeated.passed()) << repeated;
  EXPECT_EQ(repeated.failures[0].what, failure.what);
  EXPECT_EQ(repeated.failures[0].replay, failure.replay);
  EXPECT_EQ(repeated.states, 0u);
}

TEST(testing, a_store_past_the_transaction_is_found) {
  expect_found<stores_past_the_transaction>("stored to the pool past the transaction");
}
struct skip_list_with_plain_size
    : basic_skip_list_test<basic_skip_list<stele::plain<std::uint64_t>>> {};
TEST(testing, a_size_that_no_transaction_knows_is_found) {
  expect_found<skip_list_with_plain_size>("stored to the pool past the transaction");
}
TEST(testing, an_operation_in_two_updates_is_found) {
  expect_found<updates_twice>("check() says: size or sum is not that of the nodes");
}
TEST(testing, an_intermediate_state_that_looks_sound_is_found) {
  expect_found<moves_in_two_steps>("what was recovered is no state that the run ever had");
}
TEST(testing, an_early_return_is_found) {
  expect_found<returns_too_early>("had been acknowledged");
}
TEST(testing, a_leak_is_found) {
  expect_found<leaks_a_block>("has leaked a block of");
}
TEST(testing, a_leak_by_a_crash_is_found) {
  expect_found<leaks_by_a_crash>("memory is leaked");
}
TEST(testing, an_object_that_is_destroyed_and_reached_is_found) {
  expect_found<frees_too_early>("reaches an object that has been destroyed");
}
TEST(testing, a_model_that_differs_is_found) {
  expect_found<model_differs>("is not as the model; check() says: element 0 is");
}
TEST(testing, a_model_that_differs_at_first_is_found) {
  expect_found<model_differs_at_first>("the structure at the beginning, before any operation");
}
TEST(testing, a_check_that_overlooks_changes_is_found) {
  expect_found<check_overlooks_values>("check() does not see what was changed");
}
TEST(testing, a_generator_that_does_not_repeat_is_found) {
  expect_found<draws_at_random>("draw() gives another operation 1 when it is called again");
}
TEST(testing, a_structure_that_does_not_repeat_is_found) {
  expect_found<stores_at_random>("two runs of the same operations store different bytes");
}
TEST(testing, an_operation_that_throws_is_told) {
  expect_found<throws>("apply() throws: three are too many");
}
TEST(testing, an_operation_that_fails_is_told) {
  expect_found<returns_an_error>("fails: three: no more");
}
TEST(testing, a_model_that_throws_is_told) {
  expect_found<model_throws>("throws: the model has no room");
}
TEST(testing, a_wild_pointer_fails_the_test_and_does_not_end_it) {
  expect_found<follows_null>("followed a wild pointer (signal 11)");
}
TEST(testing, a_pool_that_is_too_small_is_told) {
  expect_found<needs_much_room>("set_up() does not fit into a pool of 65536 bytes");
  expect_found<never_fits>("none of the 40 operations fits into a pool of 65536 bytes");
}

void expect_refused(const options& how, const std::string& sentence) {
  const report found = explore<stack_test>(how);
  ASSERT_FALSE(found.passed()) << sentence;
  EXPECT_THAT(found.failures[0].what, HasSubstr(sentence));
  EXPECT_THAT(found.message(), HasSubstr("FAILS " + found.failures[0].what));
  EXPECT_EQ(found.states, 0u);
}

TEST(testing, bad_options_are_told) {
  expect_refused({.mechanisms = {"magic"}}, "magic");
  expect_refused({.mechanisms = {"none"}}, "'none' keeps nothing after a crash");
  expect_refused({.mechanisms = {}}, "options::mechanisms is empty");
  expect_refused({.media = "tape"}, "options::media is 'tape': choose memory or file");
  expect_refused({.pool_size = 4096}, "4096");
  expect_refused({.operations = 0}, "options::operations is 0");
  expect_refused({.per_transaction = 0}, "options::per_transaction is 0");
  expect_refused({.threads = 65}, "options::threads is 65: give a number from 1 to 64");
  expect_refused({.states = 0}, "options::states is 0");
  expect_refused({.recovery_depth = 0}, "options::recovery_depth is 0");
  expect_refused({.most_failures = 0}, "options::most_failures is 0");
  expect_refused({.replay = "walk default/stack_test"}, "the first word is the engine");
  expect_refused({.replay = "run default/heap"}, "of the structure 'heap'");
  expect_refused({.replay = "run default/stack_test at=999999:0"},
                 "there is no crash point 999999");
  const report twice = explore<updates_twice>({.per_transaction = 2});
  ASSERT_FALSE(twice.passed());
  EXPECT_THAT(twice.failures[0].what, HasSubstr("runs its own transactions"));
}

TEST(testing, the_environment_names_what_is_replayed) {
  const report found = explore<updates_twice>({.operations = 40});
  ASSERT_FALSE(found.passed());
  ::setenv("STELE_REPLAY", found.failures[0].replay.c_str(), 1);
  const report repeated = explore<updates_twice>({.operations = 40});
  const report other = explore<stack_test>({.operations = 5, .states = 8});  // not named: explored
  ::setenv("STELE_REPLAY", "nonsense", 1);
  const report wrong = explore<stack_test>({.operations = 5, .states = 8});
  ::unsetenv("STELE_REPLAY");
  ASSERT_FALSE(repeated.passed());
  EXPECT_EQ(repeated.failures[0].what, found.failures[0].what);
  EXPECT_THAT(repeated.message(), HasSubstr("LOST"));
  EXPECT_TRUE(other.passed()) << other;
  EXPECT_GT(other.states, 0u);
  ASSERT_FALSE(wrong.passed());
  EXPECT_THAT(wrong.failures[0].what, HasSubstr("STELE_REPLAY: "));
}

TEST(testing, the_same_options_explore_the_same_states) {
  const options how = {.operations = 15, .states = 32};
  const report one = explore<skip_list_test>(how), other = explore<skip_list_test>(how);
  EXPECT_EQ(one.states, other.states);
  EXPECT_EQ(one.distinct_states, other.distinct_states);
  const report seeded = explore<skip_list_test>({.operations = 15, .states = 32, .seed = 2});
  EXPECT_NE(one.distinct_states, seeded.distinct_states);
}

TEST(testing, names_are_words) {
  EXPECT_EQ(explore<begins_with_some>({.operations = 0}).structure, "stack_of_three");
  EXPECT_EQ(explore<stack_test>({.operations = 0}).structure, "stack_test");
  struct of_two_words : stack_test {
    static constexpr const char* name_of() { return "two words"; }
  };
  EXPECT_EQ(explore<of_two_words>({.operations = 0}).structure, "of_two_words");
}

TEST(testing, compare_names_the_first_difference) {
  using stele::testing::compare;
  using numbers = std::vector<int>;
  EXPECT_EQ(compare(numbers{1, 2}, numbers{1, 2}), "");
  EXPECT_EQ(compare(numbers{1, 3}, numbers{1, 2}), "element 1 is 3, and should be 2");
  EXPECT_EQ(compare(numbers{1}, numbers{1, 2}), "element 1 is missing, and should be 2");
  EXPECT_EQ(compare(numbers{1, 2}, numbers{1}), "element 1 is 2, and should be the end");
  EXPECT_EQ(compare(std::map<int, std::string>{{1, "a"}}, std::map<int, std::string>{{1, "b"}}),
            "element 0 is (1, \"a\"), and should be (1, \"b\")");
}

}  // namespace
}  // namespace tested
