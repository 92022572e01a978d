// FAST & FAIR, a B+-tree that is searched without locks: RECIPE's third-party/FAST_FAIR, or with
// STELE_DICL its authors' own.
#include <btree.h>

#include <new>

#include "arena.h"

namespace client {
namespace {
#ifdef STELE_DICL
using structure = btree;
#else
using structure = fastfair::btree;
#endif
structure* tree = nullptr;
void remove_key(std::uint64_t key) {
  tree->btree_delete(key);
}
}  // namespace

bool is_lock(std::size_t size, bool is_aligned) {
  return !is_aligned && size == sizeof(std::mutex);
}
void (*const remove)(std::uint64_t key) = remove_key;

void* create() {
  void* memory = nullptr;
  if (posix_memalign(&memory, 64, sizeof(structure)) != 0) std::abort();
  return tree = new (memory) structure;
}
void open(void* root) {
  tree = static_cast<structure*>(root);
}
std::uint64_t find(std::uint64_t key) {
  return reinterpret_cast<std::uint64_t>(tree->btree_search(key));
}
void insert(std::uint64_t key, std::uint64_t value) {
  tree->btree_insert(key, reinterpret_cast<char*>(value));
}
}  // namespace client
