// libstele_itm as a program sees it: atomic blocks of compiled code on a pool, on ordinary memory,
// and on both; one thread.
//
// The blocks are in blocks.cc. Every test runs under every mechanism, and on a pool with no memory
// behind its addresses, where an access outside the transaction faults.
#include <adapters/itm/domain.h>
#include <media/process.h>
#include <stele/itm.h>
#include <sys/mman.h>
#include <tests/conformance/child.h>
#include <tests/conformance/pools.h>
#include <tests/itm/blocks.h>
#include <tx/mechanism/none.h>

#include <cstring>
#include <map>

namespace stele::detail {
runtime* runtime_at(std::uintptr_t address);
}

extern "C" unsigned long push_in_c(const char* path);

namespace stele::testing::itm {
namespace {

class itm_pool : public ::testing::TestWithParam<std::string> {
 protected:
  root* open(std::size_t size = 4 << 20) {
    auto opened = stele::itm::open<root>(
        dir_.file("pool"),
        {.create_size = size, .engine = {.mechanism = GetParam(), .media = "process"}});
    EXPECT_TRUE(succeeds(opened));
    return opened ? *opened : nullptr;
  }
  root* reopen() {
    EXPECT_TRUE(succeeds(stele::itm::close()));
    return open();
  }
  std::uint64_t used_bytes() {
    const auto sum = detail::runtime_at(reinterpret_cast<std::uintptr_t>(stele_itm_root()))
                         ->state()
                         .heap.audit();
    EXPECT_TRUE(succeeds(sum));
    return sum ? sum->used_bytes : 0;
  }
  void TearDown() override { EXPECT_TRUE(succeeds(stele::itm::close())); }

  scratch_directory dir_;
};

// L10
TEST_P(itm_pool, keeps_what_blocks_have_committed) {
  root* r = open();
  for (std::uint64_t i = 1; i <= 100; ++i) push(r, i);
  for (std::uint64_t i = 1; i <= 10; ++i) push_by_constructor(r, 1000);
  add(&r->other, 7);
  root* again = reopen();
  EXPECT_EQ(again, r) << "plain pointers need the same address";
  EXPECT_EQ(stele::itm::root<root>(), r);
  EXPECT_EQ(get(&r->count), 110u);
  EXPECT_EQ(get(&r->other), 7u);
  EXPECT_EQ(sum_of_list(r), 5050u + 10000u);
  while (pop(r)) {
  }
  EXPECT_EQ(length_of_list(reopen()), 0u);
}

TEST_P(itm_pool, forgets_what_was_cancelled) {
  root* r = open();
  push(r, 5);
  const std::uint64_t used = used_bytes();
  EXPECT_EQ(add_and_cancel(&r->other, 3), 1);
  for (int i = 0; i < 100; ++i) push_and_cancel(r, 1), pop_and_cancel(r);
  EXPECT_EQ(get(&r->other), 0u);
  EXPECT_EQ(sum_of_list(r), 5u);
  EXPECT_EQ(get(&r->count), 1u);
  EXPECT_EQ(used_bytes(), used);
}

TEST_P(itm_pool, cancels_inner_blocks_alone) {
  root* r = open();
  std::uint64_t ordinary = 0;
  cancel_inner(&r->other, &ordinary);
  EXPECT_EQ(get(&r->other), 11u);
  EXPECT_EQ(ordinary, 11u);
  cancel_inner_of_three(r->slots);
  for (const auto& [slot, value] :
       std::map<int, std::uint64_t>{{0, 2}, {1, 2}, {2, 0}, {3, 2}, {4, 2}})
    EXPECT_EQ(get(&r->slots[slot]), value) << slot;
  inner_commits_outer_cancels(&r->slots[5], &r->slots[6]);
  EXPECT_EQ(get(&r->slots[5]) + get(&r->slots[6]), 0u);
  cancel_outer_from_inner(&r->slots[5], &r->slots[6]);
  EXPECT_EQ(get(&r->slots[5]) + get(&r->slots[6]), 0u);
  r = reopen();
  EXPECT_EQ(get(&r->other), 11u);
  EXPECT_EQ(get(&r->slots[1]), 2u);
}

TEST_P(itm_pool, gives_back_what_cancelled_inner_blocks_took_and_keeps_what_they_freed) {
  root* r = open();
  push(r, 5);
  push(r, 6);
  const std::uint64_t used = used_bytes();
  for (int i = 0; i < 50; ++i) push_in_cancelled_inner(r, 1), pop_in_cancelled_inner(r);
  EXPECT_EQ(get(&r->other), 100u);
  EXPECT_EQ(sum_of_list(r), 11u);
  EXPECT_EQ(used_bytes(), used);
  pop_in_inner(r);
  EXPECT_EQ(sum_of_list(r), 5u);
  EXPECT_LT(used_bytes(), used);
}

TEST_P(itm_pool, commits_when_an_exception_leaves) {
  root* r = open();
  EXPECT_THROW(add_and_throw(&r->count, 5), int);
  EXPECT_EQ(throw_and_catch_inside(&r->count, 10), 17);
  throw_inside_and_cancel(&r->count);
  cancel_in_handler(&r->count);
  EXPECT_EQ(std::uncaught_exceptions(), 0);
  EXPECT_EQ(get(&reopen()->count), 16u);
}

TEST_P(itm_pool, says_when_it_is_full) {
  if (GetParam() == "log_structured")
    GTEST_SKIP()
        << "its addresses outnumber its space: it is full at a commit, which is on_failure's";
  root* r = open(1 << 20);
  const std::uint64_t used = used_bytes();
  EXPECT_THROW(push_something_large(r, 16 << 20), failure);
  add_and_cancel(&r->other, 1);  // the failure is over: no second clean-up
  EXPECT_EQ(get(&r->count), 0u) << "the failure left the block, so it was rolled back";
  EXPECT_TRUE(survives_something_large(r, 16 << 20));
  EXPECT_EQ(get(&r->count), 1u);
  EXPECT_EQ(used_bytes(), used);
  int fitted = 0;
  while (push_sized(r, 1000)) ++fitted;
  EXPECT_GT(fitted, 100);
  const std::uint64_t length = length_of_list(r);
  root* again = reopen();
  EXPECT_EQ(length_of_list(again), length);
  while (pop(again)) {
  }
  EXPECT_EQ(used_bytes(), used);
  EXPECT_EQ(std::uncaught_exceptions(), 0);
}

root* full = nullptr;
int told_full = 0;
void make_room(const error& why) {
  EXPECT_EQ(why.code, errc::full) << why.message;
  if (++told_full > 3) ::_exit(9);
  while (pop(full)) {
  }
  EXPECT_TRUE(push_sized(full, 100'000));  // makes the pool gather its free blocks
  pop(full);
}

// A record longer than its log needs chunks of the pool, and none is free.
TEST(itm_full_pool, asks_the_handler_and_runs_the_block_again) {
  const scratch_directory dir;
  auto opened = stele::itm::open<root>(
      dir.file("pool"), {.create_size = 1 << 20,
                         .engine = {.mechanism = "redo", .media = "process", .log_size = 4096}});
  ASSERT_TRUE(succeeds(opened));
  full = *opened;
  for (const std::size_t size : {std::size_t{1000}, sizeof(node)})
    while (push_sized(full, size)) {
    }
  const std::string wanted(4000, 'x');
  child c([&](const word_sender&) { set_bytes(full->bytes, 'x', 4000, false); });
  EXPECT_EQ(c.wait(), 128 + SIGABRT) << "without a handler the program ends; in a child of fork it "
                                        "is because the pool is the parent's";
  const auto before = stele::itm::on_failure(make_room);
  set_bytes(full->bytes, 'x', 4000, false);
  stele::itm::on_failure(before);
  EXPECT_GT(told_full, 0);
  std::string found(4000, ' ');
  copy_bytes(found.data(), full->bytes, found.size());
  EXPECT_EQ(found, wanted);
  EXPECT_TRUE(succeeds(stele::itm::close()));
}

TEST(itm_in_c, opens_pushes_and_cancels) {
  const scratch_directory dir;
  for (unsigned long times = 1; times <= 3; ++times) {
    EXPECT_EQ(push_in_c(dir.file("pool").c_str()), times);
  }
  EXPECT_EQ(push_in_c("/no/such/place/pool"), 0u);
}

TEST_P(itm_pool, moves_bytes_between_and_within_memories) {
  root* r = open();
  std::vector<char> here(4096), model(4096), back(4096);
  base::rng random(7);
  for (auto& c : here) c = static_cast<char>(random());
  for (int i = 0; i < 200; ++i) {
    const std::size_t size = random.below(1500), from = random.below(2000), to = random.below(2500);
    if (i % 4 == 0) {
      copy_bytes(r->bytes + to, here.data() + from, size);
      std::memcpy(model.data() + to, here.data() + from, size);
    } else if (i % 4 == 1) {
      move_bytes(r->bytes + to, r->bytes + from, size);
      std::memmove(model.data() + to, model.data() + from, size);
    } else if (i % 4 == 2) {
      set_bytes(r->bytes + to, i, size, false);
      std::memset(model.data() + to, i, size);
      set_bytes(r->bytes + from, i, size, true);
    } else {
      move_bytes(here.data() + to, here.data() + from, size);
    }
    copy_bytes(back.data(), r->bytes, 4096);
    ASSERT_EQ(back, model) << i;
  }
  copy_bytes(back.data(), reopen()->bytes, 4096);
  EXPECT_EQ(back, model);
}

TEST_P(itm_pool, stores_every_type) {
  root* r = open();
  store_all_types(&r->values, 20);
  EXPECT_TRUE(all_types_are(&r->values, 20));
  all_types here{};
  copy_struct(&here, &r->values);
  EXPECT_TRUE(all_types_are(&here, 20));
  store_all_types(&here, 30);
  copy_struct(&r->values, &here);
  store_uneven(&r->odd, 3);
  r = reopen();
  EXPECT_TRUE(all_types_are(&r->values, 30));
  EXPECT_FALSE(all_types_are(&r->values, 31));
  EXPECT_EQ(sum_of_uneven(&r->odd), 3 * 0x0102030405060708u + 7);
}

TEST_P(itm_pool, tells_what_it_cannot_open) {
  open();
  EXPECT_TRUE(fails_with(stele::itm::open<root>(dir_.file("another"), {.create_size = 1 << 20}),
                         errc::in_use));
  ASSERT_TRUE(succeeds(stele::itm::close()));
  EXPECT_TRUE(fails_with(stele::itm::open<root>(dir_.file("missing")), errc::not_found));
  EXPECT_TRUE(fails_with(stele::itm::open<std::uint64_t>(dir_.file("pool")), errc::layout));
  EXPECT_TRUE(
      fails_with(pool<field<int>>::open(dir_.file("pool"), {.layout = "mine"}), errc::layout));
  const auto header = storage::pool_file::peek(dir_.file("pool"));
  ASSERT_TRUE(succeeds(header));
  void* const place =
      reinterpret_cast<void*>(stele::itm::mapping_address(header->id) + header->home_offset);
  void* const taken =
      ::mmap(place, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  ASSERT_EQ(taken, place);
  EXPECT_TRUE(fails_with(stele::itm::open<root>(dir_.file("pool")), errc::unsupported));
  ::munmap(taken, 4096);
  EXPECT_TRUE(
      succeeds(stele::itm::open<root>(dir_.file("pool"), {.engine = {.mechanism = GetParam()}})));
}

// Makes a pool with no memory behind its addresses.
std::unique_ptr<detail::engine> make_engine(detail::pool_state& state,
                                            const detail::media_choice&) {
  return std::make_unique<detail::mechanism_engine<detail::none<media::process>>>(
      state, std::make_unique<media::process::shared>(), detail::engine_tuning{});
}
std::vector<std::string> mechanisms_and_elsewhere() {
  auto names = all_mechanisms();
  detail::register_mechanism({"elsewhere", "home addresses that fault", detail::log_kind::none,
                              make_engine, storage::map_kind::relocated_home});
  names.emplace_back("elsewhere");
  return names;
}

INSTANTIATE_TEST_SUITE_P(all, itm_pool, ::testing::ValuesIn(mechanisms_and_elsewhere()),
                         plain_name);

}  // namespace
}  // namespace stele::testing::itm
