// Another file's bytes are written over a pool that is open: "a backup restored over a live
// database". It once ended the program. The pool's next calls may fail, but none ends the program.
#include <fcntl.h>
#include <stele/kv.h>
#include <tests/conformance/child.h>
#include <tests/conformance/pools.h>

#include <filesystem>
#include <fstream>

namespace stele::testing {
namespace {

constexpr std::size_t size = 1u << 20;

void put_many(kv& store, unsigned from, unsigned count, std::size_t bytes) {
  for (unsigned n = from; n < from + count; ++n)
    (void)store.put("key" + std::to_string(n), std::string(bytes, static_cast<char>('a' + n % 26)));
}

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Keeps the inode, as cp does.
void write_over(const std::string& path, const std::string& bytes) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_TRUNC);
  ASSERT_GE(fd, 0);
  EXPECT_EQ(::write(fd, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  ::close(fd);
}

void use_all(kv& store) {
  (void)store.get("key1");
  put_many(store, 0, 400, 300);
  (void)store.range("", "", 1000);
  (void)store.erase("key2");
  (void)store.statistics();
  (void)store.sync();
  (void)store.check();
  (void)store.close();
}

class overwritten_pool : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(overwritten_pool, ends_no_program) {
  scratch_directory dir;
  const std::string path = dir.file("pool"), other = dir.file("other");
  const auto& [media, what] = GetParam();
  const pool_options options{.create_size = size,
                             .engine = {.media = media, .log_size = 16384, .log_count = 2}};
  {
    auto made = kv::open(other, options);
    ASSERT_TRUE(succeeds(made));
    put_many(*made, 1000, 300, 100);
  }
  const pid_t child = ::fork();
  if (child == 0) {
    auto store = kv::open(path, options);
    if (!store) ::_exit(2);
    put_many(*store, 0, 20, 50);
    const std::string own = bytes_of(path);
    put_many(*store, 20, 20, 50);
    write_over(path, what == "another_pool"    ? bytes_of(other)
                     : what == "an_older_copy" ? own
                     : what == "zeroes"        ? std::string(size, '\0')
                                               : std::string(size, '\xff'));
    use_all(*store);
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "ended by signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

INSTANTIATE_TEST_SUITE_P(kinds, overwritten_pool,
                         ::testing::Combine(::testing::Values("process", "adr", "file"),
                                            ::testing::Values("another_pool", "an_older_copy",
                                                              "zeroes", "ones")),
                         setting_name);

// What the program is told.
TEST(overwritten, is_told_as_such) {
  scratch_directory dir;
  const std::string path = dir.file("pool"), other = dir.file("other");
  {
    ASSERT_TRUE(succeeds(kv::open(other, {.create_size = size, .engine = {.media = "process"}})));
  }
  auto store = kv::open(path, {.create_size = size, .engine = {.media = "process"}});
  ASSERT_TRUE(succeeds(store));
  write_over(path, bytes_of(other));
  const auto checked = store->check();
  ASSERT_TRUE(fails_with(checked, errc::poisoned));
  EXPECT_NE(checked.error().message.find("another program"), std::string::npos)
      << checked.error().message;
  EXPECT_FALSE(store->put("a", "1").has_value());
}

}  // namespace
}  // namespace stele::testing
