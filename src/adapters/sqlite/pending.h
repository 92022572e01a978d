// The writes of a SQLite transaction that is not committed: whole blocks, in memory.
#pragma once

#include <base/assert.h>
#include "stored.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace stele::sqlite {

class pending_writes {
 public:
  using block = std::array<std::byte, block_size>;
  struct written {
    std::uint64_t number;
    std::unique_ptr<block> bytes;
  };

  bool exist() const noexcept { return open_; }
  // The database as it would be after a commit.
  std::uint64_t size() const noexcept { return size_; }
  // From this byte on a block that is not here is zero, whatever home has.
  std::uint64_t stored_limit() const noexcept { return stored_limit_; }
  std::uint64_t bytes() const noexcept { return count_ * block_size; }  // in memory
  // Whether nothing is left, as before the first begin().
  bool are_none() const noexcept {
    return !open_ && count_ == 0 && index_.empty() && early_.empty();
  }
  // Whether the block was stored before the commit: home has it, beyond the end of the database,
  // unless it is here again.
  bool is_early(std::uint64_t number) const noexcept { return early_.contains(number); }
  // Frees the blocks from `first` on, which have been stored before the commit. Throws
  // std::bad_alloc; then nothing has changed.
  void leave_from(std::uint64_t first);
  // In the order of their numbers.
  std::span<const written> in_order() noexcept;
  // Null: it is not written.
  block* find(std::uint64_t number) const noexcept {
    const std::size_t at = position(number);
    return at == count_ ? nullptr : blocks_[at].bytes.get();
  }

  // `size`: bytes of the database. Does nothing if there are writes already.
  void begin(std::uint64_t size) noexcept;
  // `load(number, to)` copies a block's earlier bytes. Throws std::bad_alloc; then the blocks
  // before the one that found no memory are written. set_size throws it too; then nothing has
  // changed.
  template <class Load>
  void write(std::uint64_t at, std::span<const std::byte> from, Load&& load) {
    STELE_ASSERT(open_);
    while (!from.empty()) {
      const std::uint64_t number = at / block_size, begin = at % block_size;
      const std::size_t part = std::min<std::size_t>(from.size(), block_size - begin);
      std::copy_n(from.data(), part, add(number, part == block_size, load).data() + begin);
      at += part;
      from = from.subspan(part);
      size_ = std::max(size_, at);
    }
    STELE_ASSERT(stored_limit_ <= size_);
  }
  template <class Load>
  void set_size(std::uint64_t size, Load&& load) {
    STELE_ASSERT(open_);
    if (size < size_) {
      if (size % block_size != 0) {
        auto& last = add(size / block_size, false, load);
        std::fill(last.begin() + size % block_size, last.end(), std::byte{0});
      }
      const std::uint64_t end = blocks_of(size);
      drop_from(end);
      std::erase_if(early_, [&](std::uint64_t number) { return number >= end; });
      stored_limit_ = std::min(stored_limit_, size);
    }
    size_ = size;
    STELE_ASSERT(stored_limit_ <= size_);
    STELE_ASSERT_WHOLE(are_below_end());
  }
  void clear() noexcept;

 private:
  template <class Load>
  block& add(std::uint64_t number, bool whole, Load&& load) {
    if (const std::size_t at = position(number); at != count_) return *blocks_[at].bytes;
    if (count_ == blocks_.size()) blocks_.push_back({0, std::make_unique_for_overwrite<block>()});
    written& added = blocks_[count_];
    STELE_ASSERT(count_ <= searched_blocks ? index_.empty() : index_.size() == count_);
    if (!whole) {
      if (number * block_size < stored_limit_ || is_early(number))
        load(number, *added.bytes);
      else
        added.bytes->fill(std::byte{0});
    }
    added.number = number;
    if (count_ >= searched_blocks) add_to_index(number);
    ++count_;
    STELE_ASSERT(position(number) == count_ - 1);
    return *added.bytes;
  }
  // The index in blocks_; count_ if the block is not there.
  std::size_t position(std::uint64_t number) const noexcept {
    if (count_ > searched_blocks) {
      const auto at = index_.find(number);
      if (at == index_.end()) return count_;
      STELE_ASSERT(at->second < count_ && blocks_[at->second].number == number);
      return at->second;
    }
    for (std::size_t i = 0; i < count_; ++i)
      if (blocks_[i].number == number) return i;
    return count_;
  }
  void add_to_index(std::uint64_t number);
  void number_anew() noexcept;
  void drop_from(std::uint64_t number) noexcept;
  // Whether no block beyond the end is left.
  bool are_below_end() const noexcept;
  bool are_found() const noexcept;

  static constexpr std::size_t searched_blocks = 16;  // most transactions write fewer
  // Memory that clear() keeps for the next transaction.
  static constexpr std::size_t kept_blocks = 256;
  bool open_ = false;
  std::uint64_t size_ = 0, stored_limit_ = 0;
  std::vector<written> blocks_;  // the first count_ are in use
  std::size_t count_ = 0;
  // Positions by number: of all blocks, if there are more than searched_blocks; else empty.
  std::unordered_map<std::uint64_t, std::size_t> index_;
  std::unordered_set<std::uint64_t> early_;  // numbers of blocks stored before the commit
};

}  // namespace stele::sqlite
