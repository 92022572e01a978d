// The order and the end of pending writes.
#include "pending.h"

#include <algorithm>

namespace stele::sqlite {

void pending_writes::begin(std::uint64_t size) noexcept {
  if (open_) return;
  open_ = true;
  size_ = stored_limit_ = size;
}

std::span<const pending_writes::written> pending_writes::in_order() noexcept {
  const auto in_use = std::span(blocks_).first(count_);
  if (!std::ranges::is_sorted(in_use, {}, &written::number)) {
    std::ranges::sort(in_use, {}, &written::number);
    number_anew();
  }
  return in_use;
}

// The block at count_ is about to be in use, with this number. Throws std::bad_alloc; then nothing
// has changed.
void pending_writes::add_to_index(std::uint64_t number) {
  if (count_ > searched_blocks) {
    index_.emplace(number, count_);
    return;
  }
  std::unordered_map<std::uint64_t, std::size_t> all;
  for (std::size_t i = 0; i < count_; ++i) all.emplace(blocks_[i].number, i);
  all.emplace(number, count_);
  index_ = std::move(all);
}

// The blocks have other places. Takes no memory: an index that lacks a block would hide what was
// written.
void pending_writes::number_anew() noexcept {
  if (count_ <= searched_blocks) {
    index_.clear();
    return;
  }
  for (std::size_t i = 0; i < count_; ++i) index_.find(blocks_[i].number)->second = i;
}

void pending_writes::drop_from(std::uint64_t number) noexcept {
  const auto in_use = std::span(blocks_).first(count_);
  const auto dropped =
      std::ranges::partition(in_use, [&](const written& w) { return w.number < number; });
  if (dropped.empty()) return;
  for (const written& w : dropped) index_.erase(w.number);
  count_ -= dropped.size();
  number_anew();
}

void pending_writes::leave_from(std::uint64_t first) {
  std::unordered_set<std::uint64_t> leaving;
  for (const written& w : std::span(blocks_).first(count_))
    if (w.number >= first) leaving.insert(w.number);
  early_.reserve(early_.size() + leaving.size());
  early_.merge(leaving);
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
