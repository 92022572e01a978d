// How snapshots of pages come and go.
#include <base/assert.h>
#include <base/mutant.h>
#include <tx/session/page_snapshots.h>

#include <algorithm>

namespace stele::detail {

bool page_snapshots::has_place() const noexcept {
  return std::ranges::find(places_, nullptr) != places_.end();
}

bool page_snapshots::counts_places() const noexcept {
  const auto free = std::ranges::count(places_, nullptr);
  return base::holds(places_.size() - static_cast<std::size_t>(free) ==
                     count_.load(std::memory_order_relaxed));
}

void page_snapshots::add(page_snapshot& s) noexcept {
  STELE_ASSERT(std::ranges::find(places_, &s) == places_.end());
  page_snapshot** const place = std::ranges::find(places_, nullptr);
  STELE_ASSERT(place != places_.end());
  *place = &s;
  count_.fetch_add(1, std::memory_order_release);
  STELE_ASSERT_WHOLE(counts_places());
}

void page_snapshots::remove(page_snapshot& s) noexcept {
  page_snapshot** const place = std::ranges::find(places_, &s);
  STELE_ASSERT(place != places_.end());
  *place = nullptr;
  count_.fetch_sub(1, std::memory_order_release);
  STELE_ASSERT_WHOLE(counts_places());
}

bool page_snapshots::reserve_moment() noexcept {
  if (moments_.fetch_add(1) < max_moments) return true;
  return_moment();
  return false;
}

void page_snapshots::return_moment() noexcept {
  [[maybe_unused]] const unsigned before = moments_.fetch_sub(1);
  STELE_ASSERT(before != 0);
}

}  // namespace stele::detail
