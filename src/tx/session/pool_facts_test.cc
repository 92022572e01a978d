// What options and mechanism make of a pool.
#include <gtest/gtest.h>
#include <tx/session/pool_facts.h>

namespace stele::detail {
namespace {

pool_facts facts(const pool_options& options, const engine::traits& what, bool remapped = false) {
  return {options, what, remapped, "some", durability_level::power};
}

TEST(pool_facts, stores_go_home_at_once_only_beside_no_other_writer_and_to_a_home_in_place) {
  const engine::traits unprotected{.stores_in_place = true};
  pool_options options;
  options.policy = concurrency::single_writer;
  EXPECT_TRUE(facts(options, unprotected).in_place);
  EXPECT_FALSE(facts(options, {}).in_place);
  EXPECT_FALSE(facts(options, unprotected, true).in_place);
  options.policy = concurrency::stm;
  EXPECT_FALSE(facts(options, unprotected).in_place);
}

TEST(pool_facts, ordered_commits_are_deferred_where_mechanism_and_options_agree) {
  pool_options options;
  options.engine.defer_ordered = deferral::always;
  const pool_facts both = facts(options, {.defers_ordered = true});
  EXPECT_TRUE(both.wants_to_defer && both.defers_ordered && both.tells_ordered);
  const pool_facts cannot = facts(options, {});
  EXPECT_TRUE(cannot.wants_to_defer);
  EXPECT_FALSE(cannot.defers_ordered || cannot.tells_ordered);
  EXPECT_TRUE(facts(options, {.tells_ordered = true}).tells_ordered);
}

}  // namespace
}  // namespace stele::detail
