// A durable list: the smallest complete program. Run it twice and kill it in between: the list is
// always consistent.
#include <stele/pool.h>

#include <cstdio>

struct node {
  stele::field<std::uint64_t> key;
  stele::field<node*> next;
};
struct list {
  stele::field<node*> head;
  stele::field<std::uint64_t> size;
};

int main(int argc, char** argv) {
  auto pool = stele::pool<list>::open(argc > 1 ? argv[1] : "list.stele", {.create_size = 64 << 20});
  if (!pool) return std::fprintf(stderr, "%s\n", pool.error().message.c_str()), 1;
  auto added = pool->update([](list& root) {  // all of it or nothing, durable when update returns
    auto* n = stele::make<node>();
    n->key = root.size + 1;
    n->next = root.head;
    root.head = n;
    root.size += 1;
  });
  if (!added) return std::fprintf(stderr, "%s\n", added.error().message.c_str()), 1;
  auto size = pool->read([](const list& root) { return root.size.load(); });
  std::printf("%lu entries, each survives: %s\n", *size, name_of(pool->durability_in_force()));
  return 0;
}
