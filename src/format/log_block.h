// A record of the block log: a data block and a metadata block of 8 bytes each, four records to a
// line. docs/format/blocks.md is the page, with a worked example. Source: Lu, Shu and Sun, "Blurred
// Persistence" (2016), section 4.2.1, figures 7 and 8.
//
// Both blocks hold the torn bit of the ring's current lap. So a block that did not reach media,
// because of a crash or an abort (a hole), is recognised by itself. The data block's own bit 63
// moves to the metadata block (the tail bit).
//
// Departures from the paper: addresses are pool offsets; a commit record's unused address field
// holds a checksum; of the four reserved bits, two mark spill records, a third checksum deltas, and
// the fourth runs: records of several words with one metadata block.
#pragma once

#include <base/checksum.h>

#include <cstdint>
#include <initializer_list>
#include <type_traits>

namespace stele::format {

inline constexpr std::uint64_t blocks_per_line = 4;

struct log_block {
  std::uint64_t data;
  std::uint64_t metadata;
};
static_assert(sizeof(log_block) == 16);

enum class block_kind : std::uint8_t {
  data,            // a word for `address`; mask 0: filler up to the end of the line
  commit,          // data is the TxID, address a checksum of the transaction's records
  abort,           // data is the back pointer: the line after the last commit record
  spill,           // the transaction's payload is `data` words of runs at `address`
  spill_checksum,  // follows a spill record: data is the checksum of that payload
  // data is the sum of the old terms of the transaction's words in the block of home at `address`
  // (block_checksums.h)
  checksum_delta,
  commit_by_columns,  // a commit whose checksum sums whole lines by columns
  run,  // data is the word for `address`; `further` words after it in its line are for the next
        // ones
};

// An unpacked record.
struct block_record {
  block_kind kind = block_kind::data;
  std::uint8_t mask = 0;  // data records: which bytes of the word count
  std::uint64_t data = 0;
  std::uint64_t address = 0;  // 48 bits
  std::uint8_t further = 0;   // runs: words after the first, 1 to max_further_words
};

inline constexpr std::uint64_t address_mask = (std::uint64_t{1} << 48) - 1;

// Bits of the metadata block: 0 torn, 1 tail, 2-9 mask, 10 FLG_DC (1: commit or abort), 11 FLG_CA
// (1: commit), 12 spill, 13 spill checksum, 14 checksum delta, 15 run (of a commit: by columns),
// 16-63 address.
constexpr std::uint64_t flags_of(block_kind k) noexcept {
  switch (k) {
    case block_kind::data:
      return 0;
    case block_kind::commit:
      return 3u << 10;
    case block_kind::abort:
      return 1u << 10;
    case block_kind::spill:
      return 1u << 12;
    case block_kind::spill_checksum:
      return 1u << 13;
    case block_kind::checksum_delta:
      return 1u << 14;
    case block_kind::commit_by_columns:
      return 3u << 10 | 1u << 15;
    case block_kind::run:
      return 1u << 15;
  }
  return 0;
}

constexpr log_block pack(const block_record& r, bool sense) noexcept {
  constexpr std::uint64_t top = std::uint64_t{1} << 63;
  return {(r.data & ~top) | (sense ? top : 0), std::uint64_t{sense} | (r.data >> 63) << 1 |
                                                   std::uint64_t{r.mask} << 2 | flags_of(r.kind) |
                                                   r.address << 16};
}

// Whether both blocks were written in the lap with this sense.
constexpr bool is_untorn(const log_block& b, bool sense) noexcept {
  return (b.data >> 63 != 0) == sense && (b.metadata & 1) == std::uint64_t{sense};
}

// The word in an untorn data block, with its own top bit restored.
constexpr std::uint64_t word_of(const log_block& b) noexcept {
  return (b.data & ~(std::uint64_t{1} << 63)) | (b.metadata >> 1 & 1) << 63;
}

// The checksum of a transaction's first `blocks` blocks. line_at(i) are the words of its line i.
// columns: whole lines are summed by columns.
template <class LineAt>
base::checksum blocks_checksum(base::checksum sum, bool columns, std::uint64_t blocks,
                               LineAt&& line_at) noexcept {
  const std::uint64_t lines = blocks / blocks_per_line;
  if (columns) {
    base::checksum_columns<2 * blocks_per_line> of_lines(sum);
    for (std::uint64_t i = 0; i < lines; ++i) of_lines.add(line_at(i));
    of_lines.add_to(sum);
  } else {
    for (std::uint64_t i = 0; i < lines; ++i) sum.add(line_at(i), 16 * blocks_per_line);
  }
  if (blocks % blocks_per_line != 0) sum.add(line_at(lines), 16 * (blocks % blocks_per_line));
  return sum;
}
// By columns pays for many lines.
inline constexpr std::uint64_t blocks_for_columns = 6 * blocks_per_line;

// --- runs ---

inline constexpr std::uint64_t words_per_line = 8, max_further_words = words_per_line - 2;

// The torn bit of the word at this place in its line: bit 63 of data blocks, bit 0 of metadata
// blocks, and the same of the words that a run has in their places.
constexpr std::uint64_t torn_bit_at(std::uint64_t place) noexcept {
  return place % 2 == 0 ? std::uint64_t{1} << 63 : 1;
}
constexpr bool is_run(std::uint64_t metadata) noexcept {
  return (metadata & 0xFC00) == flags_of(block_kind::run);
}
constexpr std::uint64_t further_words(std::uint64_t metadata) noexcept {
  return is_run(metadata) ? metadata >> 16 & 7 : 0;
}
// Blocks of a record after its first.
constexpr std::uint64_t further_blocks(std::uint64_t further) noexcept {
  return (further + 1) / 2;
}
// The metadata of a record of a whole word, or of a run, after so many more words have joined it.
constexpr std::uint64_t with_further_words(std::uint64_t metadata, std::uint64_t more) noexcept {
  if (!is_run(metadata)) metadata = (metadata & ~std::uint64_t{0xFFFC}) | flags_of(block_kind::run);
  return metadata + (more << 16);
}
// A further word at this place of a line, as stored; its own bit there, which goes to the head.
constexpr std::uint64_t seal_further(std::uint64_t word, std::uint64_t place, bool sense) noexcept {
  return (word & ~torn_bit_at(place)) | (sense ? torn_bit_at(place) : 0);
}
constexpr bool displaced_bit(std::uint64_t word, std::uint64_t place) noexcept {
  return (word & torn_bit_at(place)) != 0;
}
// In the head's metadata: the displaced bit of the further word of this number, from 1 on.
constexpr std::uint64_t displaced_mask(std::uint64_t number) noexcept {
  return std::uint64_t{1} << (1 + number);
}
// The further word of this number, with its own bit restored.
constexpr std::uint64_t further_word(std::uint64_t stored, std::uint64_t place,
                                     std::uint64_t metadata, std::uint64_t number) noexcept {
  return (stored & ~torn_bit_at(place)) |
         ((metadata & displaced_mask(number)) != 0 ? torn_bit_at(place) : 0);
}

// Where a running transaction has stored a word: the address of a record, whose word it is; or the
// address of a further word of a run, plus 1 and the number of the head's block in its line.
using log_place = std::uint64_t;
inline log_place place_of(const log_block* record) noexcept {
  return reinterpret_cast<log_place>(record);
}
inline log_place place_of(const std::uint64_t* further, std::uint64_t head) noexcept {
  return reinterpret_cast<log_place>(further) + 1 + head;
}
struct placed_word {
  std::uint64_t* word;
  log_block* head;
  std::uint64_t place, number;  // in the line; in the run, 0 for the head's own word

  explicit placed_word(log_place at) noexcept
      : word(reinterpret_cast<std::uint64_t*>(at & ~std::uint64_t{7})), place(at / 8 % 8) {
    const std::uint64_t block = at % 8 != 0 ? at % 8 - 1 : place / 2;
    head = reinterpret_cast<log_block*>(at & ~std::uint64_t{63}) + block;
    number = at % 8 != 0 ? place - 2 * block - 1 : 0;
  }
};
inline std::uint64_t word_at(log_place at) noexcept {
  if (at % 8 == 0) return word_of(*reinterpret_cast<const log_block*>(at));
  const placed_word w(at);
  return further_word(*w.word, w.place, w.head->metadata, w.number);
}

// False: no record has these flags.
constexpr bool unpack(const log_block& b, block_record& r) noexcept {
  const std::uint64_t flags = b.metadata & 0xFC00, address = b.metadata >> 16;
  if (flags == flags_of(block_kind::data)) {
    r = {block_kind::data, static_cast<std::uint8_t>(b.metadata >> 2), word_of(b), address};
    return true;
  }
  if (is_run(b.metadata)) {
    r = {block_kind::run, 0xFF, word_of(b), address & ~std::uint64_t{7},
         static_cast<std::uint8_t>(address & 7)};
    return r.further >= 1 && r.further <= max_further_words;
  }
  for (const block_kind k :
       {block_kind::commit, block_kind::commit_by_columns, block_kind::abort, block_kind::spill,
        block_kind::spill_checksum, block_kind::checksum_delta})
    if (flags == flags_of(k)) {
      r = {k, static_cast<std::uint8_t>(b.metadata >> 2), word_of(b), address};
      return true;
    }
  return false;
}

// --- the page's examples ---

static_assert(alignof(log_block) == 8 && std::is_trivially_copyable_v<log_block>);
static_assert(blocks_per_line * sizeof(log_block) == 64 &&
              words_per_line * sizeof(std::uint64_t) == 64);
static_assert(pack({block_kind::data, 0xFF, 42, 0x4000}, true).data == 0x8000'0000'0000'002Au &&
              pack({block_kind::data, 0xFF, 42, 0x4000}, true).metadata == 0x0000'0000'4000'03FDu);
static_assert(pack({block_kind::data, 0xFF, 0x8000'0000'0000'0001u, 0x4008}, true).data ==
                  0x8000'0000'0000'0001u &&
              pack({block_kind::data, 0xFF, 0x8000'0000'0000'0001u, 0x4008}, true).metadata ==
                  0x0000'0000'4008'03FFu);
static_assert([] {
  base::checksum sum(1);
  constexpr std::uint64_t words[] = {0x8000'0000'0000'002Au, 0x0000'0000'4000'03FDu,
                                     0x8000'0000'0000'0001u, 0x0000'0000'4008'03FFu};
  for (const std::uint64_t word : words) sum.add(word);
  const log_block commit = pack({block_kind::commit, 0, 5, sum.value() >> 16}, true);
  return sum.value() == 0x3F67'F2CE'8BD0'E147u && commit.data == 0x8000'0000'0000'0005u &&
         commit.metadata == 0x3F67'F2CE'8BD0'0C01u;
}());
static_assert(pack({}, true).data == std::uint64_t{1} << 63 && pack({}, true).metadata == 1,
              "filler");
// A run of 42 and two words more, 0x8000000000000001 and 7.
static_assert((with_further_words(0x0000'0000'4000'03FDu, 2) | displaced_mask(1) |
               displaced_mask(2)) == 0x0000'0000'4002'800Du);
static_assert(further_words(0x0000'0000'4002'800Du) == 2);
static_assert(seal_further(7, 3, true) == 7 && displaced_bit(7, 3) &&
              further_word(7, 3, displaced_mask(2), 2) == 7 && further_word(7, 3, 0, 2) == 6);
static_assert(further_blocks(max_further_words) + 1 == blocks_per_line && max_further_words < 8,
              "a run fills a line, and its count fits the low bits of an offset");

inline constexpr block_kind all_block_kinds[] = {block_kind::data,
                                                 block_kind::commit,
                                                 block_kind::abort,
                                                 block_kind::spill,
                                                 block_kind::spill_checksum,
                                                 block_kind::checksum_delta,
                                                 block_kind::commit_by_columns,
                                                 block_kind::run};
static_assert(
    [] {
      for (const block_kind a : all_block_kinds) {
        if ((flags_of(a) & ~std::uint64_t{0xFC00}) != 0) return false;
        for (const block_kind b : all_block_kinds)
          if (a != b && flags_of(a) == flags_of(b)) return false;
      }
      return true;
    }(),
    "bits 10 to 15 tell the kinds apart");
static_assert(
    [] {
      for (const block_kind k : all_block_kinds)
        for (const bool sense : {false, true}) {
          const std::uint64_t further = k == block_kind::run ? 3 : 0,
                              value = 0x8000'0000'0000'00F5u;
          const log_block b = pack({k, 0, value, 0x4000 + further}, sense);
          block_record r;
          if (!is_untorn(b, sense) || is_untorn(b, !sense) || !unpack(b, r) || r.kind != k ||
              r.data != value || r.address != 0x4000 || r.further != further)
            return false;
        }
      return true;
    }(),
    "what is packed is unpacked, in its own lap only");

}  // namespace stele::format
