// A user's project: a pool with a published mechanism.
#include <stele/pool.h>
#include <stele/published.h>

#include <cstdio>

struct counter {
  stele::field<std::uint64_t> runs;
};

int main(int, char** argv) {
  stele::use_published();
  auto pool = stele::pool<counter>::open(
      argv[1], {.create_size = 1 << 20, .engine = {.mechanism = "blurred"}});
  if (!pool) return std::fprintf(stderr, "%s\n", pool.error().message.c_str()), 1;
  const auto counted = pool->update([](counter& root) { return root.runs = root.runs + 1; });
  if (!counted) return std::fprintf(stderr, "%s\n", counted.error().message.c_str()), 1;
  return 0;
}
