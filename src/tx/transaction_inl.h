// The loads and stores of a running transaction: what every field access of an update comes to.
#pragma once

#include <media/cpu.h>
#include <tx/runtime.h>

namespace stele::detail {

inline constexpr unsigned patience = 128;  // looks at a locked line before giving up on it

inline std::uint64_t transaction::blend(const written_line& line, unsigned word, std::uint64_t below) const noexcept {
  const std::uint8_t mask = line.word_mask(word);
  if (mask == 0) return below;
  const std::uint64_t bits = spread(mask);
  return (value(line, word) & bits) | (below & ~bits);
}

inline std::uint64_t transaction::home_word(std::uint64_t offset) const noexcept {
  return __atomic_load_n(reinterpret_cast<const std::uint64_t*>(home_ + offset), __ATOMIC_ACQUIRE);
}

inline std::uint64_t transaction::load_word(std::uint64_t offset) {
  const std::uint64_t line = offset & ~std::uint64_t{line_size - 1};
  const unsigned word = static_cast<unsigned>(offset - line) / 8;
  if (filter_ != 0 && (filter_ & filter_bit(this_access.home + line)) != 0) {
    if (const written_line* own = writes_.find(line); own != nullptr && own->word_mask(word) != 0)
      return own->word_mask(word) == 0xFF ? value(*own, word) : blend(*own, word, over_home(offset, home_word(offset)));
    if (!pending_.empty()) [[unlikely]]
      if (const written_line* before = pending_.find(line); before != nullptr) return over_home(offset, home_word(offset));
  }
  return stm_ ? stm_load(offset) : home_word(offset);
}

// A word as ordered commits that are not home yet have left it.
inline std::uint64_t transaction::over_home(std::uint64_t offset, std::uint64_t home) noexcept {
  if (pending_.empty()) [[likely]]
    return home;
  const std::uint64_t line = offset & ~std::uint64_t{line_size - 1};
  const written_line* before = pending_.find(line);
  if (before == nullptr) return home;
  const unsigned word = static_cast<unsigned>(offset - line) / 8;
  const std::uint64_t bits = spread(before->word_mask(word));
  return (before->words[word] & bits) | (home & ~bits);
}

// Runs `read`, again if need be, until what it read of a line is of the snapshot.
template <class Read>
inline void transaction::read_consistently(std::uint64_t offset, Read&& read) {
  line_lock& lock = lock_of(offset);
  for (unsigned tries = 0; tries < patience; ++tries) {
    const std::uint64_t seen = lock.load(std::memory_order_acquire);
    if ((seen & 1) != 0) {
      if (seen >> 1 == log_) return read();
      media::cpu::relax();
      continue;
    }
    read();
    if (lock.load(std::memory_order_acquire) != seen) continue;
    if (seen >> 1 > snapshot_) {
      extend();
      continue;
    }
    if (record_reads_) reads_.push_back({&lock, seen});
    any_read_ = true;
    return;
  }
  conflict();
}

inline std::uint64_t transaction::stm_load(std::uint64_t offset) {
  std::uint64_t value = 0;
  read_consistently(offset, [&] { value = home_word(offset); });
  return value;
}

// Bytes of one line, in one look at its lock.
inline void transaction::load_part(std::uint64_t offset, std::byte* to, std::size_t size) {
  const std::uint64_t line = offset & ~std::uint64_t{line_size - 1};
  const std::size_t skip = offset - line;
  const written_line* own = (filter_ & filter_bit(this_access.home + line)) != 0 ? writes_.find(line) : nullptr;
  const std::uint64_t wanted = byte_range(skip, size);
  if (own == nullptr || (own->mask & wanted) != wanted) stm_ ? stm_load_part(line, skip, to, size) : copy_home(line, skip, to, size);
  if (own == nullptr) return;
  std::uint64_t words[line_size / 8];
  for (std::size_t w = skip / 8; w <= (skip + size - 1) / 8; ++w) words[w] = own->word_mask(static_cast<unsigned>(w)) != 0 ? value(*own, static_cast<unsigned>(w)) : 0;
  const auto* bytes = reinterpret_cast<const std::byte*>(words);
  for (std::uint64_t left = own->mask & wanted; left != 0; left &= left - 1) {
    const auto byte = static_cast<std::size_t>(std::countr_zero(left));
    to[byte - skip] = bytes[byte];
  }
}

inline void transaction::copy_home(std::uint64_t line, std::size_t skip, std::byte* to, std::size_t size) noexcept {
  std::uint64_t words[line_size / 8];
  for (std::size_t w = skip / 8; w <= (skip + size - 1) / 8; ++w) words[w] = over_home(line + 8 * w, home_word(line + 8 * w));
  std::memcpy(to, reinterpret_cast<const std::byte*>(words) + skip, size);
}

inline void transaction::stm_load_part(std::uint64_t line, std::size_t skip, std::byte* to, std::size_t size) {
  read_consistently(line, [&] { copy_home(line, skip, to, size); });
}

inline void transaction::acquire(std::uint64_t line) {
  line_lock& lock = lock_of(line);
  const std::uint64_t mine = std::uint64_t{log_} << 1 | 1;
  for (unsigned tries = 0; tries < patience; ++tries) {
    std::uint64_t seen = lock.load(std::memory_order_acquire);
    if (seen == mine) return;  // another line with the same lock
    if ((seen & 1) != 0) {
      media::cpu::relax();
    } else if (seen >> 1 > snapshot_) {
      extend();
    } else {
      locks_.push_back({&lock, seen});
      if (lock.compare_exchange_strong(seen, mine, std::memory_order_acq_rel)) return;
      locks_.pop_back();
    }
  }
  conflict();
}

inline written_line& transaction::line_for_store(std::uint64_t line) {
  if (!writes_.empty() && writes_.last().offset == line) return writes_.last();
  const std::uint64_t bit = filter_bit(this_access.home + line);
  if ((filter_ & bit) != 0)
    if (written_line* own = writes_.find(line)) return *own;
  if (stm_) acquire(line);
  filter_ |= bit;
  this_access.filter |= bit;
  return writes_.add(line);
}

inline void transaction::store_word(std::uint64_t offset, std::uint64_t bits) {
  if (!to_write_set_) [[unlikely]]
    return store_otherwise(offset, bits, 0xFF);
  const std::uint64_t line_offset = offset & ~std::uint64_t{line_size - 1};
  written_line& line = line_for_store(line_offset);
  const std::uint64_t in_line = offset - line_offset;
  line.words[in_line / 8] = bits;
  line.mask |= std::uint64_t{0xFF} << in_line;
}

inline void transaction::store_bits(std::uint64_t offset, std::uint64_t bits, std::uint8_t mask) {
  if (!to_write_set_) [[unlikely]]
    return store_otherwise(offset, bits, mask);
  const std::uint64_t line_offset = offset & ~std::uint64_t{line_size - 1};
  const unsigned word = static_cast<unsigned>(offset - line_offset) / 8;
  written_line& line = line_for_store(line_offset);
  const std::uint64_t counting = spread(mask);
  line.words[word] = (line.words[word] & ~counting) | (bits & counting);
  line.mask |= std::uint64_t{mask} << (8 * word);
}

// Bytes of one line; null stands for zeroes.
inline void transaction::store_part(std::uint64_t offset, const std::byte* from, std::size_t size) {
  if (!to_write_set_) [[unlikely]]
    return store_part_otherwise(offset, from, size);
  const std::uint64_t line_offset = offset & ~std::uint64_t{line_size - 1};
  written_line& line = line_for_store(line_offset);
  auto* const to = reinterpret_cast<std::byte*>(line.words.data()) + (offset - line_offset);
  if (from != nullptr)
    std::memcpy(to, from, size);
  else
    std::memset(to, 0, size);
  line.mask |= byte_range(offset - line_offset, size);
}

}  // namespace stele::detail
