// Blocks of a database that home does not have: as they were, for readers of earlier versions, and
// as deferred commits have left them.
#pragma once

#include <base/assert.h>
#include "pending.h"

#include <shared_mutex>
#include <unordered_map>

namespace stele::sqlite {

class kept_blocks {
 public:
  using block = pending_writes::block;

  kept_blocks();

  // Copies the bytes at `at` as of this version. Does nothing if none are kept. Thread-safe.
  void read(std::uint64_t version, std::uint64_t at, std::span<std::byte> to) const noexcept;

  // The rest is called by one thread at a time, beside readers.

  // A copy of these bytes, in memory of blocks that were dropped.
  std::unique_ptr<block> copy_of(const std::byte* bytes);
  // After this, `count` calls of add() and end() for each of these blocks need no memory. Throws
  // std::bad_alloc; then nothing has changed.
  void make_room(std::span<const std::uint64_t> numbers, std::size_t count);
  // From here to forgo_ends(), other calls of make_room() leave room for so many calls of end().
  // Precondition: make_room() has made it.
  void keep_room_for_ends(std::size_t count) noexcept {
    STELE_ASSERT(kept_room_ == 0 && ended_.capacity() - ended_.size() >= count);
    kept_room_ = count;
  }
  void forgo_ends() noexcept { kept_room_ = 0; }
  // Versions from `from` on have these bytes. `from` is above that of the block's earlier ones.
  void add(std::uint64_t number, std::uint64_t from, std::unique_ptr<block> bytes) noexcept;
  // Versions from `until` on do not need the block's newest bytes here. `until` is never below that
  // of an earlier call.
  void end(std::uint64_t number, std::uint64_t until) noexcept;
  // The block's newest bytes. Precondition: it has some. They stay where they are until they are
  // dropped.
  const block& newest(std::uint64_t number) const noexcept;
  // The version that they are from.
  std::uint64_t newest_from(std::uint64_t number) const noexcept;
  // Drops what only versions before `oldest` need.
  void drop_before(std::uint64_t oldest) noexcept;

 private:
  struct kept {
    std::uint64_t from;
    std::unique_ptr<block> bytes;
  };
  struct ended {
    std::uint64_t until, number;
  };
  // The block's oldest bytes come first.
  bool is_in_order(std::uint64_t number) const noexcept;

  mutable std::shared_mutex mutex_;                              // of blocks_
  std::unordered_map<std::uint64_t, std::vector<kept>> blocks_;  // by number; oldest first
  std::vector<ended> ended_;                                     // from first_ended_ on; in order
  std::size_t first_ended_ = 0;
  std::size_t kept_room_ = 0;  // entries of ended_
  std::vector<std::unique_ptr<block>> spare_;
};

}  // namespace stele::sqlite
