// Callbacks are called once, in the order of their commits, and without the mutex.
#include <gtest/gtest.h>
#include <tx/session/durable_callbacks.h>

#include <vector>

namespace stele::detail {
namespace {

struct waiting_callbacks : testing::Test {
  void add(std::uint64_t txid) {
    waiting.add(txid, [this, txid](const result<>& how) {
      called.push_back(txid);
      if (!how) errors.push_back(how.error().message);
    });
  }
  std::atomic<bool> any{false};
  durable_callbacks waiting{any};
  std::vector<std::uint64_t> called;
  std::vector<std::string> errors;
};

TEST_F(waiting_callbacks, of_durable_commits_are_called_in_order_and_others_wait) {
  EXPECT_FALSE(any);
  for (const std::uint64_t txid : {7, 3, 9, 5}) add(txid);
  EXPECT_TRUE(any);
  waiting.call_durable([] { return std::uint64_t{7}; });
  EXPECT_EQ(called, (std::vector<std::uint64_t>{3, 5, 7}));
  EXPECT_TRUE(any) << "9 is not durable";
  waiting.call_durable([] { return std::uint64_t{9}; });
  EXPECT_EQ(called.back(), 9u);
  EXPECT_FALSE(any);
  EXPECT_TRUE(errors.empty());
}

TEST_F(waiting_callbacks, are_all_told_how_the_pool_ended) {
  add(1);
  add(1000);
  waiting.end(std::unexpected(error{errc::poisoned, "the disk is gone"}));
  EXPECT_EQ(called.size(), 2u);
  EXPECT_EQ(errors, (std::vector<std::string>{"the disk is gone", "the disk is gone"}));
  EXPECT_FALSE(any);
  waiting.end({});
  EXPECT_EQ(called.size(), 2u) << "each once";
}

TEST_F(waiting_callbacks, may_add_another) {
  waiting.add(1, [this](const result<>&) { add(2); });
  waiting.call_durable([] { return std::uint64_t{1}; });
  EXPECT_TRUE(any);
  waiting.call_durable([] { return std::uint64_t{2}; });
  EXPECT_EQ(called, (std::vector<std::uint64_t>{2}));
}

TEST_F(waiting_callbacks, get_a_short_error_when_there_is_no_memory_for_a_sentence) {
  const error why = durable_callbacks::make_error(errc::poisoned,
                                                  []() -> std::string { throw std::bad_alloc(); });
  EXPECT_EQ(why.message, "out of memory");
}

}  // namespace
}  // namespace stele::detail
