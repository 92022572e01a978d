// find_leaks: names what was forgotten, and what was destroyed too early.
#include <stele/leaks.h>
#include <stele/map.h>
#include <stele/string.h>
#include <stele/vector.h>
#include <tests/conformance/pools.h>

#include <atomic>
#include <thread>

namespace stele::testing {
namespace {

struct node {
  field<std::uint64_t> value;
  field<node*> next;
};
struct root {
  using pool_resident = void;
  map<string, vector<string>> lists;
  field<node*> first;
  template <class Visit>
  void visit_blocks(Visit&& visit) const {
    lists.visit_blocks(visit);
    for (const node* n = first; n != nullptr; n = n->next) visit(n);
  }
};

class leaks : public ::testing::TestWithParam<std::string> {
 protected:
  leaks() {
    EXPECT_TRUE(succeeds(p_.update([](root& r) {
      for (int i = 0; i < 20; ++i) {
        r.lists["list " + std::to_string(i)].push_back(std::string(100, 'x'));
        push(r);
      }
    })));
  }
  static void push(root& r) {
    auto* const n = make<node>();
    n->next = r.first;
    r.first = n;
  }
  leak_report found() {
    auto report = find_leaks(p_);
    EXPECT_TRUE(succeeds(report));
    return report.value_or(leak_report());
  }

  scratch_directory dir_;
  const pool_options options_ = setting{GetParam(), "adr"}.options(1 << 20);
  pool<root> p_ = open_pool<root>(dir_.file("pool"), options_);
};

TEST_P(leaks, are_none_where_everything_is_reached) {
  const auto clean = found();
  EXPECT_EQ(clean.leaked.size() + clean.dangling.size(), 0u);
  EXPECT_GE(clean.reached_blocks, 61u);  // the root, and for each of 20 a node, a text, a list
  EXPECT_TRUE(succeeds(p_.update([](root& r) { r.lists.erase("list 3"); })));
  EXPECT_EQ(found().leaked.size(), 0u);
}

TEST_P(leaks, are_the_objects_that_nothing_points_to_any_more) {
  std::uint64_t lost = 0;
  ASSERT_TRUE(succeeds(p_.update([&](root& r) {
    lost =
        static_cast<std::uint64_t>(reinterpret_cast<std::byte*>(r.first.load()) - p_.core().base());
    r.first = r.first->next.load();
  })));
  const auto now = found();
  ASSERT_EQ(now.leaked.size(), 1u);
  EXPECT_EQ(now.leaked[0].offset, lost);
  EXPECT_GE(now.leaked[0].size_bytes, sizeof(node));
  EXPECT_TRUE(now.dangling.empty());
}

TEST_P(leaks, do_not_hide_what_was_destroyed_and_is_still_pointed_to) {
  ASSERT_TRUE(succeeds(p_.update([](root& r) {
    node* last = r.first;
    while (last->next != nullptr) last = last->next;
    destroy(last);
  })));
  const auto now = found();
  EXPECT_TRUE(now.leaked.empty());
  ASSERT_EQ(now.dangling.size(), 1u);
}

TEST_P(leaks, are_not_seen_beside_commits_that_come_between) {
  std::atomic<bool> stop{false};
  std::jthread writer([&] {
    while (!stop.load()) {
      EXPECT_TRUE(succeeds(p_.update([](root& r) { push(r); })));
      EXPECT_TRUE(succeeds(p_.update([](root& r) {
        node* const n = r.first;
        r.first = n->next.load();
        destroy(n);
      })));
    }
  });
  for (int round = 0; round < 10; ++round) {
    const auto report = find_leaks(p_);
    if (report)
      EXPECT_EQ(report->leaked.size() + report->dangling.size(), 0u);
    else
      EXPECT_EQ(report.error().code, errc::in_use) << report.error().message;
  }
  stop = true;
}

TEST_P(leaks, are_not_looked_for_inside_a_transaction) {
  EXPECT_TRUE(fails_with(p_.update([&](root&) -> result<> {
    auto report = find_leaks(p_);
    return report ? result<>() : std::unexpected(report.error());
  }),
                         errc::nested));
}

INSTANTIATE_TEST_SUITE_P(all, leaks, ::testing::ValuesIn(all_mechanisms()), plain_name);

}  // namespace
}  // namespace stele::testing
