// CRC-32C (Castagnoli) over 8-byte words. Finds every burst of up to 32 changed bits, and other
// changes with probability 1 - 2^-32. Uses the processor's instruction if there is one; the values
// do not depend on it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stele::media {

// The CRC of `count` words. `crc` is the CRC of the words before them; for the first words, a seed.
std::uint32_t crc32c(std::uint32_t crc, const std::uint64_t* words, std::size_t count) noexcept;

// The CRC of each of `count` lines of eight words. Faster than one line at a time: the steps of
// several lines do not wait for each other.
void crc32c_of_lines(std::uint32_t crc, const std::uint64_t* words, std::size_t count,
                     std::uint32_t* crcs) noexcept;

// The same by tables, without the instruction.
std::uint32_t crc32c_by_table(std::uint32_t crc, const std::uint64_t* words,
                              std::size_t count) noexcept;

}  // namespace stele::media
