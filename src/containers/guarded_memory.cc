// The errors of content that contradicts itself. See stele/detail/guarded_memory.h.
#include <stele/detail/guarded_memory.h>

namespace stele::detail {

void throw_circle() {
  throw failure({errc::corrupt,
                 "the content is damaged: a chain of links ends in a circle; check the pool, or "
                 "restore it from a copy"});
}
void verify_local(const void* from, std::size_t size) {
  const local_range local = this_local_range;
  const std::uintptr_t inside = reinterpret_cast<std::uintptr_t>(from) - local.begin;
  if (inside < local.size && local.size - inside >= size) return;
  if (!in_transaction())
    throw failure({errc::invalid_argument,
                   "a document is used outside a transaction; use it inside pool::read or "
                   "pool::update"});
  throw_bad_pointer();
}

}  // namespace stele::detail
