// Ordinary memory, and runs of bytes of any memory; see routing.h.
#include <adapters/itm/routing.h>
#include <tx/transaction_inl.h>

namespace stele::itm {

void load_from_outside(block& b, std::uintptr_t address, void* to, std::size_t size) {
  if (b.own_stack(address)) {
    std::memcpy(to, reinterpret_cast<const void*>(address), size);
    return;
  }
  b.touch_outside();
  b.transaction().load_outside(address, to, size);
}

void store_to_outside(block& b, std::uintptr_t address, const void* from, std::size_t size) {
  if (!b.own_frame(address)) {
    auto& tx = b.transaction();
    if (!b.own_stack(address)) {
      b.touch_outside();
      tx.lock_outside(address, size);
    }
    tx.outside().keep(address, size);
  }
  std::memcpy(reinterpret_cast<void*>(address), from, size);
}

void load_bytes(const void* from, void* to, std::size_t size) {
  const auto address = reinterpret_cast<std::uintptr_t>(from);
  if (in_pool(address)) return detail::load_range(from, to, size);
  load_from_outside(*block::known(), address, to, size);
}

void store_bytes(void* to, const void* from, std::size_t size) {
  const auto address = reinterpret_cast<std::uintptr_t>(to);
  block& b = *block::known();
  if (!in_pool(address)) return store_to_outside(b, address, from, size);
  b.keep_pool(address, size);
  detail::store_range(to, from, size);
}

void keep_private(const void* at, std::size_t size) {
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  block& b = *block::known();
  if (!in_pool(address) && !b.own_frame(address)) b.transaction().outside().keep(address, size);
}

}  // namespace stele::itm
