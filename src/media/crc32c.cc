// CRC-32C by the processor's instruction, or by eight tables at a time (Kounavis and Berry, "A
// Systematic Approach to Building High Performance Software-Based CRC Generators", 2005).
#include <media/crc32c.h>

#include <array>

namespace stele::media {

namespace {

using table = std::array<std::uint32_t, 256>;

constexpr std::array<table, 8> tables = [] {
  std::array<table, 8> t{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78u : 0);
    t[0][byte] = crc;
  }
  for (std::size_t k = 1; k < 8; ++k)
    for (std::size_t byte = 0; byte < 256; ++byte)
      t[k][byte] = (t[k - 1][byte] >> 8) ^ t[0][t[k - 1][byte] & 0xFF];
  return t;
}();

#if defined(__x86_64__)
[[gnu::target("sse4.2")]] std::uint32_t by_instruction(std::uint32_t crc,
                                                       const std::uint64_t* words,
                                                       std::size_t count) noexcept {
  std::uint64_t sum = crc;
  for (std::size_t i = 0; i < count; ++i) sum = __builtin_ia32_crc32di(sum, words[i]);
  return static_cast<std::uint32_t>(sum);
}
#endif

}  // namespace

std::uint32_t crc32c_by_table(std::uint32_t crc, const std::uint64_t* words,
                              std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t word = words[i] ^ crc;
    crc = 0;
    for (unsigned byte = 0; byte < 8; ++byte) crc ^= tables[7 - byte][word >> (8 * byte) & 0xFF];
  }
  return crc;
}

std::uint32_t crc32c(std::uint32_t crc, const std::uint64_t* words, std::size_t count) noexcept {
#if defined(__x86_64__)
  static const bool instruction = __builtin_cpu_supports("sse4.2") != 0;
  if (instruction) [[likely]]
    return by_instruction(crc, words, count);
#endif
  return crc32c_by_table(crc, words, count);
}

}  // namespace stele::media
