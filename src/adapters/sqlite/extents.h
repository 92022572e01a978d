// The place of each block of a database in home, and its stamp: docs/protocol/sqlite.md.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include <base/assert.h>
#include "stored.h"

namespace stele::sqlite {

// One thread at a time calls note() and keep_first(); others may read extents that stay.
class home_extents {
 public:
  // A stamp is the version since which home has the bytes of its block.
  struct extent {
    const std::byte* bytes;
    std::unique_ptr<std::atomic<std::uint64_t>[]> stamps;
  };

  home_extents();  // throws std::bad_alloc, as note()

  std::uint64_t count() const noexcept { return known_.size(); }
  bool suffice_for(std::uint64_t bytes) const noexcept { return extents_for(bytes) <= count(); }
  // Called after a transaction that has added extents to the database.
  void note(const stored_database& stored);
  // Drops the other extents, which nobody reads.
  void keep_first(std::uint64_t count) noexcept;

  const extent& of(std::uint64_t number) const noexcept {
    STELE_ASSERT(number < most_extents);
    const extent* const found = by_number_[number].load(std::memory_order_acquire);
    STELE_ASSERT(found != nullptr);  // reads end at their version's size
    return *found;
  }
  std::byte* home_of(std::uint64_t at) const noexcept {
    const auto [number, offset] = place_of(at);
    STELE_ASSERT(number < known_.size());  // reserved before the store
    return const_cast<std::byte*>(of(number).bytes) + offset;
  }
  std::atomic<std::uint64_t>& stamp_of(std::uint64_t block) const noexcept {
    const auto [number, offset] = place_of(block * block_size);
    STELE_ASSERT(offset % block_size == 0);  // a block is in one extent
    return of(number).stamps[offset / block_size];
  }

 private:
  // Room for most_extents, so that it never moves.
  std::unique_ptr<std::atomic<extent*>[], void (*)(std::atomic<extent*>*)> by_number_;
  std::vector<std::unique_ptr<extent>> known_;
};

}  // namespace stele::sqlite
