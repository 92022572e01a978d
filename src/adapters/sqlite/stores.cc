// Compares blocks with home, and stores the lines that differ.
#include "stores.h"

#include <base/mutant.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace stele::sqlite {

namespace {

// A bit for each line in which two blocks differ.
std::uint64_t differing_lines(const std::byte* a, const std::byte* b) noexcept {
  std::uint64_t lines = 0;
  for (std::size_t line = 0; line < block_size / 64; ++line) {
    std::uint64_t x[8], y[8], different = 0;
    std::memcpy(x, a + 64 * line, 64);
    std::memcpy(y, b + 64 * line, 64);
    for (unsigned i = 0; i < 8; ++i) different |= x[i] ^ y[i];
    lines |= std::uint64_t{different != 0} << line;
  }
  return lines;
}
static_assert(block_size / 64 == 64);

std::uint32_t counter_in(const std::byte* first_block) noexcept {
  std::uint32_t counter = 0;
  for (std::size_t i = 0; i < change_counter_bytes; ++i)
    counter = counter << 8 | static_cast<std::uint32_t>(first_block[change_counter_at + i]);
  return counter;
}

// Stores the bytes from `begin` to `end` without equal words at both ends.
void store_run(std::byte* home, const std::byte* bytes, std::size_t begin, std::size_t end) {
  constexpr std::size_t word = sizeof(std::uint64_t);
  STELE_ASSERT(begin % 64 == 0 && end % 64 == 0 && begin < end && end <= block_size);
  while (begin != end && std::memcmp(home + begin, bytes + begin, word) == 0) begin += word;
  while (begin != end && std::memcmp(home + end - word, bytes + end - word, word) == 0) end -= word;
  if (begin != end) store_bytes(home + begin, bytes + begin, end - begin);
}

}  // namespace

bool differ_beyond_counter(const std::byte* a, const std::byte* b) noexcept {
  constexpr std::size_t counter_end = change_counter_at + change_counter_bytes, copy_at = 92,
                        copy_end = 100;
  const auto differ = [&](std::size_t begin, std::size_t end) {
    return std::memcmp(a + begin, b + begin, end - begin) != 0;
  };
  return differ(0, change_counter_at) || differ(counter_end, copy_at) ||
         differ(copy_end, block_size);
}

void stores::compare(std::uint64_t number, const std::byte* bytes, std::byte* home) {
  STELE_ASSERT(home != nullptr && bytes != home);
  std::uint64_t lines = differing_lines(home, bytes);
  if (planted(base::mutant::sqlite_line_skipped)) lines &= ~std::bit_floor(lines);
  if (lines == 0) return;
  changes.push_back({number, bytes, lines, home});
  if (number != 0) return;
  STELE_ASSERT(base::holds(changes.size() == 1));  // blocks come in order
  // A connection that kept its cache raises an old change counter, which may be below home's.
  counts = static_cast<std::int32_t>(counter_in(bytes) - counter_in(home)) > 0;
  only_counts = !differ_beyond_counter(home, bytes);
}

// Each block once, by number.
bool stores::are_in_order() const noexcept {
  return std::ranges::adjacent_find(changes, std::ranges::greater_equal{}, &change::block) ==
         changes.end();
}

void stores::store_lines() const {
  STELE_ASSERT_WHOLE(base::holds(are_in_order()));
  for (const change& c : changes) {
    for (std::uint64_t rest = c.lines; rest != 0;) {
      const auto first = static_cast<unsigned>(std::countr_zero(rest));
      const auto count = static_cast<unsigned>(std::countr_one(rest >> first));
      STELE_ASSERT(count > 0 && first + count <= 64);
      store_run(c.home, c.bytes, 64 * first, 64 * (first + count));
      rest = first + count == 64 ? 0 : rest >> (first + count) << (first + count);
    }
  }
}

}  // namespace stele::sqlite
