// Jobs that are done exactly once: a queue, a set and a vector that change in one transaction, and
// a vector in ordinary memory.
#include <stele/memory.h>
#include <stele/pool.h>
#include <stele/queue.h>
#include <stele/set.h>
#include <stele/string.h>
#include <stele/vector.h>

#include <cstdio>

struct jobs {
  using pool_resident = void;  // it holds containers
  stele::queue<stele::string> waiting;
  stele::set<stele::string> done;
  stele::vector<stele::string> history;
};
using lengths =
    stele::basic_vector<std::size_t, stele::plain_memory>;  // the same container in ordinary memory

// Takes the oldest job from the queue and does it, unless it was done before. Returns false if the
// queue was empty.
stele::result<bool> do_next(stele::pool<jobs>& pool) {
  return pool.update([](jobs& j) {
    if (j.waiting.empty()) return false;
    const std::string job = j.waiting.front().str();
    j.waiting.pop();
    if (j.done.insert(job).second) j.history.push_back(job);
    return true;
  });
}

int main(int argc, char** argv) {
  auto pool = stele::pool<jobs>::open(argc > 1 ? argv[1] : "jobs.stele", {.create_size = 16 << 20});
  if (!pool) return std::fprintf(stderr, "%s\n", pool.error().message.c_str()), 1;
  auto asked = pool->update([](jobs& j) {
    for (const char* job : {"wash", "cook", "wash"}) j.waiting.push(job);
  });
  if (!asked) return std::fprintf(stderr, "%s\n", asked.error().message.c_str()), 1;
  for (bool more = true; more;) {
    auto did = do_next(*pool);
    if (!did) return std::fprintf(stderr, "%s\n", did.error().message.c_str()), 1;
    more = *did;
  }
  lengths seen{};  // braces: an empty container is zeroed memory
  auto read = pool->read([&](const jobs& j) {
    seen.clear();  // a body may run more than once
    for (const auto& job : j.history) seen.push_back(job.size());
    return j.history.size();
  });
  std::printf("%zu jobs done, each once; the first in %zu letters\n", *read, seen.front().load());
  return *read == 2 && seen.size() == 2 ? 0 : 1;
}
