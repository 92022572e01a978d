// The writes of a SQLite transaction that is not committed: whole blocks, in memory.
#pragma once

#include "stored.h"

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <unordered_map>
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
  // From this byte on, a block that is not here is zero, whatever is stored.
  std::uint64_t stored_limit() const noexcept { return stored_limit_; }
  // In the order of their numbers.
  std::span<const written> in_order();
  const block* find(std::uint64_t number) const noexcept {
    if (count_ == 0) return nullptr;
    const auto at = index_.find(number);
    return at == index_.end() ? nullptr : blocks_[at->second].bytes.get();
  }

  // The database has `size` bytes. Does nothing if there are writes already.
  void begin(std::uint64_t size) noexcept;
  // `load(number, to)` gives what a block had before. Throws std::bad_alloc, as set_size; then
  // nothing has changed.
  template <class Load>
  void write(std::uint64_t at, std::span<const std::byte> from, Load&& load) {
    while (!from.empty()) {
      const std::uint64_t number = at / block_size, begin = at % block_size;
      const std::size_t part = std::min<std::size_t>(from.size(), block_size - begin);
      std::copy_n(from.data(), part, add(number, part == block_size, load).data() + begin);
      at += part;
      from = from.subspan(part);
      size_ = std::max(size_, at);
    }
  }
  template <class Load>
  void set_size(std::uint64_t size, Load&& load) {
    if (size < size_) {
      if (size % block_size != 0) {
        auto& last = add(size / block_size, false, load);
        std::fill(last.begin() + size % block_size, last.end(), std::byte{0});
      }
      drop_from((size + block_size - 1) / block_size);
      stored_limit_ = std::min(stored_limit_, size);
    }
    size_ = size;
  }
  void clear() noexcept;

 private:
  template <class Load>
  block& add(std::uint64_t number, bool whole, Load&& load) {
    if (const auto at = index_.find(number); at != index_.end()) return *blocks_[at->second].bytes;
    if (count_ == blocks_.size()) blocks_.push_back({0, std::make_unique_for_overwrite<block>()});
    written& added = blocks_[count_];
    if (!whole) {
      if (number * block_size < stored_limit_)
        load(number, *added.bytes);
      else
        added.bytes->fill(std::byte{0});
    }
    index_.emplace(number, count_);
    added.number = number;
    ++count_;
    return *added.bytes;
  }
  void drop_from(std::uint64_t number) noexcept;

  static constexpr std::size_t kept_blocks =
      256;  // memory that clear() keeps for the next transaction
  bool open_ = false;
  std::uint64_t size_ = 0, stored_limit_ = 0;
  std::vector<written> blocks_;  // the first count_ are in use
  std::size_t count_ = 0;
  std::unordered_map<std::uint64_t, std::size_t> index_;  // in blocks_, by number
};

}  // namespace stele::sqlite
