// The transactional clones of functions that are called through pointers.
//
// Each program and shared object compiled with -fgnu-tm registers a table of (function, clone)
// before its first initialization runs, so this file must need no initialization. A call through a
// pointer looks up the clone. A function without a clone makes the block run alone and irrevocably.
#include <base/assert.h>

#include <adapters/itm/block.h>

#include <base/check.h>

#include <algorithm>
#include <functional>
#include <mutex>

namespace stele::itm {

namespace {

struct entry {
  void* function;
  void* instrumented;
};

struct table {
  entry* clones;
  std::size_t count;
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
    // As it was sorted when it was registered.
    STELE_ASSERT_WHOLE(std::is_sorted(t->clones, t->clones + t->count, before));
    const entry* const found =
        std::lower_bound(t->clones, t->clones + t->count, entry{function, nullptr}, before);
    if (found != t->clones + t->count && found->function == function) return found->instrumented;
  }
  return nullptr;
}

// For assertions; with tables_mutex held. An empty table counts as none.
[[maybe_unused]] bool is_registered(const entry* clones) noexcept {
  for (const table* t = tables.load(std::memory_order_relaxed); t != nullptr; t = t->next)
    if (t->clones == clones && t->count != 0) return true;
  return false;
}

}  // namespace

}  // namespace stele::itm

extern "C" {

void _ITM_registerTMCloneTable(void* entries, std::size_t count) {
  using namespace stele::itm;
  auto* const clones = static_cast<entry*>(entries);
  std::sort(clones, clones + count, before);
  const std::lock_guard hold(tables_mutex);
  STELE_ASSERT_WHOLE(!is_registered(clones));
  tables.store(new table{clones, count, tables.load(std::memory_order_relaxed)},
               std::memory_order_release);
}

// Its shared object is being unloaded: none of its functions is running.
void _ITM_deregisterTMCloneTable(void* entries) {
  using namespace stele::itm;
  const std::lock_guard hold(tables_mutex);
  for (table* t = tables.load(std::memory_order_relaxed); t != nullptr; t = t->next)
    if (t->clones == entries) t->count = 0;
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
