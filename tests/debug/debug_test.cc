// What programs compiled with STELE_DEBUG are told. This folder is compiled so.
#include <stele/map.h>
#include <stele/string.h>
#include <stele/vector.h>
#include <tests/conformance/pools.h>

#include <atomic>
#include <thread>

#ifndef STELE_DEBUG
#error "compile this test with STELE_DEBUG"
#endif

namespace stele::testing {
namespace {

struct node {
  field<std::uint64_t> value;
  field<node*> next;
};
struct big {
  field<std::uint64_t> words[20'000];  // an extent
};
struct shelf {
  using pool_resident = void;
  field<node*> first;
  field<big*> large;
  map<string, vector<string>> lists;
  template <class Visit>
  void visit_blocks(Visit&& visit) const {
    for (const node* n = first; n != nullptr; n = n->next) visit(n);
    if (large != nullptr) visit(large.load());
    lists.visit_blocks(visit);
  }
};

// Says that `done` was refused with a sentence that contains `words`.
template <class Result>
::testing::AssertionResult refused(const Result& done, std::string_view words) {
  if (const auto as = fails_with(done, errc::invalid_argument); !as) return as;
  if (done.error().message.find(words) != std::string::npos) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << done.error().message;
}

class checked : public ::testing::TestWithParam<std::string> {
 protected:
  checked() {
    EXPECT_TRUE(succeeds(p_.update([](shelf& s) {
      s.first = make<node>();
      s.first->next = make<node>();
      s.large = make<big>();
      s.lists["one"].push_back("a");
    })));
  }
  bool has_states() const { return GetParam() != "log_structured"; }

  scratch_directory dir_;
  const pool_options options_ = setting{GetParam(), "adr"}.options(4 << 20);
  pool<shelf> p_ = open_pool<shelf>(dir_.file("pool"), options_);
};

TEST_P(checked, pointers_to_ordinary_memory_are_refused_and_nothing_changes) {
  const auto before = p_.read([](const shelf& s) { return s.first.load(); });
  node on_stack;
  EXPECT_TRUE(refused(p_.update([&](shelf& s) { s.first = &on_stack; }), "outside of the pool"));
  const auto on_heap = std::make_unique<node>();
  EXPECT_TRUE(
      refused(p_.update([&](shelf& s) { s.first->next = on_heap.get(); }), "outside of the pool"));
  EXPECT_EQ(p_.read([](const shelf& s) { return s.first.load(); }).value(), before.value());
}

TEST_P(checked, pointers_into_another_pool_are_refused) {
  auto other = open_pool<shelf>(dir_.file("other"), options_);
  node* foreign = nullptr;
  ASSERT_TRUE(succeeds(other.update([&](shelf& s) { s.first = foreign = make<node>(); })));
  const auto done = p_.update([&](shelf& s) { s.first->next = foreign; });
  EXPECT_TRUE(refused(done, "another pool"));
  EXPECT_TRUE(refused(done, dir_.file("other")));
}

TEST_P(checked, members_and_elements_of_objects_may_be_pointed_to) {
  struct holder {
    field<field<std::uint64_t>*> to;
  };
  struct both {
    field<holder*> h;
    field<big*> b;
  };
  auto other = open_pool<both>(dir_.file("both"), options_);
  EXPECT_TRUE(succeeds(other.update([](both& r) {
    r.h = make<holder>();
    r.b = make<big>();
    r.h->to = &r.b->words[19'999];
    *r.h->to.load() = 7;
    r.h->to = nullptr;
  })));
}

TEST_P(checked, a_pointer_to_a_destroyed_object_is_refused) {
  if (!has_states()) GTEST_SKIP() << "blocks of such pools have no states";
  EXPECT_TRUE(refused(p_.update([](shelf& s) {
    node* const gone = s.first->next;
    destroy(gone);
    s.first->next = gone;
  }),
                      "it has been destroyed"));
  node* old = nullptr;
  ASSERT_TRUE(succeeds(p_.update([&](shelf& s) {
    old = s.first->next;
    s.first->next = nullptr;
    destroy(old);
  })));
  EXPECT_TRUE(refused(p_.update([&](shelf& s) { s.first->next = old; }), "it has been destroyed"));
}

TEST_P(checked, a_destroyed_object_is_not_used) {
  big* large = nullptr;
  node* small = nullptr;
  ASSERT_TRUE(succeeds(p_.update([&](shelf& s) {
    large = s.large, small = s.first->next;
    s.large = nullptr, s.first->next = nullptr;
    destroy(large), destroy(small);
  })));
  const char* const why = "it has been destroyed";
  EXPECT_TRUE(refused(p_.update([&](shelf&) { large->words[5] = 1; }), why));
  EXPECT_TRUE(refused(p_.read([&](const shelf&) { return large->words[5].load(); }), why));
  if (!has_states()) return;
  EXPECT_TRUE(refused(p_.update([&](shelf&) { small->value = 1; }), why));
  EXPECT_TRUE(refused(p_.update([&](shelf&) { return small->value.load(); }), why));
  EXPECT_TRUE(refused(p_.read([&](const shelf&) { return small->next.load(); }), why));
  EXPECT_TRUE(refused(p_.update([&](shelf& s) {
    destroy(s.first.load());
    return s.first->value.load();
  }),
                      why));
  EXPECT_TRUE(succeeds(p_.read([](const shelf& s) { return s.first->value.load(); })));
}

// Nodes are made and destroyed beside reads of them: an object that another thread destroys was in
// use at the reader's moment, so no read may be told otherwise.
TEST_P(checked, right_programs_are_told_nothing_beside_other_threads) {
  std::atomic<bool> stop = false;
  std::vector<std::jthread> threads;
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&] {
      while (!stop)
        EXPECT_TRUE(succeeds(p_.read([](const shelf& s) {
          std::uint64_t sum = 0;
          for (const node* n = s.first; n != nullptr; n = n->next) sum += n->value;
          return sum;
        })));
    });
  for (int i = 0; i < 3'000; ++i)
    ASSERT_TRUE(succeeds(p_.update([&](shelf& s) {
      node* const old = s.first->next;
      node* const fresh = make<node>();
      fresh->value = static_cast<std::uint64_t>(i);
      s.first->next = fresh;
      destroy(old);
      if (i % 50 == 0) destroy(s.large.load()), s.large = make<big>();
    })));
  stop = true;
}

TEST_P(checked, closing_says_what_leaked) {
  ASSERT_TRUE(succeeds(p_.update([](shelf& s) { s.first->next = nullptr; })));
  ::testing::internal::CaptureStderr();
  ASSERT_TRUE(succeeds(p_.close()));
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find(dir_.file("pool") + ": 1 blocks leaked"), std::string::npos) << said;
  EXPECT_EQ(said.find("destroyed"), std::string::npos) << said;
}

TEST_P(checked, closing_says_nothing_of_a_pool_without_leaks) {
  ASSERT_TRUE(succeeds(p_.update([](shelf& s) { s.lists.erase("one"); })));
  ::testing::internal::CaptureStderr();
  {
    const auto closes = std::move(p_);
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

INSTANTIATE_TEST_SUITE_P(all, checked,
                         ::testing::Values("default", "redo", "undo", "blurred", "archapt-redo",
                                           "log_structured", "none"),
                         plain_name);

TEST(checked_by_environment, is_switched_off) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a process that has not looked yet
  const auto says = [](const char* value) {
    ::setenv("STELE_DEBUG", value, 1);
    bool refuses = false;
    {
      scratch_directory dir;
      auto p = open_pool<shelf>(dir.file("pool"), setting{"default", "adr"}.options());
      node on_stack;
      refuses = !p.update([&](shelf& s) { s.first = &on_stack; });
      EXPECT_TRUE(p.update([](shelf& s) { s.first = nullptr; }));
      EXPECT_TRUE(p.update([](shelf&) { (void)make<node>(); }));
      EXPECT_TRUE(p.close());
    }
    ::_exit(refuses ? 1 : 0);
  };
  EXPECT_EXIT(says("off"), ::testing::ExitedWithCode(0), "^$");
  EXPECT_EXIT(says("leaks"), ::testing::ExitedWithCode(0), "leaked");
  EXPECT_EXIT(says("pointers"), ::testing::ExitedWithCode(1), "^$");
  EXPECT_EXIT(says(""), ::testing::ExitedWithCode(1), "leaked");
}

}  // namespace
}  // namespace stele::testing
