// examples/list.cc with atomic blocks: plain structs and plain pointers, no field. Compiled with
// -fgnu-tm.
#include <stele/itm.h>

#include <cstdio>

struct node {
  unsigned long key;
  node* next;
};
struct list {
  node* head;
  unsigned long size;
};

int main(int argc, char** argv) {
  auto root = stele::itm::open<list>(argc > 1 ? argv[1] : "list.stele", {.create_size = 64 << 20});
  if (!root) return std::fprintf(stderr, "%s\n", root.error().message.c_str()), 1;
  list* const l = *root;
  unsigned long size;
  __transaction_atomic {  // all of it or nothing, durable when the block has ended
    node* n = stele::itm::make<node>();
    n->key = l->size + 1;
    n->next = l->head;
    l->head = n;
    size = ++l->size;
  }
  std::printf("%lu entries, each survives: %s\n", size, name_of(stele::itm::durability_in_force()));
  return stele::itm::close() ? 0 : 1;
}
