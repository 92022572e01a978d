// The order and the end of pending writes.
#include "pending.h"

#include <algorithm>

namespace stele::sqlite {

void pending_writes::begin(std::uint64_t size) noexcept {
  if (open_) return;
  STELE_ASSERT(are_none());  // sqlite.md P4
  open_ = true;
  size_ = stored_limit_ = size;
}

std::span<const pending_writes::written> pending_writes::in_order() noexcept {
  const auto in_use = std::span(blocks_).first(count_);
  if (!std::ranges::is_sorted(in_use, {}, &written::number)) {
    std::ranges::sort(in_use, {}, &written::number);
    number_anew();
  }
  // No block is written twice.
  STELE_ASSERT_WHOLE(std::ranges::adjacent_find(in_use, std::ranges::greater_equal{},
                                                &written::number) == in_use.end());
  return in_use;
}

bool pending_writes::are_below_end() const noexcept {
  const auto is_below = [&](std::uint64_t number) { return number < blocks_of(size_); };
  return std::ranges::all_of(std::span(blocks_).first(count_), is_below, &written::number) &&
         std::ranges::all_of(early_, is_below);
}

bool pending_writes::are_found() const noexcept {
  for (std::size_t i = 0; i < count_; ++i)
    if (position(blocks_[i].number) != i) return false;
  return index_.size() == (count_ > searched_blocks ? count_ : 0);
}

// The block at count_ is about to be in use, with this number. Throws std::bad_alloc; then nothing
// has changed.
void pending_writes::add_to_index(std::uint64_t number) {
  STELE_ASSERT(count_ >= searched_blocks && count_ < blocks_.size());
  if (count_ > searched_blocks) {
    index_.emplace(number, count_);
    return;
  }
  std::unordered_map<std::uint64_t, std::size_t> all;
  for (std::size_t i = 0; i < count_; ++i) all.emplace(blocks_[i].number, i);
  all.emplace(number, count_);
  index_ = std::move(all);
}

// Rebuilds the index after blocks have moved. Allocates nothing: an index that lacks a block would
// hide its writes.
void pending_writes::number_anew() noexcept {
  if (count_ <= searched_blocks) {
    index_.clear();
    return;
  }
  STELE_ASSERT(index_.size() == count_);
  for (std::size_t i = 0; i < count_; ++i) index_.find(blocks_[i].number)->second = i;
  STELE_ASSERT_WHOLE(are_found());
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
  STELE_ASSERT(first >= blocks_of(stored_limit_));  // sqlite.md E2: nobody else reads them
  std::unordered_set<std::uint64_t> leaving;
  for (const written& w : std::span(blocks_).first(count_))
    if (w.number >= first) leaving.insert(w.number);
  early_.reserve(early_.size() + leaving.size());
  early_.merge(leaving);
  drop_from(first);
  // sqlite.md E3
  STELE_ASSERT_WHOLE(std::ranges::all_of(std::span(blocks_).first(count_),
                                         [&](const written& w) { return w.number < first; }));
}

void pending_writes::clear() noexcept {
  open_ = false;
  if (!index_.empty()) index_ = {};
  if (!early_.empty()) early_ = {};
  count_ = 0;
  if (blocks_.size() > kept_blocks) blocks_.resize(kept_blocks);
  STELE_ASSERT(are_none());
}

}  // namespace stele::sqlite
