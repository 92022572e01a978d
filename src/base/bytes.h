// A number of bytes as people write it.
#pragma once

#include <base/assert.h>

#include <charconv>
#include <cstddef>
#include <optional>
#include <string_view>

namespace stele::base {

// Bytes, or a number with K, M, G or T: 64M. Nullopt: not such a text, or more than memory has
// addresses.
inline std::optional<std::size_t> bytes_of(std::string_view text) noexcept {
  std::size_t number = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (wrong != std::errc()) return std::nullopt;
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  if (unit.empty()) return number;
  constexpr std::string_view units = "KMGTkmgt";
  const auto at = units.find(unit.front());
  if (unit.size() != 1 || at == units.npos) return std::nullopt;
  const unsigned shift = 10 * (static_cast<unsigned>(at % 4) + 1);
  STELE_ASSERT(shift % 10 == 0 && shift <= 40);
  if (number > (~std::size_t{0} >> shift)) return std::nullopt;
  return number << shift;
}

}  // namespace stele::base
