// Lists of databases, and their extents.
#include "stored.h"

#include <algorithm>
#include <string>

#include <stele/memory.h>

namespace stele::sqlite {

stored_database* stored_databases::find(std::string_view name) const {
  for (stored_database* d = first; d != nullptr; d = d->next)
    if (d->name == name) return d;
  return nullptr;
}

stored_database* stored_databases::make(std::string_view name) {
  auto* const d = stele::make<stored_database>();
  d->name = name;
  d->next = first.load();
  first = d;
  return d;
}

result<> stored_databases::check() const {
  for (const stored_database* d = first; d != nullptr; d = d->next)
    if (extents_for(d->size_bytes) > d->extent_count || d->extent_count > d->extent_room)
      return std::unexpected(
          error{errc::corrupt, "the database \"" + d->name.str() + "\" says that it has " +
                                   std::to_string(d->size_bytes.load()) + " bytes, but it has " +
                                   std::to_string(d->extent_count.load()) +
                                   " extents, fewer than that takes"});
  return {};
}

void set_extents(stored_database& d, std::uint64_t bytes) {
  const std::uint64_t wanted = extents_for(bytes), held = d.extent_count;
  if (wanted > d.extent_room) {
    const std::uint64_t room = std::max<std::uint64_t>(16, std::bit_ceil(wanted));
    auto* const more = pool_memory::make_array<field<std::byte*>>(room);
    field<std::byte*>* const old = d.extents;
    for (std::uint64_t e = 0; e < held; ++e) more[e] = old[e].load();
    pool_memory::deallocate(old);
    d.extents = more;
    d.extent_room = room;
  }
  field<std::byte*>* const extents = d.extents;
  for (std::uint64_t e = held; e < wanted; ++e)
    extents[e] = static_cast<std::byte*>(pool_memory::allocate(extent_bytes(e), 64));
  for (std::uint64_t e = wanted; e < held; ++e) pool_memory::deallocate(extents[e].load());
  if (wanted != held) d.extent_count = wanted;
}

}  // namespace stele::sqlite
