// What a field access executes inside a transaction: the fast paths of its load and store. Reached
// from stele/detail/access.h, which sends only the lines here whose filter bit is set, or all of
// them (stm).
//
// No virtual call, and no call at all but to the slow path of each (transaction/slow_paths.cc). The
// counts are instructions from the call in stele/detail/access.h to its return: gcc 12 -O2, x86-64,
// callgrind's inclusive cost of 200 000 accesses divided by their number.
#pragma once

#include <base/assert.h>
#include <base/mutant.h>
#include <tx/transaction.h>

#include <algorithm>

namespace stele::detail {

inline std::uint64_t line_of(std::uint64_t offset) noexcept {
  return offset & ~std::uint64_t{line_size - 1};
}

// Loads the line's lock before and after what it reads.
template <class Read>
inline bool snapshot::try_read(std::uint64_t offset, Read&& read) {
  STELE_ASSERT(in_force_ && all_locks_ != nullptr);
  line_lock& lock = lock_of(offset);
  const std::uint64_t seen = lock.load(std::memory_order_acquire);
  read();
  const bool again = lock.load(std::memory_order_acquire) != seen &&
                     !planted_in_schedule_explorer(base::mutant::stm_one_look);
  if ((seen & 1) != 0 || again || seen >> 1 > time_) [[unlikely]]
    return false;
  if (!records_) {
    has_unrecorded_reads_ = true;
    return true;
  }
  if (reads_.size() == reads_.capacity()) [[unlikely]]
    return false;
  reads_.push_back({&lock, seen});
  return true;
}

inline bool snapshot::try_acquire(std::uint64_t line) noexcept {
  STELE_ASSERT(in_force_ && line % line_size == 0);
  line_lock& lock = lock_of(line);
  std::uint64_t seen = lock.load(std::memory_order_acquire);
  if ((seen & 1) != 0 || seen >> 1 > time_ || locks_.size() == locks_.capacity()) [[unlikely]]
    return false;
  locks_.push_back({&lock, seen});  // before the lock is held, as in acquire()
  if (lock.compare_exchange_strong(seen, own_lock_, std::memory_order_acq_rel)) [[likely]]
    return true;
  locks_.pop_back();
  return false;
}

template <class Home>
inline std::uint64_t transaction::load_from(Home& home, std::uint64_t offset) {
  if (!snapshot_.in_force()) return home.word(offset);
  std::uint64_t loaded;
  if (snapshot_.try_read(offset, [&] { loaded = home.word(offset); })) [[likely]]
    return loaded;
  return load_word_slow(offset);
}

// stm: 44 in a reader, 50 in an update; 65 for a word that the transaction has stored. Policies
// without locks come here only if the line's filter bit is set.
inline std::uint64_t transaction::load_word(std::uint64_t offset) {
  STELE_ASSERT(offset % 8 == 0);
  if (filter_ != 0 && (filter_ & filter_bit(this_access.pool_base + offset)) != 0)
    return load_filtered_word(offset);
  return with_home(home_, [&](auto& home) { return load_from(home, offset); });
}

// 95 for the 64 bytes of a line, in a reader of stm.
// Loads each line's lock before and after its bytes. Copies 16 bytes at a time, since the caller
// loads the copy in such pieces: a wide load waits for narrower stores (decision 7).
inline bool snapshot::try_copy(const std::byte* home, std::uint64_t offset, std::byte* to,
                               std::size_t size) noexcept {
  using pair [[gnu::vector_size(16), gnu::may_alias]] = std::uint64_t;
  if (!fast_ || (offset | size) % sizeof(pair) != 0) return false;
  STELE_ASSERT(in_force_ && !records_);
  has_unrecorded_reads_ = true;
  const std::uint64_t time = time_;
  for (const std::uint64_t end = offset + size; offset != end;) {
    const std::uint64_t line_end = std::min(end, (offset | (line_size - 1)) + 1);
    const line_lock& lock = lock_of(offset);
    const std::uint64_t seen = lock.load(std::memory_order_acquire);
    for (; offset != line_end; offset += sizeof(pair), to += sizeof(pair)) {
      const pair two = *reinterpret_cast<const volatile pair*>(home + offset);
      std::memcpy(to, &two, sizeof two);
    }
    std::atomic_thread_fence(std::memory_order_acquire);  // bytes before the second lock load
    if ((seen & 1) != 0 || seen >> 1 > time || lock.load(std::memory_order_relaxed) != seen)
        [[unlikely]]
      return false;
  }
  return true;
}
inline bool transaction::try_fast_read(std::uint64_t offset, std::byte* to,
                                       std::size_t size) noexcept {
  return snapshot_.try_copy(home_.at(), offset, to, size);
}

[[gnu::always_inline]] inline written_line& transaction::line_for_store(std::uint64_t line) {
  STELE_ASSERT(line % line_size == 0 && !only_reads() && store_target_ != store_target::home);
  if (!writes_.empty() && writes_.last().offset == line) return writes_.last();
  const std::uint64_t bit = filter_bit(this_access.pool_base + line);
  if ((filter_ & bit) != 0)
    if (written_line* own = writes_.find(line)) return *own;
  if (snapshot_.in_force()) snapshot_.acquire(line);
  filter_ |= bit;
  this_access.filter |= bit;
  return writes_.add(line);
}

// 37 if the line is the one stored last. The first store to a line: 74 for a single writer, 97 with
// the lock of stm. No call.
inline void transaction::store_word(std::uint64_t offset, std::uint64_t bits) {
  const std::uint64_t line_offset = line_of(offset), in_line = offset - line_offset;
  if (store_target_ != store_target::write_set) [[unlikely]]
    return store_slow(offset, bits, 0xFF);
  if (writes_.empty() || writes_.last().offset != line_offset) {
    const std::uint64_t bit = filter_bit(this_access.pool_base + line_offset);
    if ((filter_ & bit) != 0 || writes_.full() ||
        (snapshot_.in_force() && !snapshot_.try_acquire(line_offset)))
      return store_word_slow(offset, bits);
    filter_ |= bit;
    this_access.filter |= bit;
    return writes_.add_word(line_offset, in_line / 8, bits);
  }
  written_line& line = writes_.last();
  line.words[in_line / 8] = bits;
  line.mask |= std::uint64_t{0xFF} << in_line;
}

// 98: a part of a word, of the line stored last.
inline void transaction::store_bits(std::uint64_t offset, std::uint64_t bits, std::uint8_t mask) {
  if (store_target_ != store_target::write_set) [[unlikely]]
    return store_slow(offset, bits, mask);
  STELE_ASSERT(offset % 8 == 0 && mask != 0);
  const unsigned word = static_cast<unsigned>(offset - line_of(offset)) / 8;
  written_line& line = line_for_store(line_of(offset));
  const std::uint64_t counting = expand_mask(mask);
  line.words[word] = (line.words[word] & ~counting) | (bits & counting);
  line.mask |= std::uint64_t{mask} << (8 * word);
}

}  // namespace stele::detail
