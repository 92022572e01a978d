// Home's extents and their stamps.
#include "extents.h"

#include <cstdlib>
#include <new>

namespace stele::sqlite {

home_extents::home_extents()
    : by_number_(static_cast<std::atomic<extent*>*>(
                     std::calloc(most_extents, sizeof(std::atomic<extent*>))),
                 [](std::atomic<extent*>* e) { std::free(static_cast<void*>(e)); }) {
  if (by_number_ == nullptr) throw std::bad_alloc();
}

void home_extents::note(const stored_database& stored) {
  for (std::uint64_t n = known_.size(); n < stored.extent_count; ++n) {
    auto e = std::make_unique<extent>();
    e->bytes = stored.extents.load()[n].load();  // verified when the pool was opened
    e->stamps = std::make_unique<std::atomic<std::uint64_t>[]>(extent_bytes(n) / block_size);
    STELE_ASSERT_ALWAYS(n < most_extents && e->bytes != nullptr);
    known_.push_back(std::move(e));
    by_number_[n].store(known_.back().get(), std::memory_order_release);
  }
}

void home_extents::keep_first(std::uint64_t count) noexcept {
  STELE_ASSERT(count <= known_.size());
  for (; known_.size() > count; known_.pop_back())
    by_number_[known_.size() - 1].store(nullptr, std::memory_order_release);
}

}  // namespace stele::sqlite
