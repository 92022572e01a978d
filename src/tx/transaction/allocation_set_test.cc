// The allocations of a transaction on a heap in memory: a block is given out again when the
// transaction that freed it has committed, or the one that took it has rolled back.
#include <gtest/gtest.h>
#include <pool/memory_pool.h>
#include <tx/transaction/allocation_set.h>

#include <cstring>
#include <memory>

namespace stele::detail {
namespace {

// Stores at once: the tests look at the volatile side only.
class direct_writer final : public storage::heap::writer {
 public:
  explicit direct_writer(const storage::pool_file& file) : file_(file) {}
  void write_private(std::uint64_t offset, std::uint64_t value, unsigned size) override {
    std::memcpy(file_.at(offset), &value, size);
  }
  std::uint64_t read_private(std::uint64_t offset, unsigned size) override {
    std::uint64_t value = 0;
    std::memcpy(&value, file_.at(offset), size);
    return value;
  }
  void claim(std::uint64_t, std::size_t) override {}

 private:
  const storage::pool_file& file_;
};

class allocation_set_test : public ::testing::Test {
 protected:
  allocation_set_test() {
    heap_ = std::make_unique<storage::heap>(*file_);
    EXPECT_TRUE(heap_->load());
    writer_ = std::make_unique<direct_writer>(*file_);
    set_ = std::make_unique<allocation_set>(*heap_);
  }
  std::uint64_t take() {
    const auto block = set_->allocate(*writer_, 64, 8);
    EXPECT_TRUE(block);
    return block.value_or(0);
  }

  testing::memory_pool pool_{{.size = 512 << 10, .log_size = 4096, .log_count = 1, .layout = ""}};
  storage::pool_file* const file_ = &pool_.file();
  std::unique_ptr<storage::heap> heap_;
  std::unique_ptr<direct_writer> writer_;
  std::unique_ptr<allocation_set> set_;
};

TEST_F(allocation_set_test, lists_what_was_taken_until_the_commit) {
  const std::uint64_t block = take();
  ASSERT_EQ(set_->changes().allocated.size(), 1u);
  EXPECT_EQ(set_->changes().allocated[0].offset, block);
  set_->commit();
  EXPECT_TRUE(set_->changes().empty());
  EXPECT_NE(take(), block);
}

TEST_F(allocation_set_test, gives_out_again_what_a_rollback_returned) {
  take();
  set_->commit();  // the slab stays
  const std::uint64_t block = take();
  set_->rollback();
  EXPECT_EQ(take(), block);
}

TEST_F(allocation_set_test, keeps_freed_blocks_back_until_the_commit) {
  const std::uint64_t block = take();
  set_->commit();
  ASSERT_TRUE(set_->deallocate(*writer_, block));
  EXPECT_NE(take(), block);
  set_->commit();
  EXPECT_EQ(take(), block);
}

TEST_F(allocation_set_test, keeps_deferred_changes_back_until_their_own_commit) {
  const std::uint64_t block = take();
  set_->commit();
  ASSERT_TRUE(set_->deallocate(*writer_, block));
  storage::heap::changes later;
  later.reserve(set_->changes());
  set_->defer(later);
  EXPECT_TRUE(set_->changes().empty());
  EXPECT_NE(take(), block);
  set_->commit();
  EXPECT_NE(take(), block);
  set_->commit(later);
  EXPECT_EQ(take(), block);
}

TEST_F(allocation_set_test, other_logs_get_the_blocks_that_it_returns) {
  const std::uint64_t block = take();
  set_->commit();
  ASSERT_TRUE(set_->deallocate(*writer_, block));
  set_->commit();
  allocation_set other(*heap_);
  set_->return_cached_blocks();
  bool found = false;
  for (int i = 0; i < 32 && !found; ++i) found = *other.allocate(*writer_, 64, 8) == block;
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace stele::detail
