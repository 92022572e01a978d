// Numbers as texts.
#include "numbers.h"

#include <base/assert.h>

#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

namespace stele::redis {

namespace {

// As Redis limits the text of a long double. The longest that text_of_float() writes has a sign,
// 4,933 digits, a point and 17 digits.
constexpr std::size_t room_of_float = 5 * 1024;
static_assert(1 + std::numeric_limits<long double>::max_exponent10 + 1 + 1 + 17 < room_of_float);

// What strtod or strtold says of a text.
template <class Number>
struct reading {
  Number value = 0;
  std::size_t length = 0;     // read
  bool out_of_range = false;  // the value is the nearest that there is
};

template <class Number>
reading<Number> read(std::string_view text) {
  const std::string copy(text);
  char* end = nullptr;
  errno = 0;
  reading<Number> r;
  if constexpr (std::is_same_v<Number, double>)
    r.value = std::strtod(copy.c_str(), &end);
  else
    r.value = std::strtold(copy.c_str(), &end);
  r.length = static_cast<std::size_t>(end - copy.c_str());
  STELE_ASSERT(r.length <= copy.size());
  r.out_of_range = errno == ERANGE;
  return r;
}

// The whole text, without a space before it. A number that is not 0 and becomes 0 is refused, one
// that loses digits near 0 is not.
template <class Number>
std::optional<Number> whole(std::string_view text) {
  if (text.empty() || std::isspace(static_cast<unsigned char>(text.front())) != 0)
    return std::nullopt;
  const auto r = read<Number>(text);
  if (r.length != text.size() || std::isnan(r.value)) return std::nullopt;
  if (r.out_of_range && (std::isinf(r.value) || r.value == 0)) return std::nullopt;
  return r.value;
}

// The text up to its first byte of 0.
std::optional<reading<double>> up_to_zero(std::string_view text) {
  text = text.substr(0, text.find('\0'));
  const auto r = read<double>(text);
  if (r.length != text.size() || std::isnan(r.value)) return std::nullopt;
  return r;
}

template <class Number>
std::string printed(const char* format, Number value) {
  std::array<char, room_of_float> digits;
  const int size = std::snprintf(digits.data(), digits.size(), format, value);
  base::check(size >= 0 && static_cast<std::size_t>(size) < digits.size(),
              "a number's text is longer than any can be");
  return {digits.data(), static_cast<std::size_t>(size)};
}

}  // namespace

std::optional<long long> integer_of(std::string_view text) {
  long long value = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (wrong != std::errc() || end != text.data() + text.size()) return std::nullopt;
  const std::string_view digits = text.substr(text.starts_with('-') ? 1 : 0);
  if (digits.size() > 1 && digits.starts_with('0')) return std::nullopt;
  if (text == "-0") return std::nullopt;
  STELE_ASSERT_WHOLE(std::to_string(value) ==
                     text);  // no sign but -, no leading zero, nothing around it
  return value;
}

std::optional<std::uint64_t> cursor_of(std::string_view text) {
  const std::string copy(text.substr(0, text.find('\0')));
  char* end = nullptr;
  errno = 0;
  const std::uint64_t value = std::strtoul(copy.c_str(), &end, 10);
  if (errno == ERANGE || *end != '\0') return std::nullopt;
  if (!copy.empty() && std::isspace(static_cast<unsigned char>(copy.front())) != 0)
    return std::nullopt;
  return value;
}

std::optional<double> score_of(std::string_view text) {
  return whole<double>(text);
}

std::optional<double> bound_of(std::string_view text) {
  const auto r = up_to_zero(text);
  return r ? std::optional(r->value) : std::nullopt;
}

std::optional<double> sort_key_of(std::string_view text) {
  const auto r = up_to_zero(text);
  return r && !r->out_of_range ? std::optional(r->value) : std::nullopt;
}

std::optional<long double> float_of(std::string_view text) {
  if (text.size() >= room_of_float) return std::nullopt;
  return whole<long double>(text);
}

std::string text_of_score(double score) {
  STELE_ASSERT(!std::isnan(score));
  if (std::isinf(score)) return score > 0 ? "inf" : "-inf";
  std::string text = printed("%.17g", score);
  STELE_ASSERT_WHOLE(score_of(text) == score);  // the digits give it exactly
  return text;
}

std::string text_of_small_sets_score(double score) {
  constexpr double largest = 0x1p62;
  STELE_ASSERT(!std::isnan(score));
  if (std::abs(score) > largest || std::trunc(score) != score) return text_of_score(score);
  return std::to_string(static_cast<long long>(score));
}

std::string text_of_float(long double value) {
  STELE_ASSERT(std::isfinite(value));
  std::string text = printed("%.17Lf", value);
  text.resize(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  STELE_ASSERT(!text.empty() && !text.ends_with('.'));
  return text == "-0" ? "0" : text;
}

}  // namespace stele::redis
