// A pool that is full, or was full. Freeing always works, and freed memory can be allocated again,
// in any size and by any thread.
#include <tests/conformance/pools.h>

#include <thread>

namespace stele::testing {
namespace {

struct item_of_2000 {
  field<item_of_2000*> next;
  field<std::uint64_t> more[249];
};
struct item_of_48 {
  field<item_of_48*> next;
  field<std::uint64_t> more[5];
};
template <class Item>
struct stack {
  field<Item*> top;
  field<std::uint64_t> count;
};

pool_options smallest_logs(const setting& s, std::size_t size = 1u << 20) {
  // Checksums over home take 0.43 of the rest.
  const bool checksums = (*detail::find_mechanism(s.mechanism))->has_parity;
  auto o = s.options(checksums ? 2 * size : size);
  o.engine.log_size = 4096, o.engine.log_count = 2;
  return o;
}

template <class Item>
std::uint64_t fill(pool<stack<Item>>& p) {
  for (;;) {
    auto pushed = p.update([](stack<Item>& s) {
      auto* i = make<Item>();
      i->next = s.top;
      s.top = i;
      s.count += 1;
    });
    if (pushed) continue;
    EXPECT_TRUE(fails_with(pushed, errc::full));
    EXPECT_NE(pushed.error().message.find("no room"), std::string::npos);
    break;
  }
  return p.read([](const stack<Item>& s) { return s.count.load(); }).value_or(0);
}

template <class Item>
void empty(pool<stack<Item>>& p, int at_once) {
  for (bool more = true; more;) {
    auto popped = p.update([&](stack<Item>& s) {
      for (int k = 0; k < at_once && s.top != nullptr; ++k) {
        Item* const i = s.top;
        s.top = i->next.load();
        s.count -= 1;
        destroy(i);
      }
      return s.top != nullptr;
    });
    ASSERT_TRUE(succeeds(popped));
    more = *popped;
  }
}

// As many objects must fit as the first time. What fits into a log depends on its place in the
// chunks, so a log-structured pool may differ by a hundredth.
void expect_refilled(std::uint64_t again, std::uint64_t first, const std::string& mechanism) {
  EXPECT_NEAR(static_cast<double>(again), static_cast<double>(first),
              mechanism == "log_structured" ? static_cast<double>(first) / 100 : 0.0);
}

class full_pool : public ::testing::TestWithParam<std::string> {};

TEST_P(full_pool, is_emptied_and_filled_again_to_the_same_count) {
  for (const concurrency policy : all_policies) {
    SCOPED_TRACE(name_of(policy));
    scratch_directory dir;
    const setting s{GetParam(), "process", policy};
    auto p = open_pool<stack<item_of_48>>(dir.file("pool"), smallest_logs(s));
    const auto first = fill(p);
    EXPECT_GT(first * 48, (1u << 20) * 8 / 10) << "too much of the pool is out of reach";
    for (int round = 0; round < 3; ++round) {
      empty(p, 1 + 9 * round);
      EXPECT_EQ(audit(p).used_blocks, 1u);
      if (round == 1) {
        ASSERT_TRUE(succeeds(p.close()));
        p = open_pool<stack<item_of_48>>(dir.file("pool"), smallest_logs(s));
      }
      SCOPED_TRACE(round);
      expect_refilled(fill(p), first, GetParam());
    }
  }
}

// Small logs hold the descriptors of only some hundred chunks, and there is no free chunk for a
// longer record.
TEST_P(full_pool, serves_another_size_when_it_has_been_emptied) {
  scratch_directory dir;
  const setting s{GetParam(), "process"};
  auto p = open_pool<stack<item_of_2000>>(dir.file("pool"), smallest_logs(s, 3u << 20));
  const auto first = fill(p);
  empty(p, 10);
  auto big =
      p.update([](stack<item_of_2000>&) { detail::deallocate(detail::allocate(5u << 19, 8)); });
  EXPECT_TRUE(succeeds(big));
  expect_refilled(fill(p), first, GetParam());
}

// The free blocks in a thread's cache serve other threads too.
TEST_P(full_pool, serves_a_thread_with_what_another_freed) {
  scratch_directory dir;
  auto p = open_pool<stack<item_of_2000>>(dir.file("pool"), smallest_logs({GetParam(), "process"}));
  fill(p);
  empty(p, 10);
  std::thread([&] {
    EXPECT_TRUE(succeeds(
        p.update([](stack<item_of_2000>&) { detail::deallocate(detail::allocate(3u << 18, 8)); })));
    EXPECT_TRUE(succeeds(p.update([](stack<item_of_2000>&) { (void)make<item_of_48>(); })));
  }).join();
  EXPECT_TRUE(succeeds(p.update([](stack<item_of_2000>&) { (void)make<item_of_48>(); })))
      << "the first thread goes on";
  EXPECT_EQ(audit(p).used_blocks, 3u);
}

TEST_P(full_pool, is_as_it_was_after_an_allocation_that_did_not_fit) {
  scratch_directory dir;
  auto p = open_pool<stack<item_of_48>>(dir.file("pool"), smallest_logs({GetParam(), "process"}));
  const auto before = audit(p);
  auto failed = p.update([](stack<item_of_48>& s) {
    s.count = 99;
    for (int i = 0; i < 100; ++i) (void)make<item_of_48>();
    (void)make_array<field<std::uint64_t>>(1u << 30);
  });
  EXPECT_TRUE(fails_with(failed, errc::full));
  EXPECT_EQ(p.read([](const stack<item_of_48>& s) { return s.count.load(); }).value_or(1), 0u);
  const auto after = audit(p);
  EXPECT_EQ(after.used_blocks, before.used_blocks);
  EXPECT_EQ(after.used_bytes, before.used_bytes);
  EXPECT_TRUE(
      succeeds(p.update([](stack<item_of_48>& s) { s.count = 1, destroy(make<item_of_48>()); })));
}

INSTANTIATE_TEST_SUITE_P(all, full_pool, ::testing::ValuesIn(all_mechanisms()), plain_name);

}  // namespace
}  // namespace stele::testing
