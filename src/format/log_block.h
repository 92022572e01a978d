// A record of the block log: a data block and a metadata block of 8 bytes each, four records to a
// line. docs/format/blocks.md is the page, with a worked example. Source: Lu, Shu and Sun, "Blurred
// Persistence" (2016), section 4.2.1, figures 7 and 8.
//
// Both blocks hold the torn bit of the ring's current lap. So a block that did not reach media,
// because of a crash or an abort (a hole), is recognised by itself. The data block's own bit 63
// moves to the metadata block (the tail bit).
//
// Departures from the paper: addresses are pool offsets; a commit record's unused address field
// holds a checksum; of the four reserved bits, two mark spill records and a third marks checksum
// deltas.
#pragma once

#include <cstdint>
#include <initializer_list>

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
};

// An unpacked record.
struct block_record {
  block_kind kind = block_kind::data;
  std::uint8_t mask = 0;  // data records: which bytes of the word count
  std::uint64_t data = 0;
  std::uint64_t address = 0;  // 48 bits
};

inline constexpr std::uint64_t address_mask = (std::uint64_t{1} << 48) - 1;

// Bits of the metadata block: 0 torn, 1 tail, 2-9 mask, 10 FLG_DC (1: commit or abort), 11 FLG_CA
// (1: commit), 12 spill, 13 spill checksum, 14 checksum delta, 15 zero, 16-63 address.
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

// False: no record has these flags.
constexpr bool unpack(const log_block& b, block_record& r) noexcept {
  const std::uint64_t flags = b.metadata & 0xFC00;
  for (const block_kind k :
       {block_kind::data, block_kind::commit, block_kind::abort, block_kind::spill,
        block_kind::spill_checksum, block_kind::checksum_delta})
    if (flags == flags_of(k)) {
      r = {k, static_cast<std::uint8_t>(b.metadata >> 2), word_of(b), b.metadata >> 16};
      return true;
    }
  return false;
}

}  // namespace stele::format
