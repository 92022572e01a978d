// Ordinary memory, and byte ranges in any memory; see routing.h.
#include <base/assert.h>

#include <adapters/itm/routing.h>
#include <tx/transaction_inl.h>

namespace stele::itm {

void load_from_outside(block& b, std::uintptr_t address, void* to, std::size_t size) {
  STELE_ASSERT(b.running());
  STELE_ASSERT(!in_pool(address));
  if (b.own_stack(address)) {
    std::memcpy(to, reinterpret_cast<const void*>(address), size);
    return;
  }
  b.announce_outside();
  b.transaction().load_volatile(address, to, size);
}

void store_to_outside(block& b, std::uintptr_t address, const void* from, std::size_t size) {
  STELE_ASSERT(b.running());
  STELE_ASSERT(!in_pool(address));
  // A frame of a call that the block made lies on the stack that the block has.
  STELE_ASSERT(!b.own_frame(address) || b.own_stack(address));
  if (!b.own_frame(address)) {
    auto& tx = b.transaction();
    if (!b.own_stack(address)) {
      b.announce_outside();
      tx.lock_volatile(address, size);
    }
    tx.volatile_undo().append(address, size);
  }
  std::memcpy(reinterpret_cast<void*>(address), from, size);
}

void load_bytes(const void* from, void* to, std::size_t size) {
  const auto address = reinterpret_cast<std::uintptr_t>(from);
  if (in_pool(address)) return detail::load_range(from, to, size);
  load_from_outside(*block::current(), address, to, size);
}

void store_bytes(void* to, const void* from, std::size_t size) {
  const auto address = reinterpret_cast<std::uintptr_t>(to);
  block& b = *block::current();
  if (!in_pool(address)) return store_to_outside(b, address, from, size);
  b.save_pool_undo(address, size);
  detail::store_range(to, from, size);
}

void save_private(const void* at, std::size_t size) {
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  block& b = *block::current();
  STELE_ASSERT(b.running());
  if (!in_pool(address) && !b.own_frame(address))
    guarded([&] { b.transaction().volatile_undo().append(address, size); });
}

}  // namespace stele::itm
