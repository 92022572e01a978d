// The undo log of volatile memory that a transaction stores to: the old words, for its roll-back.
// Used by adapters/itm. Nothing here reaches media.
//
// The protocol is that of the stm, with the same locks and clock; the distance of a line from the
// pool selects its lock. But stores go to memory at once, so that code outside transactions sees
// them. A roll-back restores the old words, then releases the locks with a new version, because a
// reader may have seen the stores.
//
// The caller appends the old words before it stores, and locks lines first unless they are the
// thread's own. The stack frames of calls since the transaction began are not saved: at roll-back
// other calls use that memory.
#pragma once

#include <stele/detail/access.h>

#include <vector>

namespace stele::detail {

struct volatile_undo_log {
  std::vector<undo_entry> entries;  // `where`: the exact address, with the size in the top byte
  bool locked = false;              // lines of shared memory are locked and may have been stored to

  bool empty() const noexcept { return entries.empty() && !locked; }
  void clear() noexcept { entries.clear(), locked = false; }
  // Saves the bytes that are there now.
  void append(std::uintptr_t address, std::size_t size);
  // Restores the words of all entries after the first `count`, newest first, and drops them.
  void roll_back_to(std::size_t count) noexcept;
  // Drops the entries after the first `count` with addresses in [from, to).
  void discard(std::size_t count, std::uintptr_t from, std::uintptr_t to) noexcept;
};

}  // namespace stele::detail
