// Whether what SQLite has in a connection's page cache is still right: docs/protocol/sqlite.md.
//
// SQLite asks when a read transaction begins: it reads 16 bytes of the first page, and empties the
// cache if they are not those of the page as it last read or wrote it. The bytes of the page answer
// badly: each commit of another connection changes them, whatever else it changes, and those of an
// exclusive connection do not. So a connection gives an answer of its own.
#pragma once

#include <array>
#include <atomic>
#include <cstring>
#include <span>

#include <base/assert.h>
#include "stored.h"

namespace stele::sqlite {

// The 16 bytes, of one connection.
class version_bytes {
 public:
  static constexpr std::uint64_t at = change_counter_at, size = 16;
  // This read is the question.
  static bool is_question(std::uint64_t begin, std::size_t bytes) noexcept {
    return begin == at && bytes == size;
  }
  // SQLite has read or written these bytes, and its cache has them.
  void note(std::uint64_t begin, std::span<const std::byte> bytes) noexcept {
    if (begin == 0 && bytes.size() >= at + size)
      std::memcpy(cached_.data(), bytes.data() + at, size);
  }
  // `is_right`: the cache is kept. Else it is emptied. SQLite does nothing else with the bytes, so
  // the page, a line that every commit writes, is not read for them.
  void answer(bool is_right, std::span<std::byte, size> to) const noexcept {
    std::memcpy(to.data(), cached_.data(), size);
    if (!is_right) to[0] ^= std::byte{1};
  }

 private:
  std::array<std::byte, size> cached_{};
};

// The blocks that the newest commits have changed. One thread at a time adds, beside others that
// ask.
class recent_changes {
 public:
  using position = std::uint64_t;
  static constexpr std::size_t remembered = 1024;

  // After all changes so far.
  position end() const noexcept { return end_.load(std::memory_order_acquire); }
  // What one commit has changed, which may be no block.
  void add(std::span<const std::uint64_t> blocks) noexcept;
  // A commit has changed too many.
  void add_all() noexcept;
  // Whether a block for which has(number) says yes has changed between the positions. Also true if
  // so much has changed since that they are forgotten.
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
  // What is being added ends at begun_.
  std::atomic<position> begun_{0}, end_{0};
  std::array<std::atomic<std::uint64_t>, remembered> blocks_{};
};

// What the cache of one connection may have.
class cached_blocks {
 public:
  // SQLite has read or written these bytes.
  void note(std::uint64_t begin, std::span<const std::byte> bytes) noexcept {
    version_.note(begin, bytes);
    for (std::uint64_t n = begin / block_size; n * block_size < begin + bytes.size(); ++n)
      words_[n / 64 % words_.size()] |= bit_of(n);
    STELE_ASSERT(bytes.empty() ||
                 (has(begin / block_size) && has((begin + bytes.size() - 1) / block_size)));
  }
  // A read transaction begins. Here and below, `at`: after all changes of the transaction's
  // version.
  void begin(recent_changes::position at) noexcept {
    STELE_ASSERT(at != unknown);    // sqlite.md V2: that of a version
    if (!is_used_) right_at_ = at;  // an empty cache
    is_used_ = true;
  }
  // Answers the question.
  void answer(const recent_changes& changes, recent_changes::position at,
              std::span<std::byte, version_bytes::size> to) noexcept;
  // The connection itself has committed what it noted; nobody else has since its begin.
  void committed(recent_changes::position at) noexcept {
    STELE_ASSERT(at != unknown && is_used_);  // sqlite.md V4
    right_at_ = at;
  }
  // What the cache has may be wrong.
  void lost() noexcept { right_at_ = unknown; }
  // From now on any commit of others empties the cache: `PRAGMA data_version` then tells them all.
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
  // By the number of the block, modulo: some that the cache does not have, too.
  std::array<std::uint64_t, 512> words_{};
  recent_changes::position right_at_ = unknown;
  bool is_used_ = false, tells_all_ = false;
};

}  // namespace stele::sqlite
