// The order and the end of pending writes.
#include "pending.h"

#include <algorithm>

namespace stele::sqlite {

void pending_writes::begin(std::uint64_t size) noexcept {
  if (open_) return;
  open_ = true;
  size_ = stored_limit_ = size;
}

std::span<const pending_writes::written> pending_writes::in_order() {
  const auto in_use = std::span(blocks_).first(count_);
  if (!std::ranges::is_sorted(in_use, {}, &written::number)) {
    std::ranges::sort(in_use, {}, &written::number);
    for (std::size_t i = 0; i < count_; ++i) index_.find(in_use[i].number)->second = i;
  }
  return in_use;
}

void pending_writes::drop_from(std::uint64_t number) noexcept {
  for (std::size_t i = 0; i < count_;) {
    if (blocks_[i].number < number) {
      ++i;
      continue;
    }
    index_.erase(blocks_[i].number);
    std::swap(blocks_[i], blocks_[--count_]);
    if (i < count_) index_.find(blocks_[i].number)->second = i;
  }
}

void pending_writes::clear() noexcept {
  open_ = false;
  index_.clear();
  count_ = 0;
  if (blocks_.size() > kept_blocks) blocks_.resize(kept_blocks);
}

}  // namespace stele::sqlite
