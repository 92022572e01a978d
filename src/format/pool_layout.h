// Layout of a pool file. docs/format/pool.md is the page for readers. Everything is little-endian.
//
//   [0, 256)        header, written at creation, checksummed; its version may be raised later
//   [512, 1280)     control words, one to a line: session, watermark, owner, growth, magic, ...
//   [4096, 4352)    a copy of the header, to repair it from
//   [8192, ...)     logs, each a control line and a ring of lines
//   [parity_offset, ...)     parity blocks over home, if the pool has any (parity_block.h)
//   [home_copy_offset, ...)  the checkpoint copy of home, if the pool has one
//   [home_offset, ...)       home: home header line, chunk table, block checksums if the pool has
//                            them (block_checksums.h), chunks
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
// The version that this program writes. It reads all from first_pool_version on, and raises their
// version before it changes them (pool/header_version.h). Version 2 has large slabs, and blocks of
// odd multiples of 8 (heap_layout.h).
inline constexpr std::uint32_t pool_version = 2, first_pool_version = 1, large_slab_version = 2;
constexpr bool is_known_pool_version(std::uint32_t v) noexcept {
  return v >= first_pool_version && v <= pool_version;
}
inline constexpr std::size_t header_area_size = 4096;  // header and control words
// The pages before the logs: the header area, and the page with the header's copy.
inline constexpr std::size_t front_size = 2 * header_area_size;
inline constexpr std::size_t layout_name_size = 64;

// Where home is kept.
enum class home_kind : std::uint32_t {
  in_place = 0,
  // Nowhere: log chunks fill the file (log_chunk.h). Offsets from home_offset = size on are only
  // addresses.
  log = 1,
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
  std::uint64_t home_size;   // home_kind::log: size of home in bytes; else 0
  // Of the parity blocks (parity_block.h), between logs and home; 0: none.
  std::uint64_t parity_offset;
  std::uint32_t parity_block_size;  // bytes of each parity block; 0: none
  std::uint32_t reserved_2;         // zero
  // Of the checkpoint copy: as long as home, right before it; 0: none. Only with parity blocks.
  std::uint64_t home_copy_offset;
  // From one checkpoint to the next; 0 if and only if there is no checkpoint copy.
  std::uint64_t checkpoint_commits;
  // Of the block checksums (block_checksums.h), between chunk table and chunks; 0: none.
  std::uint64_t block_checksums_offset;
  std::array<std::byte, 40> reserved;  // zero

  // home_kind::log: number of chunks in the file, of log_size bytes each, from log_offset on.
  // log_count is the number of threads that may append.
  std::uint32_t log_chunks() const noexcept {
    return static_cast<std::uint32_t>((size - log_offset) / log_size);
  }
  // The end of the last chunk. A chunk at most is left from there to the end of a pool as created.
  std::uint64_t chunks_end() const noexcept { return chunks_offset + (chunk_count << chunk_shift); }
  // All pool offsets are below this.
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

// The copy of the header lies in the page after it, so that no damage of one page hits both. In
// pools of earlier programs, whose logs begin in that page, it lies right behind the header.
inline constexpr std::uint64_t header_copy_offset = header_area_size,
                               earlier_header_copy_offset = sizeof(pool_header);
constexpr std::uint64_t header_copy_offset_of(const pool_header& h) noexcept {
  return h.log_offset == front_size ? header_copy_offset : earlier_header_copy_offset;
}

// Offsets of the control words.
inline constexpr std::uint64_t session_offset = 512;  // guarded session word
// Guarded TxID: commits up to it are durable in home.
inline constexpr std::uint64_t watermark_offset = 576;
// home_kind::log: guarded number + 1 of the first chunk of the map that close left; 0: none.
inline constexpr std::uint64_t saved_map_offset = 704;
// Guarded epoch: parity blocks (parity_block.h) of earlier epochs do not count.
inline constexpr std::uint64_t parity_epoch_offset = 768;
// Guarded TxID + 1: the checkpoint copy holds no later commit; 0: there is no checkpoint yet.
inline constexpr std::uint64_t checkpoint_offset = 832;
// Guarded number of the growth slot in force: 1 or 2; 0: none.
inline constexpr std::uint64_t growth_offset = 960;
// Guarded block_checksum_state (block_checksums.h).
inline constexpr std::uint64_t block_checksum_state_offset = 1152;
// Guarded. 1: home header and chunk table have magic words; 0: not known.
inline constexpr std::uint64_t magic_state_offset = 1216;
// pid of the process that has the pool open; a hint, not checked.
inline constexpr std::uint64_t owner_offset = 640;
// Each process that opens the pool for writing raises it, before it changes
// anything else: readers in other processes see by it that the file may change.
// Not checked; needs no durability.
inline constexpr std::uint64_t generation_offset = 648;
// Random number in the name of the socket that serves readers of other processes; 0: there is none.
// Left by a process that died. Not checked; needs no durability.
inline constexpr std::uint64_t reader_socket_offset = 656;

// A guarded control word of the pool that begins at `pool`, which other threads may store to;
// nullopt if it is damaged. Precondition: `pool` is a multiple of 8.
inline std::optional<std::uint64_t> read_control_word(const std::byte* pool, std::uint64_t id,
                                                      std::uint64_t offset) noexcept {
  const auto* const word = reinterpret_cast<const std::uint64_t*>(pool + offset);
  return unguard(__atomic_load_n(word, __ATOMIC_RELAXED), id, offset);
}

// A pool that has grown: its number of chunks, and the chunk from which on its chunk table and
// block checksums lie, instead of where the header says. Stored as two guarded words in one of two
// slots, a line each; growth_offset names the slot in force.
struct growth {
  std::uint64_t chunk_count = 0;  // 0: it has not grown
  std::uint64_t table_chunk = 0;
};
// `slot` is 1 or 2.
constexpr std::uint64_t growth_slot_offset(std::uint64_t slot) noexcept {
  return 1024 + 64 * (slot - 1);
}
// nullopt if a word is damaged.
inline std::optional<growth> read_growth(const std::byte* pool, std::uint64_t id) noexcept {
  const auto slot = read_control_word(pool, id, growth_offset);
  if (!slot || *slot > 2) return std::nullopt;
  if (*slot == 0) return growth{};
  const auto count = read_control_word(pool, id, growth_slot_offset(*slot)),
             table = read_control_word(pool, id, growth_slot_offset(*slot) + 8);
  if (!count || !table || *count == 0) return std::nullopt;
  return growth{*count, *table};
}

// The session word: whether the pool was closed, and the format of its logs.
struct session {
  bool open = false;          // a process has the pool open, or died with it open
  std::uint8_t log_kind = 0;  // the format of the logs: see tx/mechanism

  constexpr std::uint64_t pack() const noexcept {
    return 0x5E55u | std::uint64_t{open} << 16 | std::uint64_t{log_kind} << 24;
  }
  static constexpr session unpack(std::uint64_t word) noexcept {
    return {(word >> 16 & 1) != 0, static_cast<std::uint8_t>(word >> 24)};
  }
};

// A fallback: recovery could not restore some line, so it went back to the checkpoint, and later
// commits are lost. Three guarded words on one line. They stay until the user acknowledges the
// loss.
enum class fallback_state : std::uint64_t {
  none = 0,
  under_way = 1,  // recovery is copying the checkpoint to home, and repeats that after a crash
  done = 2,
};
inline constexpr std::uint64_t fallback_to_offset = 896;    // the value of checkpoint_offset
inline constexpr std::uint64_t fallback_from_offset = 904;  // the newest TxID that recovery knew of
inline constexpr std::uint64_t fallback_state_offset = 912;  // stored last

struct fallback {
  fallback_state state = fallback_state::none;
  // TxIDs: the checkpoint has no commit above `to`; commits up to `from` that it lacks are lost.
  std::uint64_t to = 0, from = 0;
};
// nullopt if a word is damaged.
inline std::optional<fallback> read_fallback(const std::byte* pool, std::uint64_t id) noexcept {
  const auto state = read_control_word(pool, id, fallback_state_offset),
             to = read_control_word(pool, id, fallback_to_offset),
             from = read_control_word(pool, id, fallback_from_offset);
  if (!state || !to || !from || *state > static_cast<std::uint64_t>(fallback_state::done))
    return std::nullopt;
  if (*state == 0) return fallback{};
  return fallback{static_cast<fallback_state>(*state), *to - 1, *from};
}

// The first line of home. Only transactions change it.
struct home_header {
  std::uint64_t root_offset;  // 0 until the root object exists
  std::uint64_t root_size;
  // Of the program's layout; 0 if the program does not number layouts.
  std::uint64_t layout_version;
  std::uint64_t magic;  // guarded: home_magic in a pool with magic words
  // Guarded: the root's offset and its form (root_mark.h); 0: it has no mark.
  std::uint64_t root_form;
  std::array<std::byte, 24> reserved;
};
static_assert(sizeof(home_header) == 64 && offsetof(home_header, magic) == 24 &&
              offsetof(home_header, root_form) == 32);

// A pool with magic words has no zero that could mean "fresh": its home header has this word, and
// the word of a free chunk is not 0. So a page or sector of them that was zeroed is noticed. The
// first session of a pool stores them.
inline constexpr std::uint64_t home_magic = 0x57E1E'40'3EULL;

// A log is its control line and then the ring.
inline constexpr std::size_t log_control_size = 64;
// In a log's head word, beside the position.
// The log is being emptied; its content does not count.
inline constexpr std::uint64_t log_void_bit = std::uint64_t{1} << 47;
// Its records are blocks (log_block.h), not lines (log_line.h).
inline constexpr std::uint64_t log_blocks_bit = std::uint64_t{1} << 46;
inline constexpr std::uint64_t log_position_mask = log_blocks_bit - 1;

// --- docs/format/pool.md ---

static_assert(front_size == 8192 && pool_magic[0] == 'S' && pool_magic[7] == '\n');
static_assert(offsetof(pool_header, version) == 8 && offsetof(pool_header, header_size) == 12 &&
              offsetof(pool_header, id) == 16 && offsetof(pool_header, size) == 24 &&
              offsetof(pool_header, log_offset) == 32 && offsetof(pool_header, log_size) == 40 &&
              offsetof(pool_header, log_count) == 48 && offsetof(pool_header, chunk_shift) == 52);
static_assert(offsetof(pool_header, home_offset) == 56 &&
              offsetof(pool_header, table_offset) == 64 &&
              offsetof(pool_header, chunks_offset) == 72 &&
              offsetof(pool_header, chunk_count) == 80);
static_assert(offsetof(pool_header, home) == 152 && offsetof(pool_header, home_size) == 160 &&
              offsetof(pool_header, parity_offset) == 168 &&
              offsetof(pool_header, parity_block_size) == 176 &&
              offsetof(pool_header, home_copy_offset) == 184 &&
              offsetof(pool_header, checkpoint_commits) == 192 &&
              offsetof(pool_header, block_checksums_offset) == 200 &&
              offsetof(pool_header, reserved) == 208);
static_assert(alignof(pool_header) == 8 && alignof(home_header) == 8 &&
              std::is_trivially_copyable_v<home_header>);
static_assert(offsetof(home_header, root_size) == 8 &&
              offsetof(home_header, layout_version) == 16 && offsetof(home_header, reserved) == 40);

// Words that are stored at different moments lie in lines of their own, behind header and earlier
// copy; those of one step share a line.
static_assert([] {
  constexpr std::uint64_t words[] = {session_offset,
                                     watermark_offset,
                                     owner_offset,
                                     saved_map_offset,
                                     parity_epoch_offset,
                                     checkpoint_offset,
                                     fallback_state_offset,
                                     growth_offset,
                                     growth_slot_offset(1),
                                     growth_slot_offset(2),
                                     block_checksum_state_offset,
                                     magic_state_offset};
  for (const std::uint64_t a : words) {
    unsigned in_line = 0;
    for (const std::uint64_t b : words) in_line += a / 64 == b / 64 ? 1 : 0;
    if (in_line != 1 || a % 8 != 0 || a < 512 || a + 16 > header_area_size) return false;
  }
  return true;
}());
static_assert(growth_slot_offset(1) == 1024 && growth_slot_offset(2) == 1088);
static_assert(fallback_to_offset / 64 == fallback_state_offset / 64 &&
              fallback_from_offset / 64 == fallback_state_offset / 64);
static_assert(generation_offset / 64 == owner_offset / 64 &&
              reader_socket_offset / 64 == owner_offset / 64);

static_assert(session{true, 5}.pack() == 0x0501'5E55u && session{}.pack() == 0x5E55u &&
              session{true, 0xFF}.pack() < guarded_limit);
static_assert(session::unpack(0x0501'5E55u).open && session::unpack(0x0501'5E55u).log_kind == 5 &&
              !session::unpack(0x0500'5E55u).open);
static_assert(home_magic != 0 && home_magic < guarded_limit);
// A log's head word: position, form and void bit fill the value of a guarded word.
static_assert((log_void_bit | log_blocks_bit | log_position_mask) == guarded_limit - 1 &&
              (log_void_bit & log_blocks_bit) == 0);

}  // namespace stele::format
