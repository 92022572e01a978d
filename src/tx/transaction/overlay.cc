// Deferring a commit: its values and locks move to the overlay.
#include <base/assert.h>
#include <tx/transaction/overlay.h>

namespace stele::detail {

void overlay::defer(std::uint64_t txid, const write_set& writes, std::uint64_t filter,
                    snapshot& locked) noexcept {
  STELE_ASSERT(txid > txid_ && !writes.empty());
  for (const written_line& line : writes.lines()) {
    written_line* before = lines_.find(line.offset);
    STELE_ASSERT(before != nullptr || !lines_.full());  // noexcept: reserve() has made room
    if (before == nullptr) before = &lines_.add(line.offset);
    for (unsigned w = next_word(line.mask, 0); w < 8; w = next_word(line.mask, w + 1)) {
      const std::uint64_t bits = expand_mask(line.word_mask(w));
      before->words[w] = (before->words[w] & ~bits) | (line.words[w] & bits);
    }
    before->mask |= line.mask;
  }
  STELE_ASSERT(locks_.capacity() - locks_.size() >= locked.held_locks());
  locked.hand_over_locks(locks_);
  STELE_ASSERT(filter != 0);
  filter_ |= filter;
  txid_ = txid;
  if (!exists()) count_.fetch_add(1, std::memory_order_relaxed);
  exists_.store(true, std::memory_order_release);
  stored_.store(false, std::memory_order_relaxed);
}

}  // namespace stele::detail
