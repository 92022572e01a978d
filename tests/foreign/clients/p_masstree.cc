// P-Masstree of RECIPE, a trie of B+-trees. A pool that is opened gets a tree with the old one's
// root.
#include <masstree.h>

#include "arena.h"

namespace client {
namespace {
masstree::masstree* tree = nullptr;

MASS::ThreadInfo this_thread() {
  const outside memory;
  return tree->getThreadInfo();
}

// Locks are in the nodes, and nothing of theirs frees them after a crash.
void free_locks(masstree::leafnode* level) {
  for (; level != nullptr; level = level->level() == 0 ? nullptr : level->leftmost())
    for (masstree::leafnode* node = level; node != nullptr; node = node->next_()) {
      int state = masstree::UNLOCKED;
      node->readLockOrRestart(state);
      if (state == masstree::LOCKED) node->writeUnlock(false);
    }
}

void remove_key(std::uint64_t key) {
  auto thread = this_thread();
  tree->del(key, thread);
}
}  // namespace

bool is_lock(std::size_t, bool) {
  return false;
}
void (*const remove)(std::uint64_t key) = remove_key;

void* create() {
  return tree = new masstree::masstree;
}
void open(void* root) {
  tree = new masstree::masstree(static_cast<masstree::masstree*>(root)->root());
  free_locks(static_cast<masstree::leafnode*>(tree->root()));
}
std::uint64_t find(std::uint64_t key) {
  auto thread = this_thread();
  return reinterpret_cast<std::uint64_t>(tree->get(key, thread));
}
void insert(std::uint64_t key, std::uint64_t value) {
  auto thread = this_thread();
  tree->put(key, reinterpret_cast<void*>(value), thread);
}
}  // namespace client
