// libstele_itm without an open pool: ordinary memory in blocks, irrevocable actions, the functions
// of the ABI.
#include <stele/itm.h>
#include <tests/conformance/child.h>
#include <tests/conformance/pools.h>
#include <tests/itm/blocks.h>

#include <cstdio>
#include <cstring>
#include <set>
#include <sstream>
#include <thread>

extern "C" {
int _ITM_inTransaction();
int _ITM_getThreadnum();
std::uint32_t _ITM_getTransactionId();
int _ITM_versionCompatible(int);
const char* _ITM_libraryVersion();
}

namespace stele::testing::itm {
namespace {

TEST(itm_ordinary, is_rolled_back_whole) {
  std::uint64_t counter = 5;
  add(&counter, 2);
  EXPECT_EQ(counter, 7u);
  EXPECT_EQ(add_and_cancel(&counter, 3), 1);
  EXPECT_EQ(counter, 7u);
  std::uint64_t outer = 0, inner = 0;
  cancel_inner(&outer, &inner);
  EXPECT_EQ(outer, 11u);
  EXPECT_EQ(inner, 11u);
  cancel_outer_from_inner(&outer, &inner);
  EXPECT_EQ(outer + inner, 22u);
  std::uint64_t slots[5] = {};
  cancel_inner_of_three(slots);
  EXPECT_EQ(std::vector<std::uint64_t>(slots, slots + 5),
            (std::vector<std::uint64_t>{2, 2, 0, 2, 2}));
}

TEST(itm_ordinary, locals_are_as_before_a_cancelled_block) {
  std::uint64_t touched = 5;
  EXPECT_EQ(locals_after_cancel(3, &touched), 3u + 6u + 9u);
  EXPECT_EQ(array_after_cancel(&touched), 36u);
  EXPECT_EQ(touched, 5u);
}

TEST(itm_ordinary, bytes_around_are_left_alone) {
  alignas(64) char bytes[64];
  std::memset(bytes, 'a', sizeof bytes);
  set_bytes(bytes + 3, 'b', 7, true);
  EXPECT_EQ(std::string(bytes, 64), std::string(64, 'a'));
  set_bytes(bytes + 3, 'b', 7, false);
  EXPECT_EQ(std::string(bytes, 12), "aaabbbbbbbaa");
  all_types values{}, copy{};
  store_all_types(&values, 3);
  copy_struct(&copy, &values);
  EXPECT_TRUE(all_types_are(&copy, 3));
}

TEST(itm_ordinary, memory_is_taken_and_freed_with_the_block) {
  node* head = nullptr;
  for (std::uint64_t i = 1; i <= 100; ++i)
    push_ordinary(&head, i), push_ordinary_and_cancel(&head, 1000);
  EXPECT_EQ(sum_of_ordinary(&head), 5050u);
  pop_ordinary_and_cancel(&head);
  node* another = nullptr;
  push_ordinary(&another, 7);
  EXPECT_NE(another, head) << "it has been freed";
  EXPECT_EQ(sum_of_ordinary(&head), 5050u);
  std::uint64_t seven = 0;
  EXPECT_TRUE(pop_ordinary(&another, &seven));
  std::uint64_t sum = 0;
  for (std::uint64_t key; pop_ordinary(&head, &key);) sum += key;
  EXPECT_EQ(sum, 5050u);
  sum = 0;
  malloc_and_free(&sum, 100, true);
  EXPECT_EQ(sum, 0u);
  malloc_and_free(&sum, 100, false);
  EXPECT_EQ(sum, 100u);
}

TEST(itm_ordinary, exceptions_commit) {
  std::uint64_t counter = 1;
  for (int i = 0; i < 100; ++i) EXPECT_THROW(add_and_throw(&counter, 1), int);
  for (int i = 0; i < 100; ++i) throw_inside_and_cancel(&counter), cancel_in_handler(&counter);
  EXPECT_EQ(throw_and_catch_inside(&counter, 1), 17);
  EXPECT_EQ(counter, 103u);
  EXPECT_EQ(std::uncaught_exceptions(), 0);
  EXPECT_EQ(std::current_exception(), nullptr);
}

int printed = 0;
int count_print(const char*) {
  return ++printed;
}
std::uint64_t relaxed_counter = 0, seen_inside = 0;
int mode_seen = 0;
void look() {
  seen_inside = relaxed_counter;
  mode_seen = _ITM_inTransaction();
}

TEST(itm_ordinary, what_cannot_be_undone_runs_once_and_sees_what_the_block_did) {
  std::uint64_t counter = 0;
  for (int i = 0; i < 10; ++i) add_and_print(&counter, 1, count_print);
  EXPECT_EQ(printed, 5);
  EXPECT_EQ(counter, 10u);
  relaxed_counter = 40;
  add_then_call(&relaxed_counter, 1, look);
  EXPECT_EQ(seen_inside, 41u);
  EXPECT_EQ(relaxed_counter, 42u);
  EXPECT_EQ(mode_seen, 2);
  EXPECT_EQ(mode_inside(&counter), 1);
  EXPECT_EQ(mode_when_irrevocable(), 2);
  EXPECT_EQ(_ITM_inTransaction(), 0);
}

TEST(itm_ordinary, pointers_lead_to_clones) {
  std::uint64_t counter = 0;
  EXPECT_EQ(call_through_pointer(&counter, false), 1u);
  EXPECT_EQ(call_through_pointer(&counter, true), 11u);
}

std::vector<int> acted;
void note_commit(void* n) {
  acted.push_back(*static_cast<int*>(n));
}
void note_undo(void* n) {
  acted.push_back(-*static_cast<int*>(n));
}

TEST(itm_ordinary, actions_follow_commits_and_roll_backs) {
  int one = 1, two = 2;
  std::uint64_t counter = 0;
  act(&counter, false, note_commit, note_undo, &one);
  act(&counter, true, note_commit, note_undo, &two);
  EXPECT_EQ(acted, (std::vector<int>{1, -2}));
  EXPECT_EQ(counter, 1u);
}

TEST(itm_ordinary, a_child_of_fork_runs_blocks) {
  std::uint64_t counter = 1;
  add(&counter, 1);
  child c([&](const word_sender& send) {
    add(&counter, 5);
    add_then_call(&counter, 5, nullptr);
    send(get(&counter));
  });
  EXPECT_EQ(c.drain(0), 17u);
  EXPECT_EQ(counter, 2u);
}

TEST(itm_ordinary, pool_memory_needs_a_pool_and_a_block) {
  EXPECT_EQ(stele_itm_root(), nullptr);
  EXPECT_EQ(stele_itm_malloc(8), nullptr);
  EXPECT_THROW((void)stele::itm::allocate(8, 8), failure);
  root r{};
  EXPECT_FALSE(push_sized(&r, 16));
  EXPECT_THROW(push(&r, 1), failure);
  EXPECT_EQ(r.count, 0u);
  EXPECT_EQ(stele_itm_open("/no/such/directory/pool", 1 << 20, 64), nullptr);
  EXPECT_NE(std::string(stele_itm_error()).find("/no/such/directory/pool"), std::string::npos);
}

TEST(itm_ordinary, queries_answer) {
  EXPECT_EQ(_ITM_versionCompatible(90), 1);
  EXPECT_EQ(_ITM_versionCompatible(91), 0);
  EXPECT_NE(std::string(_ITM_libraryVersion()).find("stele"), std::string::npos);
  EXPECT_EQ(_ITM_getTransactionId(), 1u);
  const int mine = _ITM_getThreadnum();
  int other = mine;
  std::jthread([&] { other = _ITM_getThreadnum(); }).join();
  EXPECT_NE(other, mine);
}

std::set<std::string> defined_symbols(const std::string& archive) {
  std::set<std::string> names;
  std::FILE* const out = ::popen(("nm --defined-only " + archive + " 2>/dev/null").c_str(), "r");
  char line[512];
  while (out != nullptr && std::fgets(line, sizeof line, out) != nullptr) {
    std::istringstream words(line);
    std::string address, kind, name;
    if (words >> address >> kind >> name && (kind == "T" || kind == "W") &&
        (name.starts_with("_ITM_") || name.starts_with("_ZGTt")))
      names.insert(name);
  }
  if (out != nullptr) ::pclose(out);
  return names;
}

TEST(itm_ordinary, has_every_function_that_the_compilers_library_has) {
  const auto theirs = defined_symbols("$(" STELE_ITM_COMPILER " -print-file-name=libitm.a)"),
             ours = defined_symbols(STELE_ITM_ARCHIVE);
  if (theirs.empty()) GTEST_SKIP() << "no libitm.a to compare with";
  EXPECT_GT(theirs.size(), 150u);
  for (const auto& name : theirs) EXPECT_TRUE(ours.contains(name)) << name;
}

}  // namespace
}  // namespace stele::testing::itm
