// libstele_itm with threads. Blocks are atomic to each other on the pool, on ordinary memory and
// across both; memory that a commit makes private is private; an irrevocable block runs alone.
#include <malloc.h>
#include <stele/itm.h>
#include <tests/conformance/child.h>
#include <tests/conformance/pools.h>
#include <tests/itm/blocks.h>

#include <array>
#include <atomic>
#include <thread>

namespace stele::testing::itm {
namespace {

// STELE_ITM_ROUNDS sets the rounds of each thread.
std::uint64_t rounds() {
  return count_from("STELE_ITM_ROUNDS", 8'000);
}

template <class Body>
void on_threads(unsigned count, Body&& body) {
  std::vector<std::jthread> threads;
  for (unsigned t = 0; t < count; ++t) threads.emplace_back([&, t] { body(t); });
}

class itm_threads : public ::testing::TestWithParam<std::string> {
 protected:
  itm_threads() {
    ::mallopt(M_PERTURB, 0x5A);  // overwrites freed memory, so that a late read is noticed
    auto opened = stele::itm::open<root>(
        dir_.file("pool"),
        {.create_size = 4 << 20, .engine = {.mechanism = GetParam(), .media = "process"}});
    EXPECT_TRUE(succeeds(opened));
    root_ = opened.value_or(nullptr);
  }
  ~itm_threads() override { EXPECT_TRUE(succeeds(stele::itm::close())); }

  scratch_directory dir_;
  root* root_;
};

TEST_P(itm_threads, lose_no_update_of_either_memory) {
  std::uint64_t ordinary = 0;
  on_threads(4, [&](unsigned t) {
    for (std::uint64_t i = 0; i < rounds(); ++i) {
      if (t % 2 == 0)
        add_both(&root_->count, &ordinary, 1);
      else
        add(&root_->count, 1), add(&ordinary, 1);
    }
  });
  EXPECT_EQ(get(&root_->count), 4 * rounds());
  EXPECT_EQ(ordinary, 4 * rounds());
}

TEST_P(itm_threads, see_both_memories_in_one_state) {
  std::uint64_t ordinary = 0;
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> looks{0};
  std::atomic<std::uint64_t> unequal{0};
  std::jthread looker([&] {
    while (!stop) ++looks, unequal += !equal_in_one_look(&root_->count, &ordinary);
  });
  on_threads(2, [&](unsigned t) {
    for (std::uint64_t i = 0; i < rounds(); ++i)
      add_both(t == 0 ? &root_->count : &ordinary, t == 0 ? &ordinary : &root_->count, 1);
  });
  stop = true;
  looker.join();
  EXPECT_GT(looks, 0u);
  EXPECT_EQ(unequal, 0u);
}

TEST_P(itm_threads, keep_a_sum_over_many_words) {
  std::uint64_t ordinary[64];
  for (unsigned i = 0; i < 64; ++i) add(&root_->slots[i], 1000), ordinary[i] = 1000;
  std::atomic<std::uint64_t> wrong{0};
  on_threads(4, [&](unsigned t) {
    base::rng random(t + 1);
    for (std::uint64_t i = 0; i < rounds() / 2; ++i) {
      std::uint64_t* const slots = random.below(2) == 0 ? root_->slots : ordinary;
      move_between(slots, static_cast<unsigned>(random.below(64)),
                   static_cast<unsigned>(random.below(64)));
      if (i % 16 == 0) wrong += sum_of(slots, 64) != 64'000;
    }
  });
  EXPECT_EQ(wrong, 0u);
}

TEST_P(itm_threads, commit_only_when_what_they_read_is_current) {
  alignas(64) std::uint64_t words[16] = {};  // words[8] is on another line
  std::atomic<std::uint64_t> wrong{0};
  using two = std::array<std::uint64_t*, 2>;
  for (const two& pair : {two{&words[0], &words[8]}, two{&words[0], &root_->slots[0]},
                          two{&root_->slots[8], &root_->slots[16]}}) {
    on_threads(2, [&](unsigned t) {
      for (std::uint64_t i = 0; i < rounds(); ++i) {
        raise_if_alone(pair[t], pair[1 - t]);
        wrong += !lower(pair[t], pair[1 - t]);
      }
    });
  }
  EXPECT_EQ(wrong, 0u);
}

TEST_P(itm_threads, start_over_in_the_middle_of_exceptions) {
  std::uint64_t ordinary = 1;
  add(&root_->count, 1);
  std::atomic<std::uint64_t> wrong{0};
  on_threads(4, [&](unsigned t) {
    std::uint64_t* const counter = t % 2 == 0 ? &ordinary : &root_->count;
    for (std::uint64_t i = 0; i < rounds() / 10; ++i) {
      wrong += throw_and_catch_inside(counter, 1) != 17;
      cancel_in_handler(counter);
      try {
        add_and_throw(counter, 1);
        ++wrong;
      } catch (int n) {
        wrong += n != 42;
      }
      wrong += std::uncaught_exceptions() != 0 || std::current_exception() != nullptr;
    }
  });
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(ordinary, 1 + 2 * (rounds() / 10) * 3);
  EXPECT_EQ(get(&root_->count), 1 + 2 * (rounds() / 10) * 3);
}

void give_way() {
  std::this_thread::yield();
}

TEST_P(itm_threads, may_store_plainly_when_alone) {
  std::uint64_t ordinary = 0;
  const std::uint64_t some = rounds() / 10;
  on_threads(4, [&](unsigned t) {
    for (std::uint64_t i = 0; i < some; ++i)
      if (t % 2 == 0)
        add_then_call(&ordinary, 1, give_way);
      else
        add(&ordinary, 1);
  });
  EXPECT_EQ(ordinary, 6 * some);
}

std::atomic<int> alone{0};
std::atomic<int> calls{0}, together{0};
int be_alone(const char*) {
  together += alone.fetch_add(1) != 0;
  std::this_thread::yield();
  --alone;
  return ++calls;
}

TEST_P(itm_threads, run_alone_what_cannot_be_undone) {
  calls = 0;
  std::uint64_t ordinary = 0;
  const std::uint64_t some = rounds() / 10;
  on_threads(4, [&](unsigned t) {
    for (std::uint64_t i = 0; i < some; ++i) {
      add_and_print(t % 2 == 0 ? &root_->count : &ordinary, 1, be_alone);
      add_both(&root_->other, &root_->slots[0], 1);
    }
  });
  EXPECT_EQ(get(&root_->count), 2 * some);
  EXPECT_EQ(ordinary, 2 * some);
  EXPECT_EQ(get(&root_->other), 4 * some);
  EXPECT_EQ(static_cast<std::uint64_t>(calls), 2 * some)
      << "once for every even number of either counter";
  EXPECT_EQ(together, 0);
}

TEST_P(itm_threads, free_memory_that_nobody_reads) {
  node* head = nullptr;
  std::uint64_t count = 0;
  std::atomic<std::uint64_t> wrong{0};
  on_threads(4, [&](unsigned t) {
    for (std::uint64_t i = 0; i < rounds() / 4; ++i) {
      if (t == 0)
        wrong += !counts(&head, &count);
      else if (i % 2 == 0)
        push_counted(&head, &count);
      else
        pop_counted(&head, &count);
    }
  });
  EXPECT_EQ(wrong, 0u);
  while (pop_counted(&head, &count)) {
  }
  EXPECT_EQ(count, 0u);
}

TEST_P(itm_threads, own_what_a_commit_took_out) {
  node* head = nullptr;
  for (int i = 0; i < 8; ++i) push_ordinary(&head, 1);
  std::atomic<std::uint64_t> wrong{0};
  on_threads(3, [&](unsigned t) {
    for (std::uint64_t i = 0; i < rounds(); ++i) {
      if (t != 0) {
        add_to_all(&head);
        continue;
      }
      node* const mine = take(&head);
      for (std::uint64_t k = 0; k < 20; ++k) {  // no block: the node is private
        std::atomic_ref(mine->key).store(k, std::memory_order_relaxed);
        for (int spin = 0; spin < 20; ++spin)
          wrong += std::atomic_ref(mine->key).load(std::memory_order_relaxed) != k;
      }
      give(&head, mine);
    }
  });
  EXPECT_EQ(wrong, 0u);
  for (std::uint64_t key; pop_ordinary(&head, &key);) {
  }
}

TEST_P(itm_threads, are_more_than_logs) {
  const unsigned many = 40;
  for (int wave = 0; wave < 3; ++wave)
    on_threads(many, [&](unsigned t) {
      for (int i = 0; i < 50; ++i) {
        if (i % 10 == 0)
          add_and_print(&root_->count, 1, be_alone);
        else
          add(&root_->count, 1);
        if (t % 2 == 0) push(root_, 1), pop(root_);
      }
    });
  EXPECT_EQ(get(&root_->count), 3u * many * 50 + length_of_list(root_));
}

INSTANTIATE_TEST_SUITE_P(some, itm_threads,
                         ::testing::Values("default", "redo", "blurred", "undo", "none"),
                         plain_name);

// Two threads change a pool until they are killed. Everything acknowledged must be there, and
// nothing in part.
void work_until_killed(const std::string& path, const std::string& mechanism,
                       const word_sender& send) {
  auto opened = stele::itm::open<root>(
      path, {.create_size = 8 << 20, .engine = {.mechanism = mechanism, .media = "process"}});
  if (!opened) throw std::runtime_error(opened.error().message);
  root* const r = *opened;
  std::uint64_t acknowledged[2] = {get(&r->slots[0]), get(&r->slots[8])};
  std::mutex telling;
  on_threads(2, [&](unsigned t) {
    for (;;) {
      push_both(r, &r->slots[8 * t]);
      if (acknowledged[t] % 3 == 0) pop(r);
      const std::lock_guard hold(telling);
      ++acknowledged[t];
      send(acknowledged[0] << 32 | acknowledged[1]);
    }
  });
}

class itm_killed : public ::testing::TestWithParam<std::string> {};

TEST_P(itm_killed, leave_whole_blocks) {
  const scratch_directory dir;
  const std::uint64_t seed = seed_from("STELE_SEED");
  SCOPED_TRACE("STELE_SEED=" + std::to_string(seed));
  base::rng random(seed);
  std::uint64_t told = 0;
  for (std::uint64_t k = 0; k < count_from("STELE_ITM_KILLS", 60); ++k) {
    child c(
        [&](const word_sender& send) { work_until_killed(dir.file("pool"), GetParam(), send); });
    std::uint64_t word = 0;
    if (k % 3 != 0) c.receive(word);
    ::usleep(static_cast<useconds_t>(random.below(4000)));
    told = std::max(told, c.kill_and_drain(told));
    auto opened = stele::itm::open<root>(
        dir.file("pool"),
        {.create_size = 8 << 20, .engine = {.mechanism = GetParam(), .media = "process"}});
    ASSERT_TRUE(succeeds(opened));
    root* const r = *opened;
    EXPECT_TRUE(equal_in_one_look(&r->slots[0], &r->slots[1]));
    EXPECT_TRUE(equal_in_one_look(&r->slots[8], &r->slots[9]));
    EXPECT_GE(get(&r->slots[0]), told >> 32);
    EXPECT_GE(get(&r->slots[8]), told & 0xFFFFFFFF);
    EXPECT_EQ(length_of_list(r), get(&r->count));
    if (length_of_list(r) > 5000)
      while (pop(r)) {
      }
    ASSERT_TRUE(succeeds(stele::itm::close()));
    ASSERT_FALSE(HasFailure()) << "after " << k + 1 << " kills";
  }
  EXPECT_GT(told, 0u);
}

INSTANTIATE_TEST_SUITE_P(some, itm_killed, ::testing::Values("default", "redo", "blurred", "undo"),
                         plain_name);

}  // namespace
}  // namespace stele::testing::itm
