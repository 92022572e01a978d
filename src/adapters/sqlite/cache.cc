// The blocks that commits have changed, and those that caches have.
#include "cache.h"

#include <base/mutant.h>

#include <algorithm>

namespace stele::sqlite {

// A reader that finds begun_ within the ring's length has read no entry that was overwritten.
void recent_changes::add(std::span<const std::uint64_t> blocks) noexcept {
  constexpr std::array nothing{no_block};
  if (blocks.size() >= remembered) return add_all();
  if (blocks.empty()) blocks = nothing;
  const position first = end_.load(std::memory_order_relaxed);
  // Earlier additions are complete.
  STELE_ASSERT(begun_.load(std::memory_order_relaxed) == first);
  STELE_ASSERT_WHOLE(blocks.size() == 1 ||
                     std::ranges::find(blocks, no_block) == blocks.end());  // V1
  begun_.store(first + blocks.size(), std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  for (std::size_t i = 0; i < blocks.size(); ++i)
    blocks_[(first + i) % remembered].store(blocks[i], std::memory_order_relaxed);
  end_.store(first + blocks.size(), std::memory_order_release);
}

void recent_changes::add_all() noexcept {
  const position next = end_.load(std::memory_order_relaxed) + remembered + 1;
  begun_.store(next, std::memory_order_relaxed);
  end_.store(next, std::memory_order_release);
}

void cached_blocks::answer(const recent_changes& changes, recent_changes::position at,
                           std::span<std::byte, version_bytes::size> to) noexcept {
  STELE_ASSERT(is_used_);  // sqlite.md V3: in a read transaction
  bool is_right = right_at_ != unknown;
  if (is_right && !planted(base::mutant::sqlite_cache_kept))
    is_right = tells_all_
                   ? right_at_ == at
                   : !changes.changed(right_at_, at, [this](std::uint64_t n) { return has(n); });
  // sqlite.md V4: never beyond the end of a version that this connection has seen
  STELE_ASSERT(base::holds(right_at_ == unknown || right_at_ <= at));
  if (!is_right) words_.fill(0);
  right_at_ = planted(base::mutant::sqlite_cache_ahead) ? changes.end() : at;
  version_.answer(is_right, to);
}

}  // namespace stele::sqlite
