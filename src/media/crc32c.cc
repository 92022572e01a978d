// CRC-32C by the processor's instruction, or by eight tables at a time (Kounavis and Berry, "A
// Systematic Approach to Building High Performance Software-Based CRC Generators", 2005).
#include <base/assert.h>
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

// Of Castagnoli's polynomial; parity blocks and log chunks on media have such checksums.
static_assert(tables[0][0] == 0 && tables[0][1] == 0xF26B8303u && tables[0][128] == 0x82F63B78u &&
              tables[0][255] == 0xAD7D5351u);
// A table's entry is that of the table before, and a zero byte more.
static_assert(tables[7][255] == ((tables[6][255] >> 8) ^ tables[0][tables[6][255] & 0xFF]));

// A predicate of assertions.
[[maybe_unused]] bool are_words(const std::uint64_t* words, std::size_t count) noexcept {
  return count == 0 || (words != nullptr && reinterpret_cast<std::uintptr_t>(words) % 8 == 0);
}

#if defined(__x86_64__)
[[gnu::target("sse4.2")]] std::uint32_t by_instruction(std::uint32_t crc,
                                                       const std::uint64_t* words,
                                                       std::size_t count) noexcept {
  std::uint64_t sum = crc;
  for (std::size_t i = 0; i < count; ++i) sum = __builtin_ia32_crc32di(sum, words[i]);
  return static_cast<std::uint32_t>(sum);
}

// Four lines at a time: a step takes three cycles, and one can begin in each.
[[gnu::target("sse4.2")]] void lines_by_instruction(std::uint32_t crc, const std::uint64_t* words,
                                                    std::size_t count,
                                                    std::uint32_t* crcs) noexcept {
  constexpr std::size_t line = 8;
  for (; count >= 4; count -= 4, words += 4 * line, crcs += 4) {
    std::uint64_t a = crc, b = crc, c = crc, d = crc;
#pragma GCC unroll 8
    for (std::size_t i = 0; i < line; ++i) {
      a = __builtin_ia32_crc32di(a, words[i]);
      b = __builtin_ia32_crc32di(b, words[line + i]);
      c = __builtin_ia32_crc32di(c, words[2 * line + i]);
      d = __builtin_ia32_crc32di(d, words[3 * line + i]);
    }
    crcs[0] = static_cast<std::uint32_t>(a), crcs[1] = static_cast<std::uint32_t>(b);
    crcs[2] = static_cast<std::uint32_t>(c), crcs[3] = static_cast<std::uint32_t>(d);
  }
  for (; count != 0; --count, words += line) *crcs++ = by_instruction(crc, words, line);
}
bool has_instruction() noexcept {
  static const bool has = __builtin_cpu_supports("sse4.2") != 0;
  return has;
}
#endif

}  // namespace

std::uint32_t crc32c_by_table(std::uint32_t crc, const std::uint64_t* words,
                              std::size_t count) noexcept {
  STELE_ASSERT(are_words(words, count));
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t word = words[i] ^ crc;
    crc = 0;
    for (unsigned byte = 0; byte < 8; ++byte) crc ^= tables[7 - byte][word >> (8 * byte) & 0xFF];
  }
  return crc;
}

std::uint32_t crc32c(std::uint32_t crc, const std::uint64_t* words, std::size_t count) noexcept {
#if defined(__x86_64__)
  if (has_instruction()) [[likely]]
    return by_instruction(crc, words, count);
#endif
  return crc32c_by_table(crc, words, count);
}

void crc32c_of_lines(std::uint32_t crc, const std::uint64_t* words, std::size_t count,
                     std::uint32_t* crcs) noexcept {
#if defined(__x86_64__)
  STELE_ASSERT(count == 0 || (are_words(words, 8 * count) && crcs != nullptr));
  if (has_instruction()) [[likely]] {
    lines_by_instruction(crc, words, count, crcs);
    return;
  }
#endif
  for (; count != 0; --count, words += 8) *crcs++ = crc32c_by_table(crc, words, 8);
}

}  // namespace stele::media
