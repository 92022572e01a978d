// A pool is found by its number until it is removed, which waits for threads that use it.
#include <gtest/gtest.h>
#include <tx/session/open_list.h>

#include <thread>
#include <vector>

namespace stele::detail {
namespace {

class numbered {
 public:
  explicit numbered(std::uint64_t id) : entry_(id) {}
  open_entry<numbered>& entry() noexcept { return entry_; }

 private:
  open_entry<numbered> entry_;
};

TEST(open_list, finds_what_is_open_by_its_number) {
  open_list<numbered> open;
  numbered a(1), b(2), c(3);
  for (numbered* p : {&a, &b, &c}) open.add(*p);
  open.remove(b);
  EXPECT_EQ(open.find(1), &a);
  EXPECT_EQ(open.find(2), nullptr);
  EXPECT_EQ(open.find(3), &c);
  EXPECT_EQ(open.keep(2), nullptr);
  EXPECT_EQ(open.find_mapped([](numbered& p) { return p.entry().id < 3; }), &a);
}

TEST(open_list, a_removal_waits_until_ending_threads_let_go) {
  open_list<numbered> open;
  numbered a(1);
  open.add(a);
  ASSERT_EQ(open.keep(1), &a);
  std::atomic<bool> removed{false};
  std::jthread closing([&] {
    open.remove(a);
    removed = true;
  });
  const auto is_listed = [&] {
    const std::lock_guard hold(open.mutex);
    return open.find(1) != nullptr;
  };
  while (is_listed()) std::this_thread::yield();
  EXPECT_FALSE(removed);
  open.let_go(a);
  closing.join();
  EXPECT_TRUE(removed);
}

TEST(open_list, a_child_goes_through_all) {
  open_list<numbered> open;
  numbered a(1), b(2);
  open.add(a);
  open.add(b);
  std::vector<std::uint64_t> entered;
  open.enter_child([&](numbered& p) { entered.push_back(p.entry().id); });
  EXPECT_EQ(entered, (std::vector<std::uint64_t>{2, 1}));
  EXPECT_TRUE(open.mutex.try_lock());
  open.mutex.unlock();
}

}  // namespace
}  // namespace stele::detail
