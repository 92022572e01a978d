// How a pool file is laid out. docs/format/pool.md is the page for readers; everything here is
// little-endian.
//
//   [0, 256)        header, written once at creation, checksummed
//   [256, 512)      the same again, to repair the first from
//   [512, 1280)     control words, one a line: session, watermark, owner, growth, marks, ...
//   [4096, ...)     logs, each a control line and a ring of lines
//   [parity_offset, ...)  checksums over home, if the pool has any (parity_block.h)
//   [home_copy_offset, ...)    the checkpoint, a copy of home, if the pool has one
//   [home_offset..) home: home header line, chunk table, sums of home's blocks if the pool has them
//   (block_checksums.h), chunks
#pragma once

#include <base/checksum.h>
#include <format/guarded.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

namespace stele::format {

static_assert(std::endian::native == std::endian::little, "pool files are little-endian");

inline constexpr std::array<char, 8> pool_magic = {'S', 'T', 'E', 'L', 'E', 'P', '\r', '\n'};
inline constexpr std::uint32_t pool_version = 1;
inline constexpr std::size_t header_area_size = 4096;
inline constexpr std::size_t layout_name_size = 64;

// Where home is kept.
enum class home_kind : std::uint32_t {
  in_place = 0,
  log = 1,  // nowhere: chunks of log fill the file (log_chunk.h), and offsets from home_offset =
            // size on are addresses only
};

struct pool_header {
  std::array<char, 8> magic;
  std::uint32_t version;
  std::uint32_t header_size;
  std::uint64_t id;          // random, never 0
  std::uint64_t size;        // of the file, bytes
  std::uint64_t log_offset;  // of the first log
  std::uint64_t log_size;    // of each log, bytes, a multiple of 4096
  std::uint32_t log_count;
  std::uint32_t chunk_shift;  // chunks are 1 << chunk_shift bytes
  std::uint64_t home_offset;
  std::uint64_t table_offset;   // chunk descriptors, 8 bytes each
  std::uint64_t chunks_offset;  // first chunk
  std::uint64_t chunk_count;
  std::array<char, layout_name_size> layout;  // zero-padded
  home_kind home;
  std::uint32_t reserved_1;  // zero
  std::uint64_t home_size;   // home_kind::log: of home, bytes; else 0
  std::uint64_t
      parity_offset;  // of the checksums over home (parity_block.h), between logs and home; 0: none
  std::uint32_t parity_block_size;  // bytes of each block of them; 0: none
  std::uint32_t reserved_2;         // zero
  std::uint64_t home_copy_offset;   // of the checkpoint: as long as home, right before it; 0: none.
                                    // Only with checksums
  std::uint64_t
      checkpoint_commits;  // from one checkpoint to the next; 0 if and only if there is none
  std::uint64_t block_checksums_offset;  // of the sums of home's blocks (block_checksums.h),
                                         // between chunk table and chunks; 0: none
  std::array<std::byte, 40> reserved;    // zero

  // home_kind::log: how many chunks the file has, of log_size bytes each, from log_offset on.
  // log_count is how many threads may append.
  std::uint32_t log_chunks() const noexcept {
    return static_cast<std::uint32_t>((size - log_offset) / log_size);
  }
  // Pool offsets are below this.
  std::uint64_t offset_end() const noexcept {
    return home == home_kind::log ? home_offset + home_size : size;
  }
  std::uint64_t checksum;  // over the bytes before it, seeded with 0
};
static_assert(sizeof(pool_header) == 256 && std::is_trivially_copyable_v<pool_header>);
static_assert(offsetof(pool_header, layout) == 88 && offsetof(pool_header, checksum) == 248);

inline std::uint64_t header_checksum(const pool_header& h) noexcept {
  base::checksum sum(0);
  sum.add(&h, offsetof(pool_header, checksum));
  return sum.value();
}

inline constexpr std::uint64_t header_copy_offset = 256;

// Offsets of the control words.
inline constexpr std::uint64_t session_offset = 512;  // guarded session word
inline constexpr std::uint64_t watermark_offset =
    576;  // guarded TxID: commits up to it are durable at home
inline constexpr std::uint64_t saved_map_offset =
    704;  // home_kind::log: guarded number + 1 of the first chunk of the mapping that close left;
          // 0: none
inline constexpr std::uint64_t parity_epoch_offset =
    768;  // guarded epoch: checksum blocks (parity_block.h) of earlier ones do not count
inline constexpr std::uint64_t checkpoint_offset =
    832;  // guarded TxID + 1: the checkpoint holds no later commit; 0: nothing yet
inline constexpr std::uint64_t growth_offset =
    960;  // guarded number of the growth slot in force: 0 none, 1 or 2
inline constexpr std::uint64_t block_checksum_state_offset =
    1152;  // guarded: see block_checksum_state (block_checksums.h)
inline constexpr std::uint64_t magic_state_offset =
    1216;  // guarded: 1 home header and chunk table are marked; 0 nothing is known
inline constexpr std::uint64_t owner_offset =
    640;  // pid of the process that has the pool open; a hint, not checked

// A guarded control word of the pool that begins at `pool`; nothing when it is damaged.
inline std::optional<std::uint64_t> read_control_word(const std::byte* pool, std::uint64_t id,
                                                      std::uint64_t offset) noexcept {
  std::uint64_t word;
  std::memcpy(&word, pool + offset, sizeof word);
  return unguard(word, id, offset);
}

// A pool that has grown: how many chunks it has, and from which of them on its chunk table and sums
// lie, in place of where the header says. Two guarded words on a line of their own, of which there
// are two; growth_offset names the one in force.
struct growth {
  std::uint64_t chunk_count = 0;  // 0: it has not grown
  std::uint64_t table_chunk = 0;
};
constexpr std::uint64_t growth_slot_offset(std::uint64_t slot) noexcept {
  return 1024 + 64 * (slot - 1);
}  // slot 1 or 2
// Damaged words: nothing.
inline std::optional<growth> read_growth(const std::byte* pool, std::uint64_t id) noexcept {
  const auto slot = read_control_word(pool, id, growth_offset);
  if (!slot || *slot > 2) return std::nullopt;
  if (*slot == 0) return growth{};
  const auto count = read_control_word(pool, id, growth_slot_offset(*slot)),
             table = read_control_word(pool, id, growth_slot_offset(*slot) + 8);
  if (!count || !table || *count == 0) return std::nullopt;
  return growth{*count, *table};
}

// The session word says whether the pool was closed, and how its logs are to be read.
struct session {
  bool open = false;          // a process has (or had, when it died) the pool open
  std::uint8_t log_kind = 0;  // whose log format: see tx/mechanism

  constexpr std::uint64_t pack() const noexcept {
    return 0x5E55u | std::uint64_t{open} << 16 | std::uint64_t{log_kind} << 24;
  }
  static constexpr session unpack(std::uint64_t word) noexcept {
    return {(word >> 16 & 1) != 0, static_cast<std::uint8_t>(word >> 24)};
  }
};

// What recovery could not restore it took back with all that came after the checkpoint: three
// guarded words on one line. Stays until it is acknowledged.
enum class fallback_state : std::uint64_t {
  none = 0,
  under_way = 1,  // home is being made the checkpoint's; recovery goes on with that
  done = 2,
};
inline constexpr std::uint64_t fallback_to_offset = 896;    // what checkpoint_offset held
inline constexpr std::uint64_t fallback_from_offset = 904;  // the newest TxID that recovery knew of
inline constexpr std::uint64_t fallback_state_offset = 912;  // stored last

struct fallback {
  fallback_state state = fallback_state::none;
  std::uint64_t to = 0, from = 0;  // TxIDs: the checkpoint holds none above `to`; those up to
                                   // `from` that it does not hold are gone
};
// Damaged words: nothing.
inline std::optional<fallback> read_fallback(const std::byte* pool, std::uint64_t id) noexcept {
  const auto state = read_control_word(pool, id, fallback_state_offset),
             to = read_control_word(pool, id, fallback_to_offset),
             from = read_control_word(pool, id, fallback_from_offset);
  if (!state || !to || !from || *state > static_cast<std::uint64_t>(fallback_state::done))
    return std::nullopt;
  if (*state == 0) return fallback{};
  return fallback{static_cast<fallback_state>(*state), *to - 1, *from};
}

// First line of home. Changed by transactions only.
struct home_header {
  std::uint64_t root_offset;  // 0 until the root has been made
  std::uint64_t root_size;
  std::uint64_t layout_version;  // of the program's layout; 0 unless the program counts
  std::uint64_t magic;           // guarded: home_magic in a pool that is marked
  std::array<std::byte, 32> reserved;
};
static_assert(sizeof(home_header) == 64 && offsetof(home_header, magic) == 24);

// A marked pool has no zero where a zero could mean "fresh": its home header has this word, and the
// word of a free chunk is not 0. So a page or sector of them that was zeroed is found. The first
// session of a pool marks it.
inline constexpr std::uint64_t home_magic = 0x57E1E'40'3EULL;

// A log: its control line, then the ring.
inline constexpr std::size_t log_control_size = 64;
// In a log's head word, beside the position:
inline constexpr std::uint64_t log_void_bit =
    std::uint64_t{1} << 47;  // the ring is being emptied, its content is void
inline constexpr std::uint64_t log_blocks_bit =
    std::uint64_t{1} << 46;  // its records are blocks (log_block.h), not lines (log_line.h)
inline constexpr std::uint64_t log_position_mask = log_blocks_bit - 1;

}  // namespace stele::format
