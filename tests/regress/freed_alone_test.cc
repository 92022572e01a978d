// A transaction that only destroys objects. In a log-structured pool it stores no word, as the
// states of blocks follow from the log; it was taken for one that changes nothing, and lost.
#include <tests/conformance/pools.h>

#include <thread>

namespace stele::testing {
namespace {

struct node {
  field<std::uint64_t> words[8];
};
struct root {
  field<node*> last;
  field<std::uint64_t> n;
};

class freed_alone : public ::testing::TestWithParam<std::string> {
 protected:
  // Of a pool with one node, to which `last` keeps pointing.
  pool<root> made(concurrency policy) {
    auto p = open_pool<root>(path_, options(policy));
    before_ = audit(p).used_blocks;
    EXPECT_TRUE(succeeds(p.update([](root& r) { r.last = make<node>(); })));
    return p;
  }
  pool_options options(concurrency policy) const {
    return setting{GetParam(), "adr", policy}.options(1 << 20);
  }
  static result<> destroy_only(pool<root>& p) {
    return p.update([](root& r) { destroy(r.last.load()); });
  }

  scratch_directory dir_;
  const std::string path_ = dir_.file("pool");
  std::size_t before_ = 0;
};

TEST_P(freed_alone, stays_free_when_the_pool_is_opened_again) {
  for (const concurrency policy :
       {concurrency::stm, concurrency::single_writer, concurrency::external}) {
    {
      auto p = made(policy);
      const auto ticket = p.committed();
      EXPECT_TRUE(succeeds(destroy_only(p)));
      EXPECT_GT(p.committed().commit, ticket.commit);
      EXPECT_EQ(audit(p).used_blocks, before_);
    }
    {
      auto p = open_pool<root>(path_, options(policy));
      EXPECT_EQ(audit(p).used_blocks, before_);
    }
    std::filesystem::remove(path_);
  }
}

TEST_P(freed_alone, stays_free_when_a_later_transaction_is_rolled_back) {
  auto p = made(concurrency::stm);
  EXPECT_TRUE(succeeds(destroy_only(p)));
  EXPECT_TRUE(fails_with(p.update([](root& r) {
    r.n = 1;
    cancel("not this one");
  }),
                         errc::cancelled));
  EXPECT_EQ(audit(p).used_blocks, before_);
  EXPECT_TRUE(fails_with(destroy_only(p), errc::invalid_argument));
}

TEST_P(freed_alone, can_be_used_by_another_thread) {
  auto p = made(concurrency::stm);
  EXPECT_TRUE(succeeds(destroy_only(p)));
  EXPECT_TRUE(succeeds(p.check()));  // gives the block to all
  std::thread([&] {
    for (int i = 0; i < 100; ++i)
      EXPECT_TRUE(succeeds(p.update([](root& r) {
        r.last = make<node>();
        for (auto& w : r.last->words) w = 7;
      })));
  }).join();
  EXPECT_EQ(audit(p).used_blocks, before_ + 100);
}

INSTANTIATE_TEST_SUITE_P(all, freed_alone, ::testing::ValuesIn(all_mechanisms()), plain_name);

}  // namespace
}  // namespace stele::testing
