// The media format of a log-structured pool: chunks, transaction blocks, log entries.
// docs/format/log-structured.md is the page for readers. After Hu, Ren, Badam, Shu and Moscibroda,
// "Log-Structured Non-Volatile Main Memory" (2017), sections 3.4 and 4.2.
//
// The file is a header and an array of chunks of equal size; home has no place in it. A chunk
// begins with one header line. Blocks follow, each aligned to a line. A block is a preamble and
// entries; an entry is one word and the data that it maps. Sizes are in words of 8 bytes unless
// stated otherwise.
#pragma once

#include <base/rng.h>
#include <format/guarded.h>
#include <media/crc32c.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace stele::format {

enum class log_type : std::uint8_t {
  none = 0,
  update = 1,        // stores to memory that was allocated before
  allocation = 2,    // stores to memory that the transaction allocated
  deallocation = 3,  // tombstones
  moved = 4,         // live entries that cleaning moved out of other chunks
  mapping = 5,       // the home map: written at close, read at the next open
};

struct chunk_header {
  // Of this chunk's content; incremented each time the chunk is allocated.
  std::uint64_t generation;
  std::uint64_t owner;  // log_type in the low byte, the lane above it
  // Of generation and owner, seeded with pool id and place; 0: the chunk is free.
  std::uint64_t checksum;
  std::uint64_t previous;  // guarded: number + 1 of the chunk before this one in its log; 0: none
  std::uint64_t next;      // guarded: number + 1 of the chunk after it; 0: none
  // Guarded: blocks fill the chunk at least up to this word; 0: not known. Stored with next, and in
  // a moved chunk also before cleaning frees the chunks that its copies come from.
  std::uint64_t end;
  std::uint64_t first;  // guarded: the version of its first block; 0: not known
  std::uint64_t reserved;

  constexpr log_type type() const noexcept { return static_cast<log_type>(owner & 0xFF); }
  constexpr std::uint32_t lane() const noexcept { return static_cast<std::uint32_t>(owner >> 8); }
  static constexpr std::uint64_t pack_owner(log_type t, std::uint32_t lane) noexcept {
    return static_cast<std::uint64_t>(t) | std::uint64_t{lane} << 8;
  }
};
static_assert(sizeof(chunk_header) == 64 && std::is_trivially_copyable_v<chunk_header>);
static_assert(offsetof(chunk_header, checksum) == 16 && offsetof(chunk_header, previous) == 24 &&
              offsetof(chunk_header, next) == 32);
// Zeroed when a chunk is freed. A crash may leave any part of the chunk's next header; these words
// are then not the old header's.
inline constexpr std::size_t zeroed_when_freed[] = {
    offsetof(chunk_header, checksum), offsetof(chunk_header, end), offsetof(chunk_header, first)};
inline constexpr std::uint32_t chunk_header_words = sizeof(chunk_header) / 8;

// Never 0. `offset` is that of the chunk in the pool.
constexpr std::uint64_t chunk_checksum(const chunk_header& h, std::uint64_t pool_id,
                                       std::uint64_t offset) noexcept {
  return base::mix(base::mix(base::mix(h.generation ^ pool_id) ^ h.owner) ^ offset) | 1;
}

// The header of a chunk without neighbours.
constexpr chunk_header chunk_header_of(std::uint64_t generation, log_type type, std::uint32_t lane,
                                       std::uint64_t pool_id, std::uint64_t offset) noexcept {
  chunk_header h{.generation = generation,
                 .owner = chunk_header::pack_owner(type, lane),
                 .checksum = 0,
                 .previous = 0,
                 .next = 0,
                 .end = 0,
                 .first = 0,
                 .reserved = 0};
  h.checksum = chunk_checksum(h, pool_id, offset);
  return h;
}

// Three words before a block's entries.
struct block_preamble {
  std::uint64_t version;  // the TxID; 0: no block
  // Pool offset of the transaction's next block (48 bits), number of entries in this one (16 bits).
  std::uint64_t ring;
  // Low half: CRC-32C of version, ring, words and entries. High half: words of the block with
  // preamble.
  std::uint64_t check;

  static constexpr std::uint64_t pack_link(std::uint64_t peer, std::uint32_t entries) noexcept {
    return peer | std::uint64_t{entries} << 48;
  }
  constexpr std::uint64_t peer() const noexcept { return ring & ((std::uint64_t{1} << 48) - 1); }
  constexpr std::uint32_t entries() const noexcept {
    return static_cast<std::uint32_t>(ring >> 48);
  }
  std::uint32_t crc() const noexcept { return static_cast<std::uint32_t>(check); }
  std::uint32_t words() const noexcept { return static_cast<std::uint32_t>(check >> 32); }
};
static_assert(sizeof(block_preamble) == 24);
inline constexpr std::uint32_t preamble_words = sizeof(block_preamble) / 8;
inline constexpr std::uint32_t max_block_entries = 0xFFFF;

// The seed of a block's CRC. A block at another place, or from before its chunk was reused, does
// not match it.
constexpr std::uint32_t block_crc_seed(std::uint64_t pool_id, std::uint64_t offset,
                                       std::uint64_t generation) noexcept {
  return static_cast<std::uint32_t>(base::mix(base::mix(pool_id ^ generation) ^ offset) >> 32);
}
// `block` is preamble and entries; of its check word only the high half is included.
inline std::uint32_t block_crc(std::uint32_t seed, std::span<const std::uint64_t> block) noexcept {
  const std::uint64_t front[3] = {block[0], block[1], block[2] >> 32};
  return media::crc32c(media::crc32c(seed, front, 3), block.data() + preamble_words,
                       block.size() - preamble_words);
}

// The first word of an entry: home offset of its first byte (47 bits), tombstone (1 bit), size in
// words (16 bits). A tombstone has no data.
struct entry_header {
  std::uint64_t offset = 0;
  bool tombstone = false;
  std::uint32_t words = 0;

  constexpr std::uint64_t pack() const noexcept {
    return offset | std::uint64_t{tombstone} << 47 | std::uint64_t{words} << 48;
  }
  static constexpr entry_header unpack(std::uint64_t word) noexcept {
    return {word & ((std::uint64_t{1} << 47) - 1), (word >> 47 & 1) != 0,
            static_cast<std::uint32_t>(word >> 48)};
  }
  constexpr std::uint32_t data_words() const noexcept { return tombstone ? 0 : words; }
};
inline constexpr std::uint32_t max_entry_words = 0xFFFF;
// The home map and its stale counts are kept for each region of home. A tombstone lies in one
// region.
inline constexpr std::uint32_t region_words = 4096 / 8;

// Blocks are aligned to lines.
constexpr std::uint32_t padded_block_words(std::uint32_t words) noexcept {
  return (words + 7) / 8 * 8;
}

static_assert(offsetof(chunk_header, generation) == 0 && offsetof(chunk_header, owner) == 8 &&
              offsetof(chunk_header, end) == 40 && offsetof(chunk_header, first) == 48 &&
              offsetof(chunk_header, reserved) == 56 && alignof(chunk_header) == 8);
static_assert(chunk_header_of(3, log_type::moved, 0x1234, 7, 8192).lane() == 0x1234 &&
              chunk_header_of(3, log_type::moved, 0x1234, 7, 8192).type() == log_type::moved);
static_assert(chunk_header_of(3, log_type::update, 1, 7, 8192).checksum % 2 == 1 &&
                  chunk_header_of(3, log_type::update, 1, 7, 8192).checksum !=
                      chunk_header_of(4, log_type::update, 1, 7, 8192).checksum,
              "no checksum says that a chunk is free; it belongs to a generation");
static_assert(offsetof(block_preamble, ring) == 8 && offsetof(block_preamble, check) == 16 &&
              std::is_trivially_copyable_v<block_preamble>);
static_assert(
    block_preamble{1, block_preamble::pack_link(0x123456789ABC, max_block_entries), 0}.peer() ==
        0x123456789ABC &&
    block_preamble{1, block_preamble::pack_link(0x123456789ABC, max_block_entries), 0}.entries() ==
        max_block_entries);
static_assert(entry_header{8, true, max_entry_words}.pack() == 0xFFFF'8000'0000'0008u);
static_assert(entry_header::unpack(0xFFFF'8000'0000'0008u).offset == 8 &&
              entry_header::unpack(0xFFFF'8000'0000'0008u).tombstone &&
              entry_header::unpack(0xFFFF'8000'0000'0008u).words == max_entry_words &&
              entry_header::unpack(0xFFFF'8000'0000'0008u).data_words() == 0);
static_assert(padded_block_words(preamble_words) == 8 && padded_block_words(8) == 8 &&
              padded_block_words(9) == 16 && chunk_header_words == 8);
static_assert(region_words <= max_entry_words, "a tombstone of a whole region is one entry");

}  // namespace stele::format
