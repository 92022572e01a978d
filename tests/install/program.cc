// A user's project: a pool in C++.
#include <stele/pool.h>

#include <cstdio>

struct counter {
  stele::field<std::uint64_t> runs;
};

int main(int, char** argv) {
  auto pool = stele::pool<counter>::open(argv[1], {.create_size = 1 << 20});
  if (!pool) return std::fprintf(stderr, "%s\n", pool.error().message.c_str()), 1;
  const auto counted = pool->update([](counter& root) { return root.runs = root.runs + 1; });
  if (!counted) return std::fprintf(stderr, "%s\n", counted.error().message.c_str()), 1;
  return 0;
}
