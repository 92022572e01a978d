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
    build_index();
  }
  return in_use;
}

void pending_writes::build_index() {
  index_.clear();
  for (std::size_t i = searched_blocks; i < count_; ++i) index_.emplace(blocks_[i].number, i);
}

void pending_writes::drop_from(std::uint64_t number) {
  const auto in_use = std::span(blocks_).first(count_);
  const auto dropped =
      std::ranges::partition(in_use, [&](const written& w) { return w.number < number; });
  if (dropped.empty()) return;
  count_ -= dropped.size();
  build_index();
}

void pending_writes::leave_from(std::uint64_t first) {
  early_.reserve(early_.size() + count_);
  for (const written& w : std::span(blocks_).first(count_))
    if (w.number >= first) early_.insert(w.number);
  drop_from(first);
}

void pending_writes::clear() noexcept {
  open_ = false;
  if (!index_.empty()) index_ = {};
  if (!early_.empty()) early_ = {};
  count_ = 0;
  if (blocks_.size() > kept_blocks) blocks_.resize(kept_blocks);
}

}  // namespace stele::sqlite
