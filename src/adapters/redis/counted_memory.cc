// Blocks of two sizes, so that few are held of a large pool and a small change moves few.
#include "counted_memory.h"

#include <base/assert.h>

#include "module_api.h"

namespace stele::redis {

bool counted_memory::grow_by(std::vector<void*>& blocks, std::size_t size) {
  void* const block = api::TryAlloc(size);
  if (block == nullptr) return false;
  blocks.push_back(block);
  held_ += size;
  return true;
}

void counted_memory::shrink_by(std::vector<void*>& blocks, std::size_t size) {
  STELE_ASSERT(!blocks.empty() && held_ >= size);
  api::Free(blocks.back());
  blocks.pop_back();
  held_ -= size;
}

void counted_memory::set(std::size_t bytes) {
  STELE_ASSERT(held_ == large_.size() * large + small_.size() * small);
  bytes_ = bytes;
  STELE_ASSERT(is_on_ || held_ == 0);
  if (!is_on_) return;
  while (held_ > bytes_) {
    if (!large_.empty() && (small_.empty() || held_ - bytes_ >= large))
      shrink_by(large_, large);  // the rest of it comes back in small ones
    else
      shrink_by(small_, small);
  }
  STELE_ASSERT(held_ <= bytes_);
  // An allocator with its notes in front of a block touches a page of each, so small ones are few.
  if (small_.size() * small >= 2 * large)
    while (!small_.empty()) shrink_by(small_, small);
  while (held_ + small <= bytes_) {
    const bool is_large = bytes_ - held_ >= large;
    if (!grow_by(is_large ? large_ : small_, is_large ? large : small)) return;
  }
  STELE_ASSERT(held_ <= bytes_ && bytes_ - held_ < small);
}

void counted_memory::turn(bool on) {
  is_on_ = true;
  if (!on) set(0);
  STELE_ASSERT(on || (held_ == 0 && large_.empty() && small_.empty()));
  is_on_ = on;
}

}  // namespace stele::redis
