// The blocks of a list.
#include "stored_list.h"

#include <stele/memory.h>
#include "stored_check.h"

#include <algorithm>
#include <memory>

namespace stele::redis {

// Positions.

auto stored_list::find(std::uint64_t position) const -> place {
  const std::uint64_t size = size_;
  STELE_ASSERT(position < size && first_ != nullptr && last_ != nullptr);
  if (position < size / 2) {
    block* b = first_;
    for (std::size_t count = 0; position >= (count = b->load().count()); b = b->next) {
      STELE_ASSERT(count != 0 && b->next != nullptr);
      position -= count;
    }
    return {b, position};
  }
  block* b = last_;
  std::uint64_t behind = size - position;  // texts from the position on
  for (;; b = b->previous) {
    const std::size_t count = b->load().count();
    STELE_ASSERT(count != 0 && behind != 0);
    if (behind <= count) return {b, count - behind};
    STELE_ASSERT(b->previous != nullptr);
    behind -= count;
  }
}

auto stored_list::checked(std::uint64_t position) const -> place {
  if (position < size_) return find(position);
  throw failure({errc::invalid_argument, "list: there is no position " + std::to_string(position) +
                                             " among " + std::to_string(size_) + " texts"});
}

std::string stored_list::at(std::uint64_t position) const {
  const place p = checked(position);
  return p.at->slot(p.at->load().begin + p.index)->str();
}

void stored_list::set(std::uint64_t position, std::string_view text) {
  const place p = checked(position);
  *p.at->slot(p.at->load().begin + p.index) = text;
}

// Blocks.

bool stored_list::are_neighbours(const block* left, const block* right) const {
  return (left == nullptr ? first_ : left->next) == right &&
         (right == nullptr ? last_ : right->previous) == left;
}

bool stored_list::is_whole() const {
  constexpr std::uint64_t few = 500;
  if (size_ > few) return true;
  std::uint64_t count = 0;
  const block* previous = nullptr;
  for (const block* b = first_; b != nullptr && count <= size_; b = b->next) {
    if (b->previous != previous || !b->load().fits() || b->load().count() == 0) return false;
    count += b->load().count();
    previous = b;
  }
  return count == size_ && last_ == previous;
}

void stored_list::link(block* previous, block* next) {
  STELE_ASSERT(previous != next || previous == nullptr);
  (previous == nullptr ? first_ : previous->next) = next;
  (next == nullptr ? last_ : next->previous) = previous;
}

// An empty block between these, in use from its slot 0 on.
auto stored_list::make_block(block* previous, block* next) -> block* {
  STELE_ASSERT(are_neighbours(previous, next));
  std::size_t slots = fewest_slots;
  while (slots < most_slots && slots <= size_) slots = 2 * slots + 1;
  STELE_ASSERT(is_block_size(slots) && (slots > size_ || slots == most_slots));
  auto* const b =
      static_cast<block*>(pool_memory::allocate(sizeof(block) + slots * sizeof(stele::string), 16));
  b->store({0, 0, slots});
  link(previous, b);
  link(b, next);
  STELE_ASSERT(are_neighbours(previous, b) && are_neighbours(b, next));
  return b;
}

// Its texts have been moved or destroyed.
void stored_list::free_block(block* b) {
  STELE_ASSERT(are_neighbours(b->previous, b) && are_neighbours(b, b->next));
  link(b->previous, b->next);
  pool_memory::deallocate(b);
}

void stored_list::free_blocks() {
  STELE_ASSERT((first_ == nullptr) == (size_ == 0) && (last_ == nullptr) == (size_ == 0));
  STELE_ASSERT_WHOLE(is_whole());
  for (block* b = first_; b != nullptr;) {
    const extent e = b->load();
    STELE_ASSERT(e.fits());
    std::destroy(b->slot(e.begin), b->slot(e.end));
    block* const next = b->next;
    pool_memory::deallocate(b);
    b = next;
  }
}

void stored_list::clear() {
  free_blocks();
  first_ = nullptr;
  last_ = nullptr;
  size_ = 0;
}

// Moves texts between slots, in an order that suits ranges that overlap.
void stored_list::move(block* from, std::size_t first, std::size_t count, block* to,
                       std::size_t at) {
  STELE_ASSERT(first + count <= from->load().slots && at + count <= to->load().slots);
  const bool upwards = from == to && at > first;
  for (std::size_t n = 0; n < count; ++n) {
    const std::size_t i = upwards ? count - 1 - n : n;
    from->slot(first + i)->relocate(to->slot(at + i));
  }
}

// Moves all texts of a block.
void stored_list::slide(block* b, std::size_t begin) {
  const extent e = b->load();
  STELE_ASSERT(begin + e.count() <= e.slots);
  if (begin == e.begin) return;
  move(b, e.begin, e.count(), b, begin);
  b->store({begin, begin + e.count(), e.slots});
}

// A slot for a new text. The block is not full.
stele::string* stored_list::open_gap(block* b, std::size_t index) {
  extent e = b->load();
  STELE_ASSERT(e.count() < e.slots && index <= e.count());
  const bool down = e.end == e.slots || (e.begin != 0 && index < e.count() / 2);
  if (down) {
    STELE_ASSERT(e.begin != 0);
    move(b, e.begin, index, b, e.begin - 1);
    --e.begin;
  } else {
    move(b, e.begin + index, e.count() - index, b, e.begin + index + 1);
    ++e.end;
  }
  b->store(e);
  return b->slot(e.begin + index);
}

// Insertion.

void stored_list::push_front(std::string_view text) {
  block* b = first_;
  if (b == nullptr || b->load().begin == 0) {
    b = make_block(nullptr, b);
    const std::size_t slots = b->load().slots;
    b->store({slots, slots, slots});
  }
  extent e = b->load();
  STELE_ASSERT(b == first_ && e.begin != 0);
  --e.begin;
  ::new (static_cast<void*>(b->slot(e.begin))) stele::string(text);
  b->store(e);
  size_ += 1;
  STELE_ASSERT_WHOLE(is_whole());
}

void stored_list::push_back(std::string_view text) {
  block* b = last_;
  if (b == nullptr || b->load().end == b->load().slots) b = make_block(b, nullptr);
  extent e = b->load();
  STELE_ASSERT(b == last_ && e.end < e.slots);
  ::new (static_cast<void*>(b->slot(e.end))) stele::string(text);
  ++e.end;
  b->store(e);
  size_ += 1;
  STELE_ASSERT_WHOLE(is_whole());
}

void stored_list::insert(std::uint64_t before, std::string_view text) {
  if (before == 0) return push_front(text);
  if (before == size_) return push_back(text);
  place p = checked(before);
  const extent e = p.at->load();
  if (e.count() == e.slots) p = make_room(p);
  STELE_ASSERT(p.index <= p.at->load().count() && p.at->load().count() < p.at->load().slots);
  ::new (static_cast<void*>(open_gap(p.at, p.index))) stele::string(text);
  size_ += 1;
  STELE_ASSERT_WHOLE(is_whole());
}

// Splits a full block, or puts a larger one in its place. Returns where the place is then.
auto stored_list::make_room(place p) -> place {
  const extent e = p.at->load();
  STELE_ASSERT(e.count() == e.slots && p.index < e.slots);
  block* const b = make_block(p.at, p.at->next);
  const std::size_t slots = b->load().slots;
  STELE_ASSERT(slots > e.slots || e.slots == most_slots);
  const std::size_t kept = slots > e.slots ? 0 : e.slots / 2, moved = e.slots - kept;
  STELE_ASSERT(moved < slots);
  const std::size_t begin = (slots - moved) / 2;
  move(p.at, e.begin + kept, moved, b, begin);
  b->store({begin, begin + moved, slots});
  if (kept == 0)
    free_block(p.at);
  else
    p.at->store({e.begin, e.begin + kept, e.slots});
  return kept == 0 || p.index > kept ? place{b, p.index - kept} : p;
}

// Erasure.

// Returns whether the block still has texts; else it is freed.
bool stored_list::erase_in(block* b, std::size_t index, std::size_t count) {
  extent e = b->load();
  STELE_ASSERT(count != 0 && index + count <= e.count());
  std::destroy_n(b->slot(e.begin + index), count);
  if (count == e.count()) {
    free_block(b);
    return false;
  }
  const std::size_t behind = e.count() - index - count;
  if (index < behind) {
    move(b, e.begin, index, b, e.begin + count);
    e.begin += count;
  } else {
    move(b, e.begin + index + count, behind, b, e.begin + index);
    e.end -= count;
  }
  b->store(e);
  return true;
}

// Two neighbours become one block if their texts fill three quarters of the larger at most.
bool stored_list::join(block* left, block* right) {
  if (left == nullptr || right == nullptr) return false;
  STELE_ASSERT(are_neighbours(left, right));
  const extent l = left->load(), r = right->load();
  const std::size_t slots = std::max(l.slots, r.slots), count = l.count() + r.count();
  if (count > slots * 3 / 4) return false;
  const std::size_t begin = (slots - count) / 2;
  if (l.slots > r.slots || (l.slots == r.slots && l.count() >= r.count())) {
    if (l.end + r.count() > slots) slide(left, begin);
    extent all = left->load();
    move(right, r.begin, r.count(), left, all.end);
    all.end += r.count();
    left->store(all);
    STELE_ASSERT(left->load().count() == count);
    free_block(right);
  } else {
    if (r.begin < l.count()) slide(right, begin + l.count());
    extent all = right->load();
    all.begin -= l.count();
    move(left, l.begin, l.count(), right, all.begin);
    right->store(all);
    STELE_ASSERT(right->load().count() == count);
    free_block(left);
  }
  return true;
}

// At an end of the list blocks join nothing: what is popped there soon empties them.
void stored_list::erase(std::uint64_t first, std::uint64_t count) {
  if (count == 0) return;
  if (first < size_ && count > size_ - first) first = size_;  // the first that is not there
  auto [b, index] = checked(first);
  const bool inside = first != 0 && first + count != size_;
  block* kept = nullptr;
  for (std::uint64_t left = count; left != 0; index = 0) {
    STELE_ASSERT(b != nullptr);  // checked() has found the last text
    block* const next = b->next;
    const std::size_t here = std::min(left, b->load().count() - index);
    if (erase_in(b, index, here)) kept = b;
    left -= here;
    b = next;
  }
  size_ -= count;
  if (inside && kept != nullptr && !join(kept, kept->next)) join(kept->previous, kept);
  STELE_ASSERT_WHOLE(is_whole());
}

std::uint64_t stored_list::erase_equal(std::string_view text, std::uint64_t most, bool backwards) {
  std::uint64_t erased = 0;
  for (block *b = backwards ? last_ : first_, *next = nullptr; b != nullptr && erased < most;
       b = next) {
    next = backwards ? b->previous : b->next;
    if (!erase_equal_in(b, text, most, backwards, erased)) continue;
    // With the neighbour that has been searched.
    backwards ? join(b, b->next) : join(b->previous, b);
  }
  STELE_ASSERT(erased <= most && erased <= size_);
  size_ -= erased;
  STELE_ASSERT_WHOLE(is_whole());
  return erased;
}

// Returns whether the block still has texts, but fewer.
bool stored_list::erase_equal_in(block* b, std::string_view text, std::uint64_t most,
                                 bool backwards, std::uint64_t& erased) {
  const std::uint64_t before = erased;
  std::size_t count = b->load().count();
  for (std::size_t seen = 0; seen < count && erased < most;) {
    const std::size_t index = backwards ? count - 1 - seen : seen;
    if (!b->slot(b->load().begin + index)->equal(text)) {
      ++seen;
      continue;
    }
    ++erased;
    --count;
    if (!erase_in(b, index, 1)) return false;
  }
  return erased != before;
}

// Inspection.

result<> stored_list::check_block(const block* b, const block* previous) const {
  detail::validate_range(b, sizeof(block), alignof(block));
  const extent e = b->load();
  if (!is_block_size(e.slots) || e.begin >= e.end || e.end > e.slots)
    return detail::corrupt_error("list: a block has no texts");
  detail::claim_block(b, sizeof(block) + e.slots * sizeof(stele::string));
  if (b->previous != previous) return detail::corrupt_error("list: a block is not in the chain");
  for (std::size_t i = e.begin; i < e.end; ++i)
    if (auto sound = check_text(*b->slot(i)); !sound) return sound;
  return {};
}

result<> stored_list::check() const {
  return detail::check_bounded([&] { return check_in_walk(); });
}

result<> stored_list::check_in_walk() const {
  std::uint64_t count = 0;
  const block* previous = nullptr;
  for (const block* b = first_; b != nullptr && count <= size_; b = b->next) {
    if (auto sound = check_block(b, previous); !sound) return sound;
    count += b->load().count();
    previous = b;
  }
  if (count != size_ || last_ != previous)
    return detail::corrupt_error("list: its blocks do not have as many texts as it says");
  return {};
}

}  // namespace stele::redis
