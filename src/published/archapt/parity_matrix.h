// A matrix of lines and its parity block, in ordinary memory: computing, checking, correcting. No
// media, no logs.
//
// Source: Wu, Ren and Li, "Architecture-Aware, High Performance Transaction for Persistent Memory"
// (2019), section III-C. Departure: a checksum of each line tells whether it is stale, so the row
// and column sums only correct. The paper's column sum does both, and misses stores that cancel out
// in it (a transfer from one line to another).
#pragma once

#include <format/parity_block.h>

#include <bit>

namespace stele::detail {

struct matrix {
  std::array<format::line_words, format::matrix_lines> lines;
};

// Computes all of a block but its own checksum.
void compute_checksums(const matrix& m, bool halves, format::parity_block& block) noexcept;

// The checksum that belongs in the block. `size`: format::plain_block_size or halves_block_size;
// `seed`: from the pool and the place.
std::uint64_t checksum_of(const format::parity_block& block, std::size_t size,
                          std::uint64_t seed) noexcept;

struct correction {
  std::uint64_t stale = 0;        // a bit for each line that is not as the block says
  std::uint64_t uncorrected = 0;  // the stale lines that could not be corrected
};

// Makes the stale lines of `m` as the block says, as far as the sums can. A line is corrected when
// it is the only stale one of its row or column (of its half, with halves); corrected lines are not
// stale any more. A line passes as good only if its checksum is right.
correction correct(matrix& m, bool halves, const format::parity_block& block) noexcept;

// Whether lines that are stale in this pattern can be corrected: `correct` then leaves none,
// whatever they hold.
bool correctable(std::uint64_t stale, bool halves) noexcept;

}  // namespace stele::detail
