// CCEH of RECIPE's third-party/CCEH, an extendible hash table; its Recovery mends the directory.
// All keys fall on one line of a segment, so that segments are soon full.
#include <src/CCEH.h>
#include <util/hash.h>

#include "arena.h"

std::size_t perfCounter = 0;

namespace client {
namespace {
CCEH* table = nullptr;

Key_t crowded(std::uint64_t key) {
  for (Key_t k = key << 16;; ++k)
    if ((h(&k, sizeof k) & kMask) == 0) return k;
}
}  // namespace

bool is_lock(std::size_t, bool) {
  return false;
}
void (*const remove)(std::uint64_t key) = nullptr;

void* create() {
  return table = new CCEH(2);
}
void open(void* root) {
  table = static_cast<CCEH*>(root);
  table->Recovery();
  table->lock_initialization();
}
std::uint64_t find(std::uint64_t key) {
  Key_t k = crowded(key);
  return reinterpret_cast<std::uint64_t>(table->Get(k));
}
void insert(std::uint64_t key, std::uint64_t value) {
  Key_t k = crowded(key);
  table->Insert(k, reinterpret_cast<Value_t>(value));
}
}  // namespace client
