// Level hashing of RECIPE's third-party/CCEH. What it allocates without an alignment is locks.
#include <src/Level_hashing.h>

#include "arena.h"

std::size_t perfCounter = 0;

namespace client {
namespace {
LevelHashing* table = nullptr;
}  // namespace

bool is_lock(std::size_t size, bool is_aligned) {
  return !is_aligned && size != sizeof(LevelHashing);
}
void (*const remove)(std::uint64_t key) = nullptr;

void* create() {
  return table = new LevelHashing(3);
}
void open(void* root) {
  table = static_cast<LevelHashing*>(root);
}
std::uint64_t find(std::uint64_t key) {
  return reinterpret_cast<std::uint64_t>(table->Get(key));
}
void insert(std::uint64_t key, std::uint64_t value) {
  table->Insert(key, reinterpret_cast<Value_t>(value));
}
}  // namespace client
