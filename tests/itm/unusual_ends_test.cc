// Blocks that end in another way than by themselves: memory is refused, the medium fails, a failure
// passes, the thread or the process ends or forks. This program replaces operator new for that.
#include <adapters/itm/domain.h>
#include <media/os.h>
#include <stele/itm.h>
#include <sys/mman.h>
#include <tests/conformance/child.h>
#include <tests/conformance/pools.h>
#include <tests/itm/blocks.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <thread>

namespace {

// The allocation of this thread that fails; below 0: none.
thread_local long allocations_until_failure = -1;

void* take(std::size_t size) {
  if (allocations_until_failure >= 0 && allocations_until_failure-- == 0) throw std::bad_alloc();
  if (void* const memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t size) {
  return take(size);
}
void* operator new[](std::size_t size) {
  return take(size);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  std::free(memory);
}

extern "C" {
int _ITM_inTransaction();
int _ITM_getThreadnum();
}

namespace stele::detail {
runtime* runtime_at(std::uintptr_t address);
}

namespace stele::testing::itm {
namespace {

class itm_ends : public ::testing::Test {
 protected:
  root* open(const pool_options& o = {.create_size = 4 << 20, .engine = {.media = "process"}}) {
    auto opened = stele::itm::open<root>(dir_.file("pool"), o);
    EXPECT_TRUE(succeeds(opened));
    return opened.value_or(nullptr);
  }
  void TearDown() override { EXPECT_TRUE(succeeds(stele::itm::close())); }

  scratch_directory dir_;
};

int refusals = 0;
void note_refusal(const error& why) {
  ++refusals;
  EXPECT_EQ(why.code, errc::full) << why.message;
}

// Blocks that need memory for what they note. Each says whether it was carried out once, whole.
std::size_t stored_size = 4096;  // more each time: a log that one thread has left is for the next
bool store_bytes() {
  std::string bytes(stored_size *= 2, 'a');
  const std::string wanted(bytes.size(), 'b');
  set_bytes(bytes.data(), 'b', bytes.size(), false);
  return bytes == wanted;
}
bool nest() {
  std::uint64_t outer = 0, inner = 0;
  cancel_inner(&outer, &inner);
  return outer == 11 && inner == 11;
}
int acted = 0;
void note_action(void*) {
  ++acted;
}
void ignore_action(void*) {}
bool register_actions() {
  std::uint64_t counter = 0;
  acted = 0;
  act(&counter, false, note_action, ignore_action, nullptr);
  return counter == 1 && acted == 1;
}

// In a thread of its own, whose block has no memory from before. Returns whether it made as many
// allocations.
bool refuse_allocation(bool (*run)(), long nth) {
  refusals = 0;
  bool struck = false;
  std::jthread([&] {
    (void)_ITM_getThreadnum();
    allocations_until_failure = nth;
    bool carried_out = false;
    try {
      carried_out = run();
    } catch (const std::bad_alloc&) {  // of the function around the block
    }
    struck = allocations_until_failure < 0;
    allocations_until_failure = -1;
    EXPECT_TRUE(carried_out || (struck && refusals == 0));
    EXPECT_EQ(_ITM_inTransaction(), 0) << "the block is still open";
    std::uint64_t one = 0;
    add(&one, 1);
    EXPECT_EQ(one, 1u);
  }).join();
  return struck;
}

// The exception left the program in the middle of the block, or without its end.
TEST_F(itm_ends, a_block_without_memory_is_rolled_back_and_the_handler_decides) {
  open();
  const auto before = stele::itm::on_failure(note_refusal);
  int told = 0;
  for (bool (*const run)() : {store_bytes, nest, register_actions}) {
    int of_this = 0;
    for (long nth = 0; !HasFailure() && refuse_allocation(run, nth); ++nth) of_this += refusals;
    EXPECT_GT(of_this, 0);
    told += of_this;
  }
  stele::itm::on_failure(before);
  EXPECT_GT(told, 3);
}

class failing_writes final : public media::os::syscall_hook {
 public:
  failing_writes() { media::os::install_hook(this); }
  ~failing_writes() override { media::os::install_hook(nullptr); }
  int before(const media::os::request& r) noexcept override {
    return r.what == media::os::call::sync || r.what == media::os::call::write ? EIO : 0;
  }
};

node* first_of_list = nullptr;
void end_with_first_key(const error& why) {
  ::_exit(why.code == errc::poisoned ? static_cast<int>(first_of_list->key) : 9);
}

// What it had allocated was freed, and ordinary memory led to it.
TEST_F(itm_ends, a_commit_that_the_medium_may_have_lost_leaves_ordinary_memory_as_it_was) {
  child c([&](const word_sender&) {
    root* const r = open({.create_size = 4 << 20, .engine = {.media = "file"}});
    push_ordinary_and_count(&first_of_list, r, 5);
    stele::itm::on_failure(end_with_first_key);
    const failing_writes now;
    push_ordinary_and_count(&first_of_list, r, 6);
  });
  EXPECT_EQ(c.wait(), 5);
}

TEST_F(itm_ends, an_exception_is_not_taken_for_a_failure_that_was_where_it_is) {
  root* const r = open();
  for (std::uint64_t i = 1; i <= 20; ++i) {
    EXPECT_ANY_THROW(fail_and_throw_another(r, 16 << 20));
    EXPECT_EQ(get(&r->count), i) << "it was rolled back, and another exception commits";
  }
}

TEST_F(itm_ends, a_failure_rolls_back_also_after_another_one) {
  root* const r = open();
  EXPECT_THROW(fail_twice_and_throw_the_first(r, 16 << 20), failure);
  EXPECT_EQ(get(&r->count), 0u);
  EXPECT_EQ(get(&r->other), 0u);
  EXPECT_TRUE(survives_something_large(r, 16 << 20));
  EXPECT_EQ(get(&r->count), 1u);
}

TEST_F(itm_ends, freeing_outside_a_block_is_refused) {
  root* const r = open();
  push(r, 1);
  EXPECT_DEATH(stele_itm_free(r->head), "stele_itm_free outside an atomic block");
}

struct last_block {
  std::uint64_t* counter = nullptr;
  ~last_block() {
    if (counter != nullptr) add(counter, 1);
  }
};
thread_local last_block at_the_end;  // made before the thread's block, so it ends after it

TEST_F(itm_ends, a_thread_runs_blocks_in_its_last_destructors) {
  std::uint64_t count = 0;
  for (std::uint64_t threads = 1; threads <= 3; ++threads) {
    std::jthread([&] {
      at_the_end.counter = &count;
      add(&count, 1);
    }).join();
    EXPECT_EQ(count, 2 * threads);
  }
}

void leave() {
  std::exit(7);
}

TEST_F(itm_ends, a_process_may_exit_inside_a_block) {
  child c([&](const word_sender&) {
    ::alarm(30);
    root* const r = open();
    push(r, 1);
    std::uint64_t count = 0;
    add_then_call(&count, 1, leave);
  });
  EXPECT_EQ(c.wait(), 7) << "it waited for its own block";
  EXPECT_EQ(get(&open()->count), 1u);
}

std::atomic<int> inside{0};
void stay_inside() {
  inside = 1;
  inside.notify_all();
  inside.wait(1);
}

TEST_F(itm_ends, a_child_does_not_wait_for_a_block_of_its_parent) {
  open();
  inside = 0;
  std::uint64_t count = 0;
  std::jthread other([&] { add_then_call(&count, 1, stay_inside); });
  inside.wait(0);
  child c([](const word_sender& send) {
    ::alarm(30);
    (void)stele::itm::close();
    send(1);
  });
  EXPECT_EQ(c.drain(0), 1u);
  inside = 2;
  inside.notify_all();
}

// Gives the name of a pool to another one at the nth opening of a file.
class renamed_pool final : public media::os::syscall_hook {
 public:
  renamed_pool(std::string from, std::string to, int nth)
      : from_(std::move(from)), to_(std::move(to)), nth_(nth) {
    media::os::install_hook(this);
  }
  ~renamed_pool() override { media::os::install_hook(nullptr); }
  int before(const media::os::request& r) noexcept override {
    if (r.what == media::os::call::open && --nth_ == 0) ::rename(from_.c_str(), to_.c_str());
    return 0;
  }
  bool has_renamed() const noexcept { return nth_ <= 0; }

 private:
  const std::string from_, to_;
  int nth_;
};

TEST_F(itm_ends, a_pool_that_takes_anothers_place_while_it_is_opened_is_refused) {
  const std::string path = dir_.file("pool"), another = dir_.file("another");
  const pool_options options = {.create_size = 1 << 20, .engine = {.media = "process"}};
  int refused = 0;
  bool has_renamed = true;
  for (int nth = 1; has_renamed && nth < 30; ++nth) {
    for (const std::string& p : {path, another}) {
      std::remove(p.c_str());
      ASSERT_TRUE(succeeds(stele::itm::open<root>(p, options)));
      ASSERT_TRUE(succeeds(stele::itm::close()));
    }
    const renamed_pool now(another, path, nth);
    const auto opened = stele::itm::open<root>(path, options);
    has_renamed = now.has_renamed();
    if (!opened) {
      EXPECT_TRUE(fails_with(opened, errc::in_use));
      ++refused;
      continue;
    }
    const auto place = reinterpret_cast<std::uintptr_t>(*opened);
    const auto& header = detail::runtime_at(place)->state().file.header();
    EXPECT_LT(place - stele::itm::mapping_address(header.id), options.create_size)
        << "opening " << nth << ": the pool is at the address of another one";
    EXPECT_TRUE(succeeds(stele::itm::close()));
  }
  EXPECT_GT(refused, 0);
}

// It was mapped elsewhere, and its plain pointers led to what was at their addresses.
TEST_F(itm_ends, a_pool_whose_later_addresses_are_in_use_is_where_it_was) {
  root* const before = open();
  ASSERT_TRUE(succeeds(stele::itm::close()));
  const auto header = storage::pool_file::peek(dir_.file("pool"));
  ASSERT_TRUE(succeeds(header));
  void* const place =
      reinterpret_cast<void*>(stele::itm::mapping_address(header->id) + (std::size_t{32} << 20));
  ASSERT_EQ(
      ::mmap(place, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0),
      place);
  const auto opened = stele::itm::open<root>(dir_.file("pool"), {.max_size = 64 << 20});
  if (opened)
    EXPECT_EQ(*opened, before);
  else
    EXPECT_TRUE(fails_with(opened, errc::unsupported));
  ::munmap(place, 4096);
}

}  // namespace
}  // namespace stele::testing::itm
