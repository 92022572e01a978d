// Destructors of what lies in a pool: they never throw, and a transaction in which one has failed
// does not commit.
#include <stele/array.h>
#include <stele/bptree.h>
#include <stele/document.h>
#include <stele/hash_map.h>
#include <stele/map.h>
#include <stele/queue.h>
#include <stele/set.h>
#include <stele/string.h>
#include <stele/vector.h>
#include <tests/conformance/pools.h>

#include <atomic>
#include <thread>

namespace stele::testing {
namespace {

static_assert(std::is_nothrow_destructible_v<string> &&
              std::is_nothrow_destructible_v<vector<string>> &&
              std::is_nothrow_destructible_v<array<string>> &&
              std::is_nothrow_destructible_v<queue<string>> &&
              std::is_nothrow_destructible_v<map<string, string>> &&
              std::is_nothrow_destructible_v<set<string>> &&
              std::is_nothrow_destructible_v<hash_map<string, string>> &&
              std::is_nothrow_destructible_v<hash_set<string>> &&
              std::is_nothrow_destructible_v<bptree<std::uint64_t, string>> &&
              std::is_nothrow_destructible_v<document_value>);

struct shelf {
  using pool_resident = void;
  map<std::uint64_t, string> texts;
  field<map<std::uint64_t, string>*> boxed;
  field<std::uint64_t> edition;
};

class destructors : public on_every_setting {};

// Throws what `ending` throws, in a destructor, in the first attempts of a body.
template <class Ending>
auto after_a_failed_destructor(pool<shelf>& p, int failures, Ending&& ending) {
  int attempt = 0;
  const auto done = p.update([&](shelf& s) {
    s.edition += 1;
    s.texts[7] = "seven";
    if (attempt++ < failures) run_destructor([&] { ending(); });
  });
  return std::pair{done, attempt};
}

TEST_P(destructors, that_meet_a_conflict_have_the_body_run_again) {
  under_each_policy([](const setting& s) {
    scratch_directory dir;
    auto p = open_pool<shelf>(dir.file("pool"), s.options());
    const auto [done, attempts] = after_a_failed_destructor(p, 3, [] { throw conflict{}; });
    ASSERT_TRUE(succeeds(done));
    EXPECT_EQ(attempts, 4);
    EXPECT_EQ(*p.read([](const shelf& r) { return r.edition.load(); }), 1u);
    EXPECT_EQ(*p.read([](const shelf& r) { return r.texts.size(); }), 1u);
  });
}

TEST_P(destructors, that_fail_leave_nothing_of_their_transaction) {
  under_each_policy([](const setting& s) {
    scratch_directory dir;
    auto p = open_pool<shelf>(dir.file("pool"), s.options());
    const auto [done, attempts] = after_a_failed_destructor(
        p, 1, [] { throw failure({errc::corrupt, "a link leads nowhere"}); });
    EXPECT_TRUE(fails_with(done, errc::corrupt));
    EXPECT_EQ(attempts, 1);
    EXPECT_THROW((void)after_a_failed_destructor(p, 1, [] { throw std::bad_alloc(); }),
                 std::bad_alloc);
    EXPECT_EQ(*p.read([](const shelf& r) { return r.edition.load(); }), 0u);
    EXPECT_EQ(audit(p).used_blocks, 1u);
    ASSERT_TRUE(succeeds(p.update([](shelf& r) { r.edition = 5; }))) << "the next one is whole";
  });
}

TEST_P(destructors, in_a_nested_body_end_the_outer_one) {
  under_each_policy([](const setting& s) {
    scratch_directory dir;
    auto p = open_pool<shelf>(dir.file("pool"), s.options());
    EXPECT_TRUE(fails_with(p.update([&](shelf& r) {
      r.edition = 1;
      (void)p.update([](shelf&) {
        run_destructor([] { throw failure({errc::corrupt, "a link leads nowhere"}); });
      });
      r.edition = 2;
    }),
                           errc::corrupt));
    EXPECT_EQ(*p.read([](const shelf& r) { return r.edition.load(); }), 0u);
  });
}

TEST_P(destructors, cannot_free_inside_a_read) {
  under_each_policy([](const setting& s) {
    scratch_directory dir;
    auto p = open_pool<shelf>(dir.file("pool"), s.options());
    ASSERT_TRUE(succeeds(
        p.update([](shelf& r) { r.texts[1] = "a text that is too long to lie in its object"; })));
    EXPECT_TRUE(fails_with(p.read([](const shelf& r) { r.texts.~basic_map(); }), errc::read_only));
    EXPECT_EQ(*p.read([](const shelf& r) { return r.texts.size(); }), 1u);
  });
}

// One thread replaces a map, which destroys the former one, while others change it.
TEST_P(destructors, beside_other_threads_lose_and_leak_nothing) {
  scratch_directory dir;
  auto p = open_pool<shelf>(dir.file("pool"),
                            setting{std::get<0>(GetParam()), std::get<1>(GetParam())}.options());
  using boxed_map = map<std::uint64_t, string>;
  ASSERT_TRUE(succeeds(p.update([](shelf& r) { r.boxed = pool_memory::make<boxed_map>(); })));
  constexpr std::uint64_t rounds = 100;
  std::atomic<std::uint64_t> changes{0};
  {
    std::jthread changing([&] {
      for (std::uint64_t i = 0; i < rounds; ++i)
        changes +=
            p.update([&](shelf& r) { (*r.boxed.load())[i % 10] = std::to_string(i); }).has_value();
    });
    for (std::uint64_t i = 0; i < rounds; ++i)
      ASSERT_TRUE(succeeds(p.update([](shelf& r) {
        pool_memory::destroy(r.boxed.load());
        r.boxed = pool_memory::make<boxed_map>();
        r.edition += 1;
      })));
  }
  EXPECT_EQ(changes, rounds);
  EXPECT_EQ(*p.read([](const shelf& r) { return r.edition.load(); }), rounds);
  ASSERT_TRUE(succeeds(p.update([](shelf& r) {
    pool_memory::destroy(r.boxed.load());
    r.boxed = nullptr;
  })));
  EXPECT_EQ(audit(p).used_blocks, 1u);
}

INSTANTIATE_TEST_SUITE_P(all, destructors,
                         ::testing::Combine(::testing::ValuesIn(all_mechanisms()),
                                            ::testing::Values("adr", "file")),
                         setting_name);

}  // namespace
}  // namespace stele::testing
