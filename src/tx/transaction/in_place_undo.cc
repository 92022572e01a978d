// Saves and restores the words that stores in place replace.
#include <base/assert.h>
#include <tx/transaction/in_place_undo.h>

#include <algorithm>

namespace stele::detail {

void in_place_undo::grow(access& a) {
  STELE_ASSERT(has(a) && a.undo_next == a.undo_end);
  const std::size_t used = static_cast<std::size_t>(a.undo_next - entries_.data());
  entries_.resize(std::max<std::size_t>(256, entries_.size() * 2));
  a.undo_next = entries_.data() + used;
  a.undo_end = entries_.data() + entries_.size();
  STELE_ASSERT(has(a) && a.undo_next < a.undo_end);
}

void in_place_undo::undo(const access& a) const noexcept {
  STELE_ASSERT(has(a));
  for (const undo_entry* o = a.undo_next; o != entries_.data();) {
    --o;
    *reinterpret_cast<std::uint64_t*>(o->where & ((std::uintptr_t{1} << 56) - 1)) = o->value;
  }
}

std::uint64_t in_place_undo::stored_bytes(const access& a) const noexcept {
  STELE_ASSERT(has(a));
  std::uint64_t bytes = 0;
  for (const undo_entry* o = entries_.data(); o != a.undo_next; ++o) bytes += o->where >> 56;
  return bytes;
}

}  // namespace stele::detail
