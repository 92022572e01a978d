// P-ART of RECIPE, a radix tree. A tree in memory gets the root that the pool has, which is its
// first member.
#include <Tree.h>

#include <cstring>
#include <new>

#include "arena.h"

namespace client {
namespace {
ART_ROWEX::Tree* tree = nullptr;

void no_key(TID, Key&) {}

Key* key_of(std::uint64_t key, std::uint64_t value) {
  Key* const none = nullptr;
  return none->make_leaf(key, sizeof key, value);
}

ThreadInfo this_thread() {
  const outside memory;
  return tree->getThreadInfo();
}

// Locks are in the nodes, and nothing of theirs frees them after a crash.
void free_locks(ART_ROWEX::N* node) {
  if (ART_ROWEX::N::isLeaf(node)) return;
  if (node->isLocked(node->getVersion())) node->writeUnlock();
  std::tuple<std::uint8_t, ART_ROWEX::N*> children[256];
  std::uint32_t count = 0;
  ART_ROWEX::N::getChildren(node, 0, 255, children, count);
  for (std::uint32_t i = 0; i < count; ++i) free_locks(std::get<1>(children[i]));
}

void remove_key(std::uint64_t key) {
  auto thread = this_thread();
  tree->remove(key_of(key, 0), thread);
}
}  // namespace

bool is_lock(std::size_t, bool) {
  return false;
}
void (*const remove)(std::uint64_t key) = remove_key;

void* create() {
  return tree = new ART_ROWEX::Tree(no_key);
}
void open(void* root) {
  tree = new ART_ROWEX::Tree(no_key);
  std::memcpy(static_cast<void*>(tree), root, sizeof(void*));
  free_locks(*static_cast<ART_ROWEX::N**>(root));
}
std::uint64_t find(std::uint64_t key) {
  auto thread = this_thread();
  const void* const found = tree->lookup(key_of(key, 0), thread);
  return found == nullptr ? 0 : *static_cast<const std::uint64_t*>(found);
}
void insert(std::uint64_t key, std::uint64_t value) {
  auto thread = this_thread();
  tree->insert(key_of(key, value), thread);
}
}  // namespace client
