// A pinned reader holds back memory that was retired after it pinned, and no other memory.
#include <base/epochs.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace stele::base {
namespace {

TEST(epochs, nobody_holds_back_what_nobody_can_know) {
  epochs e(3);
  const auto retired_epoch = e.now();
  (void)e.advance();
  EXPECT_GT(e.oldest_pinned(), retired_epoch);
}

TEST(epochs, a_reader_holds_back_until_it_lets_go_or_pins_anew) {
  epochs e(3);
  e.pin(1);
  const auto retired_epoch = e.now();
  (void)e.advance();
  EXPECT_LE(e.oldest_pinned(), retired_epoch);
  e.pin(1);
  EXPECT_GT(e.oldest_pinned(), retired_epoch);
  e.unpin(1);
  EXPECT_GT(e.oldest_pinned(), retired_epoch);
}

// One thread retires cells and overwrites them when they may be reused; the other threads must
// never read an overwritten cell.
TEST(epochs, no_reader_meets_what_was_used_again) {
  constexpr unsigned readers = 3;
  epochs e(readers);
  std::vector<std::uint64_t*> all{new std::uint64_t(1)};
  std::atomic<std::uint64_t*> seen{all.front()};
  std::atomic<bool> stop{false};
  std::atomic<int> poisoned{0};
  std::vector<std::jthread> threads;
  for (unsigned r = 0; r < readers; ++r)
    threads.emplace_back([&, r] {
      while (!stop.load(std::memory_order_relaxed)) {
        e.pin(r);
        for (int i = 0; i < 8; ++i)
          if (__atomic_load_n(seen.load(std::memory_order_acquire), __ATOMIC_RELAXED) != 1)
            ++poisoned;
        e.unpin(r);
      }
    });
  std::vector<std::pair<std::uint64_t*, std::uint64_t>> retired;
  bool reclaimed = false;
  for (int i = 0; i < 3000 || !reclaimed; ++i) {
    if (i >= 3000) std::this_thread::yield();  // a pinned reader has lost its processor
    auto* const fresh = new std::uint64_t(1);
    all.push_back(fresh);
    retired.push_back({seen.exchange(fresh), e.now()});
    (void)e.advance();
    const auto oldest = e.oldest_pinned();
    std::erase_if(retired, [&](const auto& o) {
      if (o.second >= oldest) return false;
      __atomic_store_n(o.first, 0, __ATOMIC_RELAXED);
      return reclaimed = true;
    });
  }
  stop = true;
  threads.clear();
  EXPECT_EQ(poisoned.load(), 0);
  for (auto* p : all) delete p;
}

}  // namespace
}  // namespace stele::base
