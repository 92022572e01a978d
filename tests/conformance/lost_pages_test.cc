// A pool file is truncated while it is open, or the hardware loses pages of it. That is an error,
// not a signal; everything acknowledged is there when the file is complete again.
#include <fcntl.h>
#include <stele/hash_map.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <tests/conformance/child.h>
#include <tests/conformance/pools.h>
#include <tx/inspect.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace stele::testing {
namespace {

namespace fs = std::filesystem;

struct root {
  using pool_resident = void;
  hash_map<std::uint64_t, std::uint64_t> numbers;
};

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class lost_pages : public ::testing::TestWithParam<std::string> {
 protected:
  static constexpr std::size_t size = 1 << 20;
  std::string make() {
    const std::string path = dir_.file("pool");
    auto p = open_pool<root>(path, options());
    EXPECT_TRUE(succeeds(p.update([](root& r) {
      for (std::uint64_t i = 0; i < 5000; ++i) r.numbers.insert(i, i);
    })));
    EXPECT_TRUE(succeeds(p.close()));
    return path;
  }
  pool_options options() const {
    return {.create_size = size, .engine = {.media = GetParam(), .background = false}};
  }
  scratch_directory dir_;
};

// Truncates at many lengths: in the header, logs, table, heap.
TEST_P(lost_pages, are_an_error_wherever_they_were) {
  const std::string path = make(), whole = bytes_of(path);
  for (std::size_t left = 0; left < size; left += 64 << 10) {
    SCOPED_TRACE("truncated to " + std::to_string(left));
    std::ofstream(path, std::ios::binary | std::ios::trunc) << whole;
    child user([&](const word_sender& send) {
      auto p = pool<root>::open(path, options());
      if (!p) return send(1);
      fs::resize_file(path, left);
      bool refused_once = false;
      for (std::uint64_t i = 0; i < 3; ++i) {
        const auto read = p->read([](const root& r) {
          std::uint64_t sum = 0;
          for (std::uint64_t k = 0; k < 5000; ++k)
            if (auto found = r.numbers.find(k); found != r.numbers.end()) sum += found->second;
          return sum;
        });
        if (read && *read != 4999 * 5000 / 2) return send(2);  // wrong content
        const auto put = p->update([&](root& r) { r.numbers.insert_or_assign(i, i); });
        refused_once = refused_once || !read || !put;
      }
      const auto closed = p->close();
      send(refused_once || !closed || left >= size ? 3 : 4);
    });
    std::uint64_t said = 0;
    ASSERT_TRUE(user.receive(said)) << "it ended without a word";
    EXPECT_TRUE(said == 3 || said == 4) << said;
  }
}

INSTANTIATE_TEST_SUITE_P(on, lost_pages, ::testing::Values("adr", "process", "file"), plain_name);

TEST(lost_pages, a_copy_put_back_has_everything_that_was_acknowledged) {
  scratch_directory dir;
  const std::string path = dir.file("pool");
  const pool_options options{.create_size = 1 << 20, .engine = {.media = "process"}};
  std::string at_the_end;
  {
    auto p = open_pool<root>(path, options);
    ASSERT_TRUE(succeeds(p.update([](root& r) { r.numbers.insert(1, 2); })));
    at_the_end = bytes_of(path);
    fs::resize_file(path, 8192);
    const auto refused_now = p.update([](root& r) { r.numbers.insert(2, 3); });
    EXPECT_TRUE(fails_with(refused_now, errc::poisoned));
    EXPECT_TRUE(fails_with(p.read([](const root& r) { return r.numbers.size(); }), errc::poisoned));
    EXPECT_TRUE(fails_with(p.close(), errc::poisoned));
  }
  EXPECT_TRUE(fails_with(pool<root>::open(path), errc::corrupt));
  std::ofstream(path, std::ios::binary | std::ios::trunc) << at_the_end;
  auto p = open_pool<root>(path, options);
  EXPECT_EQ(p.read([](const root& r) { return r.numbers.find(1)->second.load(); }).value(), 2u);
}

// Sends the signal that the kernel sends to a thread that touches a page which the hardware has
// lost. A process may send it to itself.
bool send_poison(const void* address) {
  siginfo_t info = {};
  info.si_signo = SIGBUS;
  info.si_code = BUS_MCEERR_AR;
  info.si_addr = const_cast<void*>(address);
  info.si_addr_lsb = 12;
  return ::syscall(SYS_rt_tgsigqueueinfo, ::getpid(), ::gettid(), SIGBUS, &info) == 0;
}

// The kernel really poisons the page where a test may ask for that (root, CONFIG_MEMORY_FAILURE);
// otherwise only the signal is sent.
class poisoned_pages : public ::testing::TestWithParam<std::tuple<std::string, bool>> {};
TEST_P(poisoned_pages, are_an_error) {
  const auto& [media, really] = GetParam();
  scratch_directory dir;
  const std::string path = dir.file("pool");
  const pool_options options{.create_size = 1 << 20,
                             .engine = {.media = media, .background = false}};
  child user([&](const word_sender& send) {
    auto p = open_pool<root>(path, options);
    const std::uint64_t* place = nullptr;
    EXPECT_TRUE(succeeds(p.update([&](root& r) {
      for (std::uint64_t i = 0; i < 5000; ++i) r.numbers.insert(i, i);
    })));
    EXPECT_TRUE(succeeds(p.read([&](const root& r) {
      place = reinterpret_cast<const std::uint64_t*>(&r.numbers.find(4000)->second);
    })));
    void* const page =
        reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(place) / 4096 * 4096);
    if (!(really ? ::madvise(page, 4096, MADV_HWPOISON) == 0 : send_poison(place))) return send(2);
    const auto found = p.read([](const root& r) { return r.numbers.find(4000)->second.load(); });
    EXPECT_TRUE(fails_with(found, errc::poisoned));
    EXPECT_TRUE(fails_with(p.update([](root& r) { r.numbers.insert(6000, 1); }), errc::poisoned));
    EXPECT_TRUE(fails_with(p.close(), errc::poisoned));
    send(1);
  });
  std::uint64_t said = 0;
  ASSERT_TRUE(user.receive(said)) << "it ended without a word";
  ASSERT_EQ(user.wait(), 0);
  if (said == 2) GTEST_SKIP() << "this kernel, or this user, cannot poison a page";
  if (really) return;  // the device is the file system's memory, which has lost the page
  auto p = open_pool<root>(path, options);
  EXPECT_EQ(p.read([](const root& r) { return r.numbers.size(); }).value(), 5000u);
}
INSTANTIATE_TEST_SUITE_P(on, poisoned_pages,
                         ::testing::Combine(::testing::Values("adr", "process", "file"),
                                            ::testing::Bool()),
                         [](const auto& one) {
                           return std::get<0>(one.param) +
                                  (std::get<1>(one.param) ? "_by_the_kernel" : "_by_signal");
                         });

TEST(lost_pages, of_a_pool_that_is_only_looked_at_are_an_error) {
  scratch_directory dir;
  const std::string path = dir.file("pool");
  auto p = open_pool<root>(path, {.create_size = 1 << 20, .engine = {.media = "process"}});
  ASSERT_TRUE(succeeds(p.update([](root& r) {
    for (std::uint64_t i = 0; i < 5000; ++i) r.numbers.insert(i, i);
  })));
  ASSERT_TRUE(succeeds(p.close()));
  child looking([&](const word_sender&) {
    auto copy = detail::open_copy_of(path, verification::never);
    ASSERT_TRUE(succeeds(copy));
    fs::resize_file(path, 8192);
    auto handle = detail::pool_handle::from_runtime(std::move(*copy), sizeof(root));
    if (!handle) return;
    pool<root> walked(std::move(*handle));
    EXPECT_FALSE(walked.read([](const root& r) { return r.numbers.check(); }));
  });
  EXPECT_EQ(looking.wait(), 0);
}

}  // namespace
}  // namespace stele::testing
