// The transactional clones of functions that are called through pointers.
//
// Each program and shared object compiled with -fgnu-tm registers a table of (function, clone)
// before its first initialization runs, so this file must need no initialization. A call through a
// pointer looks up the clone. A function without a clone makes the block run alone and irrevocably.
#include <base/assert.h>

#include <adapters/itm/block.h>

#include <base/check.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>
#include <vector>

namespace stele::itm {

namespace {

struct entry {
  void* function;
  void* instrumented;
};

// A copy of a registered table, for good: a reader may look into it while its shared object is
// being unloaded.
struct table {
  const void* of;  // as it was registered
  entry* clones;   // in the order of their functions
  std::size_t size;
  std::atomic<std::size_t> count;  // size; 0: not registered now
  table* next;
};

// For writers. Readers take no lock: the list only grows at its head, and a table is emptied only
// when none of its functions runs.
constinit std::mutex tables_mutex;
constinit std::atomic<table*> tables{nullptr};

bool before(const entry& a, const entry& b) {
  return std::less<void*>()(a.function, b.function);
}

void* find(void* function) noexcept {
  for (const table* t = tables.load(std::memory_order_acquire); t != nullptr; t = t->next) {
    const entry* const end = t->clones + t->count.load(std::memory_order_relaxed);
    STELE_ASSERT_WHOLE(std::is_sorted(t->clones, t->clones + t->size, before));
    const entry* const found = std::lower_bound(static_cast<const entry*>(t->clones), end,
                                                entry{function, nullptr}, before);
    if (found != end && found->function == function) return found->instrumented;
  }
  return nullptr;
}

// For assertions; with tables_mutex held. An empty table counts as none.
[[maybe_unused]] bool is_registered(const void* entries) noexcept {
  for (const table* t = tables.load(std::memory_order_relaxed); t != nullptr; t = t->next)
    if (t->of == entries && t->count.load(std::memory_order_relaxed) != 0) return true;
  return false;
}

bool is_same(const entry& a, const entry& b) noexcept {
  return a.function == b.function && a.instrumented == b.instrumented;
}

// With tables_mutex held. A shared object that is loaded again, to where it was, has the table that
// it had: else each loading would take memory for good.
table* find_emptied(const std::vector<entry>& clones) noexcept {
  for (table* t = tables.load(std::memory_order_relaxed); t != nullptr; t = t->next)
    if (t->count.load(std::memory_order_relaxed) == 0 &&
        std::equal(t->clones, t->clones + t->size, clones.begin(), clones.end(), is_same))
      return t;
  return nullptr;
}

}  // namespace

}  // namespace stele::itm

extern "C" {

void _ITM_registerTMCloneTable(void* entries, std::size_t count) {
  using namespace stele::itm;
  const auto* const registered = static_cast<const entry*>(entries);
  std::vector<entry> clones(registered, registered + count);
  std::sort(clones.begin(), clones.end(), before);
  const std::lock_guard hold(tables_mutex);
  STELE_ASSERT_WHOLE(!is_registered(entries));
  if (table* const known = find_emptied(clones)) {
    known->of = entries;
    known->count.store(count, std::memory_order_release);
    return;
  }
  auto* const copy = new entry[count];
  std::copy(clones.begin(), clones.end(), copy);
  tables.store(new table{entries, copy, count, {count}, tables.load(std::memory_order_relaxed)},
               std::memory_order_release);
}

// Its shared object is being unloaded: none of its functions is running.
void _ITM_deregisterTMCloneTable(void* entries) {
  using namespace stele::itm;
  const std::lock_guard hold(tables_mutex);
  for (table* t = tables.load(std::memory_order_relaxed); t != nullptr; t = t->next)
    if (t->of == entries) t->count.store(0, std::memory_order_relaxed);
}

void* _ITM_getTMCloneOrIrrevocable(void* function) {
  if (void* const found = stele::itm::find(function)) return found;
  STELE_ASSERT(stele::itm::block::current() != nullptr);
  stele::itm::block::current()->go_irrevocable();
  return function;
}

void* _ITM_getTMCloneSafe(void* function) {
  void* const found = stele::itm::find(function);
  stele::base::check(found != nullptr,
                     "an atomic block calls, through a pointer, a function without a transactional "
                     "clone; compile it with "
                     "-fgnu-tm and declare it transaction_safe");
  return found;
}
}
