// The memory of a structure that persists by itself: while the structure runs, malloc takes from a
// pool file that is mapped at a fixed address. Nothing is reused. The client of each structure
// defines the functions below.
#pragma once

#include <cstddef>
#include <cstdint>

namespace client {

// Whether such an allocation is a lock: a pool that is opened again has all locks free.
bool is_lock(std::size_t size, bool is_aligned);
// While one exists malloc takes no memory of the pool.
struct outside {
  outside();
  ~outside();
  bool before;
};

// Returns what the pool is to find the structure by.
void* create();
void open(void* root);
std::uint64_t find(std::uint64_t key);  // 0: absent
void insert(std::uint64_t key, std::uint64_t value);
extern void (*const remove)(std::uint64_t key);  // nullptr: it has none

}  // namespace client
