// The content of a pool with SQLite databases: docs/format/sqlite.md. A database is a row of
// extents; the place of a byte follows by arithmetic.
#pragma once

#include <stele/pool.h>
#include <stele/string.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

#include <base/assert.h>

namespace stele::sqlite {

inline constexpr const char* layout_name = "stele sqlite 1";  // of such a pool

// The unit of versions and of pending writes. SQLite's pages may be smaller or larger.
inline constexpr std::uint64_t block_size = 4096;
constexpr std::uint64_t blocks_of(std::uint64_t bytes) noexcept {
  return (bytes + block_size - 1) / block_size;
}
// SQLite's change counter in the first page.
inline constexpr std::size_t change_counter_at = 24, change_counter_bytes = 4;

// Extent 0 has 16 KiB, each further one as much as all before it, until that is 4 MiB; then each
// has 4 MiB.
inline constexpr std::uint64_t smallest_extent = 16 << 10, largest_extent = 4 << 20;
inline constexpr std::uint64_t doubled_bytes = 2 * largest_extent;  // in the extents that double
inline constexpr std::uint64_t doubling_extents = std::bit_width(doubled_bytes / smallest_extent);

inline constexpr std::uint64_t most_extents = std::uint64_t{1} << 20;  // 4 TiB

struct extent_place {
  std::uint64_t extent, offset;
};
constexpr std::uint64_t extent_begin(std::uint64_t extent) noexcept {
  if (extent >= doubling_extents)
    return doubled_bytes + (extent - doubling_extents) * largest_extent;
  return extent == 0 ? 0 : smallest_extent << (extent - 1);
}
constexpr std::uint64_t extent_bytes(std::uint64_t extent) noexcept {
  return extent_begin(extent + 1) - extent_begin(extent);
}
constexpr extent_place place_of(std::uint64_t byte) noexcept {
  const std::uint64_t extent = byte < doubled_bytes
                                   ? std::bit_width(byte / smallest_extent)
                                   : doubling_extents + (byte - doubled_bytes) / largest_extent;
  STELE_ASSERT(byte >= extent_begin(extent) && byte - extent_begin(extent) < largest_extent);
  return {extent, byte - extent_begin(extent)};
}
constexpr std::uint64_t extents_for(std::uint64_t bytes) noexcept {
  return bytes == 0 ? 0 : place_of(bytes - 1).extent + 1;
}
static_assert(extent_bytes(0) == smallest_extent && extent_bytes(1) == smallest_extent &&
              extent_bytes(doubling_extents - 1) == largest_extent &&
              extent_bytes(doubling_extents) == largest_extent &&
              place_of(doubled_bytes - 1).extent == doubling_extents - 1 &&
              place_of(doubled_bytes).offset == 0);

struct stored_database {
  using pool_resident = void;
  stele::string name;
  field<std::uint64_t> size_bytes;
  // Commits that have not raised SQLite's change counter. For readers in other processes.
  field<std::uint64_t> uncounted_commits;
  field<std::uint64_t> extent_count, extent_room;  // entries of `extents` in use, and in all
  field<field<std::byte*>*> extents;
  field<stored_database*> next;

  // These verify each pointer, in a transaction, and throw failure(errc::corrupt).
  void verify() const;
  // The bytes of an extent that is in use.
  const std::byte* extent_at(std::uint64_t number) const;
};
// docs/format/sqlite.md
static_assert(sizeof(stored_database) == 72 && alignof(stored_database) == 8);
static_assert(offsetof(stored_database, name) == 0 && offsetof(stored_database, size_bytes) == 24);
static_assert(offsetof(stored_database, uncounted_commits) == 32);
static_assert(offsetof(stored_database, extent_count) == 40);
static_assert(offsetof(stored_database, extent_room) == 48);
static_assert(offsetof(stored_database, extents) == 56);
static_assert(offsetof(stored_database, next) == 64);
// A block is in one extent, and an extent has whole blocks.
static_assert(smallest_extent % block_size == 0 && largest_extent % block_size == 0);

// Content is not trusted: functions verify each pointer and length before they use it, and throw
// failure(errc::corrupt).
struct stored_databases {
  using pool_resident = void;
  field<stored_database*> first;

  // Null: there is none of this name. This and the functions below are called in a transaction.
  stored_database* find(std::string_view name) const;
  stored_database* make(std::string_view name);
  template <class Visit>
  void visit_blocks(Visit&& visit) const {
    for_each_block([&](const void* block, std::uint64_t) { visit(block); });
  }
  // With the bytes that are used of each.
  void for_each_block(
      const std::function<void(const void* block, std::uint64_t bytes)>& visit) const;
  // Errors: corrupt, when a pointer leads out of the heap, or a database is longer than its
  // extents.
  [[nodiscard]] result<> check() const;

 private:
  // Until `each` returns true; returns that database, or null.
  stored_database* walk(const std::function<bool(stored_database&)>& each) const;
};

// Adds extents for `bytes` to the database, or frees those that it no longer needs. Throws
// failure(errc::full).
void set_extents(stored_database& d, std::uint64_t bytes);

// Verifies the databases of a pool: check(), and each pointer leads to a block of its own that the
// heap has in use, so no database shares bytes with another one or with the heap. Errors: corrupt.
[[nodiscard]] result<> verify_content(stele::pool<stored_databases>& pool);

}  // namespace stele::sqlite
