// A program starts with its standard descriptors closed, as daemons and `>&-` do. Files of a pool
// once got the numbers 0 to 2, and what the program printed was written over the pool's header.
#include <fcntl.h>
#include <stele/kv.h>
#include <stele/snapshot.h>
#include <tests/conformance/child.h>
#include <tests/conformance/pools.h>

#include <array>
#include <string>

namespace stele::testing {
namespace {

// In a child: closes these of the first three descriptors, works, and exits with what it found.
template <class Work>
int status_without(unsigned closed, Work&& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    for (int n = 0; n < 3; ++n)
      if ((closed & 1u << n) != 0) ::close(n);
    ::_exit(work());
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool is_open(int n) {
  return ::fcntl(n, F_GETFD) >= 0;
}

// 0: all as it should be.
int work_on(const std::string& path, const std::string& media, unsigned closed) {
  auto store =
      kv::open(path, {.create_size = 4u << 20, .max_size = 16u << 20, .engine = {.media = media}});
  if (!store || !store->put("a", "1")) return 10;
  for (int n = 0; n < 3; ++n)
    if ((closed & 1u << n) != 0 && is_open(n)) return 20 + n;
  const std::string line(4096, 'x');
  for (const int n : {STDOUT_FILENO, STDERR_FILENO}) (void)!::write(n, line.data(), line.size());
  auto reader = kv::open_read_only(path);
  if (!reader || !reader->get("a")) return 11;
  if (!store->grow(8u << 20) || !store->backup(path + ".copy") || !store->check()) return 12;
  for (int n = 0; n < 3; ++n)
    if ((closed & 1u << n) != 0 && is_open(n)) return 30 + n;
  return store->close() ? 0 : 13;
}

TEST(standard_descriptors, are_never_those_of_a_pool) {
  scratch_directory dir;
  for (const std::string media : {"process", "file", "adr"})
    for (unsigned closed = 1; closed < 8; ++closed) {
      SCOPED_TRACE(media + ", closed: " + std::to_string(closed));
      const std::string path = dir.file(media + std::to_string(closed));
      EXPECT_EQ(status_without(closed, [&] { return work_on(path, media, closed); }), 0);
      for (const std::string& file : {path, path + ".copy"}) {
        auto again = kv::open(file);
        ASSERT_TRUE(succeeds(again));
        EXPECT_EQ((*again->get("a")).value_or(""), "1");
      }
    }
}

}  // namespace
}  // namespace stele::testing
