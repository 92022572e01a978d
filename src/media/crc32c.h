// CRC-32C (Castagnoli) over 8-byte words: finds every burst of up to 32 changed bits, other changes
// with probability 1 - 2^-32. Uses the processor's instruction where there is one; the values are
// the same without.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stele::media {

// Of `count` words, going on from `crc` (the value of what came before; a seed at first).
std::uint32_t crc32c(std::uint32_t crc, const std::uint64_t* words, std::size_t count) noexcept;

// The same without the instruction.
std::uint32_t crc32c_by_table(std::uint32_t crc, const std::uint64_t* words,
                              std::size_t count) noexcept;

}  // namespace stele::media
