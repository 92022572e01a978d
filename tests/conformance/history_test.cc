// The history checker reports each planted anomaly, and accepts correct histories.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tests/conformance/history_checker.h>

namespace stele::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

list_access append(std::uint32_t list, std::uint64_t element) {
  return {list, true, element, 0, {}};
}
list_access read(std::uint32_t list, std::vector<std::uint64_t> elements, std::uint64_t first = 0) {
  return {list, false, 0, first, std::move(elements)};
}
transaction_record committed(std::int64_t from, std::int64_t to,
                             std::vector<list_access> accesses) {
  return {from, to, true, std::move(accesses)};
}

TEST(history, a_serial_one_passes) {
  EXPECT_THAT(anomalies_of({
                  committed(0, 1, {read(0, {}), append(0, 1)}),
                  committed(2, 3, {read(0, {1}), append(0, 2), read(0, {1, 2})}),
                  committed(4, 5, {read(0, {2}, 1), append(1, 3)}),
                  committed(6, 7, {read(1, {3})}),
              }),
              IsEmpty());
}

TEST(history, overlapping_transactions_may_take_effect_in_either_order) {
  EXPECT_THAT(anomalies_of({
                  committed(0, 9, {append(0, 1)}),
                  committed(1, 3, {read(0, {})}),
                  committed(4, 6, {read(0, {1})}),
              }),
              IsEmpty());
}

TEST(history, a_lost_append_is_flagged) {
  EXPECT_THAT(anomalies_of({
                  committed(0, 1, {append(0, 1)}),
                  committed(2, 3, {append(0, 2)}),
                  committed(4, 5, {read(0, {2})}),
              }),
              ElementsAre(HasSubstr("lost: element 1")));
}

TEST(history, a_read_that_is_stale_in_real_time_is_flagged) {
  EXPECT_THAT(anomalies_of({
                  committed(0, 1, {append(0, 1)}),
                  committed(2, 3, {read(0, {})}),
                  committed(4, 5, {read(0, {1})}),
              }),
              ElementsAre(HasSubstr("cycle:")));
}

TEST(history, write_skew_is_flagged) {
  EXPECT_THAT(anomalies_of({
                  committed(0, 9, {read(0, {}), append(1, 1)}),
                  committed(0, 9, {read(1, {}), append(0, 2)}),
                  committed(10, 11, {read(0, {2}), read(1, {1})}),
              }),
              ElementsAre(HasSubstr("cycle:")));
}

TEST(history, reads_of_rolled_back_and_of_intermediate_states_are_flagged) {
  EXPECT_THAT(anomalies_of({{0, 9, false, {append(0, 1)}}, committed(1, 2, {read(0, {1})})}),
              ElementsAre(HasSubstr("G1a")));
  EXPECT_THAT(anomalies_of({committed(0, 9, {append(0, 1), append(0, 2)}),
                            committed(1, 2, {read(0, {1})}), committed(3, 4, {read(0, {1, 2})})}),
              ElementsAre(HasSubstr("G1b")));
}

TEST(history, an_element_from_nowhere_a_double_and_two_orders_are_flagged) {
  EXPECT_THAT(anomalies_of({committed(1, 2, {read(0, {7})})}), ElementsAre(HasSubstr("nobody")));
  EXPECT_THAT(anomalies_of({committed(0, 1, {append(0, 1)}), committed(2, 3, {read(0, {1, 1})})}),
              ElementsAre(HasSubstr("twice")));
  EXPECT_THAT(
      anomalies_of({committed(0, 5, {append(0, 1)}), committed(0, 5, {append(0, 2)}),
                    committed(6, 7, {read(0, {1, 2})}), committed(6, 7, {read(0, {2, 1})})}),
      ::testing::Contains(HasSubstr("at index")));
}

TEST(history, a_transaction_that_sees_two_states_or_misses_its_own_append_is_flagged) {
  EXPECT_THAT(
      anomalies_of({committed(0, 9, {append(0, 1)}), committed(0, 9, {read(0, {}), read(0, {1})})}),
      ElementsAre(HasSubstr("at lengths")));
  EXPECT_THAT(anomalies_of({committed(0, 9, {read(0, {}), append(0, 1), read(0, {})}),
                            committed(10, 11, {read(0, {1})})}),
              ElementsAre(HasSubstr("at lengths")));
}

}  // namespace
}  // namespace stele::testing
