// WOART of RECIPE's third-party/WOART, a radix tree; with STELE_WORT, WORT of
// third-party/CrashTest.
#ifdef STELE_WORT
#include <wort.h>
#define TREE(NAME) wort_##NAME
#else
#include <woart.h>
#define TREE(NAME) woart_##NAME
#endif

#include <cstdlib>

#include "arena.h"

namespace client {
namespace {
TREE(tree) * tree = nullptr;
}  // namespace

bool is_lock(std::size_t, bool) {
  return false;
}
void (*const remove)(std::uint64_t key) = nullptr;

void* create() {
  void* memory = nullptr;
  if (posix_memalign(&memory, 64, sizeof *tree) != 0) std::abort();
  tree = static_cast<TREE(tree)*>(memory);
  TREE(tree_init)(tree);
  return tree;
}
void open(void* root) {
  tree = static_cast<TREE(tree)*>(root);
}
std::uint64_t find(std::uint64_t key) {
  return reinterpret_cast<std::uint64_t>(TREE(search)(tree, key, sizeof key));
}
void insert(std::uint64_t key, std::uint64_t value) {
  TREE(insert)(tree, key, sizeof key, reinterpret_cast<void*>(value));
}
}  // namespace client
