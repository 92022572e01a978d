// Ordinary memory that a transaction stores to: the words as they were, for its roll-back. Used by
// adapters/itm.
//
// The protocol is the stm's with the same locks and clock, a line being found by its distance from
// the pool; but stores go to memory at once, so that code which knows nothing of transactions sees
// them, and a roll-back puts the old words back before it gives the locks back, with a new version:
// a reader may have met the stores. Nothing here reaches media.
//
// Who stores keeps first, and locks first what is not the thread's own. The stack of calls made
// since the transaction began is not kept: when it rolls back, other calls have that memory.
#pragma once

#include <stele/access.h>

#include <vector>

namespace stele::detail {

struct volatile_undo_log {
  std::vector<undo_entry> entries;  // `where` is the exact address, the size in the top byte
  bool locked = false;  // lines of other threads' memory are locked, and may have been stored to

  bool empty() const noexcept { return entries.empty() && !locked; }
  void clear() noexcept { entries.clear(), locked = false; }
  // Keeps what is there now.
  void append(std::uintptr_t address, std::size_t size);
  // Puts back what was there when `count` words had been kept.
  void roll_back_to(std::size_t count) noexcept;
  // Forgets words of [from, to) kept since then.
  void discard(std::size_t count, std::uintptr_t from, std::uintptr_t to) noexcept;
};

}  // namespace stele::detail
