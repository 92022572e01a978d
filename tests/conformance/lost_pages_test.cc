// A pool file that is truncated, or made read-only, while it is open: an error, not a signal; and what it had acknowledged is there when the file is
// whole again.
#include <fcntl.h>
#include <stele/hash_map.h>
#include <tests/conformance/child.h>
#include <tests/conformance/pools.h>

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
    EXPECT_TRUE(holds(p.update([](root& r) {
      for (std::uint64_t i = 0; i < 5000; ++i) r.numbers.insert(i, i);
    })));
    EXPECT_TRUE(holds(p.close()));
    return path;
  }
  pool_options options() const { return {.create_size = size, .media = GetParam(), .background = false}; }
  scratch_directory dir_;
};

// At each of many lengths: header, logs, table, heap.
TEST_P(lost_pages, are_an_error_wherever_they_were) {
  const std::string path = make(), whole = bytes_of(path);
  for (std::size_t left = 0; left < size; left += 64 << 10) {
    SCOPED_TRACE("truncated to " + std::to_string(left));
    std::ofstream(path, std::ios::binary | std::ios::trunc) << whole;
    child user([&](const teller& tell) {
      auto p = pool<root>::open(path, options());
      if (!p) return tell(1);
      fs::resize_file(path, left);
      bool refused_once = false;
      for (std::uint64_t i = 0; i < 3; ++i) {
        const auto read = p->read([](const root& r) {
          std::uint64_t sum = 0;
          for (std::uint64_t k = 0; k < 5000; ++k)
            if (auto found = r.numbers.find(k); found != r.numbers.end()) sum += found->second;
          return sum;
        });
        if (read && *read != 4999 * 5000 / 2) return tell(2);  // a wrong answer
        const auto put = p->update([&](root& r) { r.numbers.insert_or_assign(i, i); });
        refused_once = refused_once || !read || !put;
      }
      const auto closed = p->close();
      tell(refused_once || !closed || left >= size ? 3 : 4);
    });
    std::uint64_t said = 0;
    ASSERT_TRUE(user.hear(said)) << "it ended without a word";
    EXPECT_TRUE(said == 3 || said == 4) << said;
  }
}

INSTANTIATE_TEST_SUITE_P(on, lost_pages, ::testing::Values("adr", "process", "file"), plain_name);

TEST(lost_pages, a_copy_put_back_has_everything_that_was_acknowledged) {
  scratch_directory dir;
  const std::string path = dir.file("pool");
  const pool_options options{.create_size = 1 << 20, .media = "process"};
  std::string at_the_end;
  {
    auto p = open_pool<root>(path, options);
    ASSERT_TRUE(holds(p.update([](root& r) { r.numbers.insert(1, 2); })));
    at_the_end = bytes_of(path);
    fs::resize_file(path, 8192);
    const auto refused_now = p.update([](root& r) { r.numbers.insert(2, 3); });
    EXPECT_TRUE(refused(refused_now, errc::poisoned));
    EXPECT_TRUE(refused(p.read([](const root& r) { return r.numbers.size(); }), errc::poisoned));
    EXPECT_TRUE(refused(p.close(), errc::poisoned));
  }
  EXPECT_TRUE(refused(pool<root>::open(path), errc::corrupt));
  std::ofstream(path, std::ios::binary | std::ios::trunc) << at_the_end;
  auto p = open_pool<root>(path, options);
  EXPECT_EQ(p.read([](const root& r) { return r.numbers.find(1)->second.load(); }).value(), 2u);
}

}  // namespace
}  // namespace stele::testing
