// The version store of a database: blocks that home does not have, either old versions of blocks
// that commits have changed, or the newest versions, of deferred commits.
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

  // Copies the bytes at `at` as of this version, if the store has them. Thread-safe.
  void read(std::uint64_t version, std::uint64_t at, std::span<std::byte> to) const noexcept;

  // One thread at a time calls the functions below, beside readers.

  // A copy of these bytes, in memory of dropped blocks where there is some.
  std::unique_ptr<block> copy_of(const std::byte* bytes);
  // After this, `count` calls of add() and end() for each of these blocks need no memory. Throws
  // std::bad_alloc; then nothing has changed.
  void make_room(std::span<const std::uint64_t> numbers, std::size_t count);
  // Until forgo_ends(), other calls of make_room() leave room for so many calls of end().
  // Precondition: make_room() has reserved it.
  void keep_room_for_ends(std::size_t count) noexcept {
    STELE_ASSERT(kept_room_ == 0 && ended_.capacity() - ended_.size() >= count);
    kept_room_ = count;
  }
  void forgo_ends() noexcept { kept_room_ = 0; }
  // Versions from `from` on have these bytes. Precondition: `from` is above that of the block's
  // earlier versions here.
  void add(std::uint64_t number, std::uint64_t from, std::unique_ptr<block> bytes) noexcept;
  // Versions from `until` on do not need the block's newest bytes here. `until` is never below that
  // of an earlier call.
  void end(std::uint64_t number, std::uint64_t until) noexcept;
  // The block's newest bytes here, valid until they are dropped. Precondition: there are some.
  const block& newest(std::uint64_t number) const noexcept;
  // The first version that has those bytes.
  std::uint64_t newest_from(std::uint64_t number) const noexcept;
  // Drops the bytes that only versions before `oldest` need.
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
