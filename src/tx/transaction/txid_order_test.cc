// The mutex under which TxIDs are drawn in ordered mode: held until released, released once.
#include <gtest/gtest.h>
#include <tx/transaction/txid_order.h>

#include <thread>

namespace stele::detail {
namespace {

TEST(txid_order, holds_the_mutex_until_it_is_released_once) {
  std::mutex txids;
  const auto is_free = [&] {
    bool got = false;
    std::thread([&] {
      got = txids.try_lock();
      if (got) txids.unlock();
    }).join();
    return got;
  };
  txid_order order;
  order.release();
  order.lock(txids);
  EXPECT_FALSE(is_free());
  order.release();
  EXPECT_TRUE(is_free());
  order.release();
}

}  // namespace
}  // namespace stele::detail
