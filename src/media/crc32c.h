// CRC-32C (Castagnoli) over 8-byte words. Finds every burst of up to 32 changed bits, and other
// changes with probability 1 - 2^-32. Uses the processor's instruction if there is one; the values
// do not depend on it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stele::media {

// The CRC of `count` words. `crc` is the CRC of the words before them; for the first words, a seed.
std::uint32_t crc32c(std::uint32_t crc, const std::uint64_t* words, std::size_t count) noexcept;

// The same by tables, without the instruction.
std::uint32_t crc32c_by_table(std::uint32_t crc, const std::uint64_t* words,
                              std::size_t count) noexcept;

}  // namespace stele::media
