// A line of the torn-bit log: 64 bytes, a header word and seven payload words. docs/format/log.md
// is the page.
//
// Bit 63 of each of the eight words is the torn bit: it holds the sense of the ring's current lap.
// So a word that did not reach media before a crash is recognised by itself, without an order among
// the words (Volos, Tack and Swift, "Mnemosyne: Lightweight Persistent Memory", 2011, section 4.4).
// The top bits of the payload words move to the header word.
#pragma once

#include <base/checksum.h>

#include <array>
#include <cstdint>

namespace stele::format {

inline constexpr unsigned payload_words = 7;
inline constexpr std::uint64_t torn_bit = std::uint64_t{1} << 63;

enum class record_kind : std::uint8_t {
  none = 0,             // never written
  redo = 1,             // new values of a committed transaction
  undo = 2,             // old values of a transaction that is changing home
  spilled = 3,          // like the others, but the payload is in an extent: offset, words, checksum
  redo_dependent = 4,   // redo; prefix word: TxID of the ordered commit that must precede it
  redo_with_epoch = 5,  // redo; prefix word: epoch of the parity blocks; earlier programs wrote it
  undo_with_epoch = 6,  // undo; prefix word: epoch of the parity blocks
  undo_with_sum = 7,    // undo; prefix word: the sum of the new values (format/values_sum.h)
};
inline constexpr record_kind last_record_kind = record_kind::undo_with_sum;
constexpr bool has_prefix_word(record_kind k) noexcept {
  return k >= record_kind::redo_dependent;
}

// The header word without the torn bit and the displaced top bits.
struct line_header {
  std::uint8_t words = 0;  // payload words in use, 1..7
  bool first = false;      // first line of a record
  bool last = false;       // last line of a record
  // In the last line: checksum of the record's payload, seeded with pool id and position; else 0.
  std::uint32_t checksum = 0;
  record_kind kind = record_kind::none;
  record_kind spilled_kind = record_kind::none;  // the kind of a spilled record's payload
  bool in_columns = false;  // of a full line: its words are summed by columns (column_sums)

  constexpr std::uint64_t pack() const noexcept {
    return std::uint64_t{words} << 7 | std::uint64_t{first} << 10 | std::uint64_t{last} << 11 |
           std::uint64_t{checksum} << 12 | static_cast<std::uint64_t>(kind) << 44 |
           static_cast<std::uint64_t>(spilled_kind) << 47 | std::uint64_t{in_columns} << 50;
  }
  static constexpr line_header unpack(std::uint64_t w) noexcept {
    return {static_cast<std::uint8_t>(w >> 7 & 7),
            (w >> 10 & 1) != 0,
            (w >> 11 & 1) != 0,
            static_cast<std::uint32_t>(w >> 12),
            static_cast<record_kind>(w >> 44 & 7),
            static_cast<record_kind>(w >> 47 & 7),
            (w >> 50 & 1) != 0};
  }
};

inline constexpr std::uint64_t unused_header_bits = ((std::uint64_t{1} << 12) - 1) << 51;

// Of the payload words of a record's lines in columns, from the record's checksum before its first
// word on.
using column_sums = base::checksum_columns<payload_words>;

struct alignas(64) log_line {
  std::array<std::uint64_t, 8> words;
};

// Packs the header and sets the torn bits; the payload words are in words[1..7].
constexpr void seal(log_line& line, line_header header, bool sense) noexcept {
  const std::uint64_t torn = sense ? torn_bit : 0;
  std::uint64_t head = header.pack();
#pragma GCC unroll 8
  for (unsigned i = 1; i <= payload_words; ++i) {
    head |= (line.words[i] >> 63) << (i - 1);
    line.words[i] = (line.words[i] & ~torn_bit) | torn;
  }
  line.words[0] = head | torn;
}

// True if every word of the line was written in the lap with this sense.
constexpr bool is_untorn(const log_line& line, bool sense) noexcept {
  std::uint64_t all = torn_bit, any = 0;
#pragma GCC unroll 8
  for (std::uint64_t w : line.words) all &= w, any |= w;
  return sense ? (all & torn_bit) != 0 : (any & torn_bit) == 0;
}

// Payload word i (1..7) with its own top bit restored.
constexpr std::uint64_t payload(const log_line& line, unsigned i) noexcept {
  return (line.words[i] & ~torn_bit) | (line.words[0] >> (i - 1) & 1) << 63;
}

// The head of a run in a record: `count` words (1..2047) for home from `offset` on. With a mask
// other than 0xFF, count is 1. Offset and mask 0: not a run but `count` checksum deltas. Each is,
// for one stretch of run words in one block, the sum of the terms of the old words
// (block_checksums.h).
struct run_header {
  std::uint64_t offset;  // pool-relative, a multiple of 8
  std::uint8_t mask;     // which bytes of the word count
  std::uint32_t count;

  constexpr std::uint64_t pack() const noexcept {
    return offset / 8 | std::uint64_t{mask} << 44 | std::uint64_t{count} << 52;
  }
  static constexpr run_header unpack(std::uint64_t w) noexcept {
    return {(w & ((std::uint64_t{1} << 44) - 1)) * 8, static_cast<std::uint8_t>(w >> 44),
            static_cast<std::uint32_t>(w >> 52) & 0x7FF};
  }
};
inline constexpr std::uint32_t max_run_words = 2047;

static_assert(sizeof(log_line) == 64 && alignof(log_line) == 64);
static_assert(static_cast<unsigned>(last_record_kind) < 8, "a kind has three bits");
static_assert(!has_prefix_word(record_kind::spilled) &&
              has_prefix_word(record_kind::redo_dependent) &&
              has_prefix_word(record_kind::undo_with_sum));
static_assert((line_header{7, true, true, ~std::uint32_t{0}, last_record_kind, last_record_kind,
                           true}
                   .pack() &
               (unused_header_bits | torn_bit | ((1u << payload_words) - 1))) == 0,
              "header, torn bit and displaced bits have bits of their own");
static_assert(run_header{0x4000, 0xFF, 1}.pack() == 0x001F'F000'0000'0800u);
static_assert(run_header{((std::uint64_t{1} << 44) - 1) * 8, 0xFF, max_run_words}.pack() ==
              ~torn_bit);
static_assert(run_header::unpack(0x001F'F000'0000'0800u).offset == 0x4000 &&
              run_header::unpack(0x001F'F000'0000'0800u).mask == 0xFF &&
              run_header::unpack(0x001F'F000'0000'0800u).count == 1);
// The page's example, sealed in both senses and read again.
static_assert([] {
  base::checksum sum(1);
  for (const std::uint64_t word : {std::uint64_t{5}, 0x001F'F000'0000'0800u, std::uint64_t{42}})
    sum.add(word);
  const line_header h{3, true, true, sum.value32(), record_kind::redo};
  for (const bool sense : {true, false}) {
    log_line line{{0, 5, 0x001F'F000'0000'0800u, 42 | torn_bit, 0, 0, 0, 0}};
    seal(line, h, sense);
    if (!is_untorn(line, sense) || is_untorn(line, !sense) || payload(line, 1) != 5 ||
        payload(line, 3) != (42 | torn_bit))
      return false;
    for (std::uint64_t& word : line.words) {
      word ^= torn_bit;
      if (is_untorn(line, sense)) return false;
      word ^= torn_bit;
    }
  }
  return h.checksum == 0x82C0'3E56u && h.pack() == 0x0000'182C'03E5'6D80u &&
         line_header::unpack(h.pack()).pack() == h.pack();
}());

}  // namespace stele::format
