// Mistakes that a program compiled with STELE_DEBUG is told: docs/guide/debug.md. Compile it
// with -DSTELE_DEBUG; examples/CMakeLists.txt does.
#include <stele/pool.h>

#include <cstdio>

struct job {
  stele::field<std::uint64_t> number;
  stele::field<job*> next;
};

struct jobs {
  stele::field<job*> first;
  template <class Visit>
  void visit_blocks(Visit&& visit) const {  // for the leaks
    for (const job* j = first; j != nullptr; j = j->next) visit(j);
  }
};

int main(int argc, char** argv) {
  auto pool = stele::pool<jobs>::open(argc > 1 ? argv[1] : "jobs.stele", {.create_size = 1 << 20});
  if (!pool) return std::fprintf(stderr, "%s\n", pool.error().message.c_str()), 1;

  job on_stack;
  auto stored = pool->update([&](jobs& all) { all.first = &on_stack; });
  if (stored) return std::puts("compile this with STELE_DEBUG"), 1;
  std::printf("%s\n", stored.error().message.c_str());

  auto used = pool->update([](jobs&) {
    job* const one = stele::make<job>();
    stele::destroy(one);
    one->number = 1;
  });
  if (used) return 1;
  std::printf("%s\n", used.error().message.c_str());

  auto lost = pool->update([](jobs&) { stele::make<job>()->number = 2; });
  return lost ? 0 : 1;  // the pool's destructor says that one object leaked
}
