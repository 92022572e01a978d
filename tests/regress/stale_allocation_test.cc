// A block that was freed after a transaction's snapshot was allocated to that transaction, which
// zeroed it while its body could still reach it. The body followed a wild pointer, although its
// commit would have failed and retried it.
#include <tests/conformance/pools.h>

#include <atomic>
#include <thread>

namespace stele::testing {
namespace {

struct item {
  field<std::uint64_t> value;
  field<std::uint64_t> rest[1023];  // chunks of its own: the last freed ones are allocated first
};
struct holder {
  field<item*> held;
};

TEST(Regress, a_body_is_not_given_what_it_can_still_see) {
  const scratch_directory directory;
  auto pool = open_pool<holder>(directory.file("pool"),
                                {.create_size = 1 << 20, .engine = {.media = "process"}});
  ASSERT_TRUE(pool.update([](holder& h) {
    h.held = make<item>();
    h.held->value = 7;
  }));
  std::atomic<int> step{0};
  std::jthread other([&] {
    step.wait(0);
    EXPECT_TRUE(pool.update([](holder& h) {
      destroy(h.held.load());
      h.held = nullptr;
    }));
    step = 2;
    step.notify_all();
  });
  bool torn = false;
  EXPECT_TRUE(pool.update([&](holder& h) {
    item* const seen = h.held;
    if (seen == nullptr) return;  // retried, after the other transaction
    if (step == 0) {
      step = 1;
      step.notify_all();
      step.wait(1);
    }
    (void)make<item>();
    torn = torn || seen->value != 7;
  }));
  EXPECT_FALSE(torn);
}

}  // namespace
}  // namespace stele::testing
