// Whether a connection's page cache is still valid: docs/protocol/sqlite.md.
//
// When a read transaction begins, SQLite reads 16 bytes of the first page, and empties its cache if
// they differ from those that it last read or wrote. Every commit of another connection changes
// these bytes, whatever else it changes; commits of an exclusive connection do not. So the VFS
// computes the 16 bytes that it returns.
#pragma once

#include <array>
#include <atomic>
#include <cstring>
#include <span>

#include <base/assert.h>
#include "stored.h"

namespace stele::sqlite {

// The 16 bytes of one connection.
class version_bytes {
 public:
  static constexpr std::uint64_t at = change_counter_at, size = 16;
  // Whether this read is SQLite's validation of its cache.
  static bool is_question(std::uint64_t begin, std::size_t bytes) noexcept {
    return begin == at && bytes == size;
  }
  // SQLite's cache now has these bytes.
  void note(std::uint64_t begin, std::span<const std::byte> bytes) noexcept {
    if (begin == 0 && bytes.size() >= at + size)
      std::memcpy(cached_.data(), bytes.data() + at, size);
  }
  // `is_right`: SQLite keeps its cache; else it empties it. The page is not read, because every
  // commit writes its line and SQLite does nothing else with the bytes.
  void answer(bool is_right, std::span<std::byte, size> to) const noexcept {
    std::memcpy(to.data(), cached_.data(), size);
    if (!is_right) to[0] ^= std::byte{1};
  }

 private:
  std::array<std::byte, size> cached_{};
};

// The blocks that the newest commits have changed. One thread at a time calls add(); others may
// call changed() meanwhile.
class recent_changes {
 public:
  using position = std::uint64_t;
  static constexpr std::size_t remembered = 1024;

  // The position after all changes so far.
  position end() const noexcept { return end_.load(std::memory_order_acquire); }
  // Adds the blocks of one commit, which may be none.
  void add(std::span<const std::uint64_t> blocks) noexcept;
  // Counts every block as changed, for a commit with too many blocks.
  void add_all() noexcept;
  // Whether a block for which has(number) is true has changed between the positions. Also true if
  // the ring has been overwritten since.
  template <class Has>
  bool changed(position from, position until, Has&& has) const noexcept {
    bool found = until - from > remembered;
    for (position p = from; p < until && !found; ++p) {
      const std::uint64_t number = blocks_[p % remembered].load(std::memory_order_relaxed);
      found = number != no_block && has(number);
    }
    std::atomic_thread_fence(std::memory_order_acquire);
    return found || begun_.load(std::memory_order_relaxed) - from > remembered;
  }

 private:
  static constexpr std::uint64_t no_block = ~std::uint64_t{0};
  // The end of the changes that are being added.
  std::atomic<position> begun_{0}, end_{0};
  std::array<std::atomic<std::uint64_t>, remembered> blocks_{};
};

// The blocks that the cache of one connection may have.
class cached_blocks {
 public:
  // SQLite's cache now has these bytes.
  void note(std::uint64_t begin, std::span<const std::byte> bytes) noexcept {
    version_.note(begin, bytes);
    for (std::uint64_t n = begin / block_size; n * block_size < begin + bytes.size(); ++n)
      words_[n / 64 % words_.size()] |= bit_of(n);
    STELE_ASSERT(bytes.empty() ||
                 (has(begin / block_size) && has((begin + bytes.size() - 1) / block_size)));
  }
  // A read transaction begins. Here and below, `at` is the position after all changes of the
  // transaction's version.
  void begin(recent_changes::position at) noexcept {
    STELE_ASSERT(at != unknown);    // sqlite.md V2: that of a version
    if (!is_used_) right_at_ = at;  // an empty cache
    is_used_ = true;
  }
  // Whether the cache is valid.
  void answer(const recent_changes& changes, recent_changes::position at,
              std::span<std::byte, version_bytes::size> to) noexcept;
  // This connection has committed; no other has since the transaction began.
  void committed(recent_changes::position at) noexcept {
    STELE_ASSERT(at != unknown && is_used_);  // sqlite.md V4
    right_at_ = at;
  }
  // The cache may be invalid.
  void lost() noexcept { right_at_ = unknown; }
  // From now on every commit of another connection empties the cache, for `PRAGMA data_version`.
  void tell_all() noexcept { tells_all_ = true; }

 private:
  static constexpr recent_changes::position unknown = ~recent_changes::position{0};
  bool has(std::uint64_t number) const noexcept {
    return (words_[number / 64 % words_.size()] & bit_of(number)) != 0;
  }
  static std::uint64_t bit_of(std::uint64_t number) noexcept {
    return std::uint64_t{1} << number % 64;
  }

  version_bytes version_;
  // By block number modulo the size, so blocks that the cache lacks may count too.
  std::array<std::uint64_t, 512> words_{};
  recent_changes::position right_at_ = unknown;
  bool is_used_ = false, tells_all_ = false;
};

}  // namespace stele::sqlite
