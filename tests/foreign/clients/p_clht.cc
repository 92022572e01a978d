// P-CLHT of RECIPE: a hash table of lines. Its own recovery frees the locks.
#include <clht.h>

#include "arena.h"

namespace client {
namespace {
clht_t* table = nullptr;
// What the library keeps for a thread is not the table's.
void join() {
  const outside memory;
  table->version_list = nullptr;  // of the threads of a run that ended
  clht_gc_thread_init(table, 0);
}

void remove_key(std::uint64_t key) {
  clht_remove(table, key);
}
}  // namespace

bool is_lock(std::size_t, bool) {
  return false;
}
void (*const remove)(std::uint64_t key) = remove_key;

void* create() {
  table = clht_create(8);
  join();
  return table;
}
void open(void* root) {
  table = static_cast<clht_t*>(root);
  clht_lock_initialization(table);
  join();
}
std::uint64_t find(std::uint64_t key) {
  return clht_get(table->ht, key);
}
void insert(std::uint64_t key, std::uint64_t value) {
  clht_put(table, key, value);
}
}  // namespace client
