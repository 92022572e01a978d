// A matrix of lines and its block of checksums, in ordinary memory: building, checking, correcting.
// No media, no logs.
//
// Source: Wu, Ren and Li, "Architecture-Aware, High Performance Transaction for Persistent Memory"
// (2019), section III-C. Ours: which lines are stale is told by a checksum of each, so the sums
// need only correct; the paper's sum of a column does both, and stores that cancel in it (a
// transfer from one line to another) go unseen.
#pragma once

#include <format/parity_block.h>

#include <bit>

namespace stele::detail {

struct matrix {
  std::array<format::line_words, format::matrix_lines> lines;
};

// All of a block but its checksum.
void compute_checksums(const matrix& m, bool halves, format::parity_block& block) noexcept;

// The checksum that the block is to have. `size`: format::plain_block_size or halves_block_size;
// `seed`: of the pool and the place.
std::uint64_t checksum_of(const format::parity_block& block, std::size_t size,
                          std::uint64_t seed) noexcept;

struct correction {
  std::uint64_t stale = 0;        // a bit for each line that was not what the block speaks for
  std::uint64_t uncorrected = 0;  // of those, the ones that could not be corrected
};

// Makes the stale lines of `m` what the block speaks for, as far as the sums can. A line is
// corrected when it is the only stale one of its row or column (of its half, with halves), the
// corrected ones no longer counting; it is passed as good only if its checksum is right.
correction correct(matrix& m, bool halves, const format::parity_block& block) noexcept;

// Whether lines that are stale in this pattern can be corrected: what `correct` leaves is then
// none, whatever they hold.
bool correctable(std::uint64_t stale, bool halves) noexcept;

}  // namespace stele::detail
