// Numbers as texts: every command reads and writes them here, as Redis 7.0 does. Redis has several
// readers, which differ in what they accept; each is named here after what it reads.
//
// A text may have any bytes, also bytes of 0, and any length. strtod and strtold, which read the
// digits, also accept "inf" and hexadecimal digits, as in Redis.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stele::redis {

// No sign but -, no leading zero, nothing around it.
std::optional<long long> integer_of(std::string_view text);
// Of a scan. As strtoul has it: a sign and leading zeroes are accepted, an empty text is 0.
std::optional<std::uint64_t> cursor_of(std::string_view text);

// A score that is stored, a weight. nullopt: no number, NaN, or beyond what a double can be.
std::optional<double> score_of(std::string_view text);
// An end of a range of scores. Spaces before it, an empty text (0), and numbers beyond a double (an
// infinity, 0) are accepted; a byte of 0 ends it.
std::optional<double> bound_of(std::string_view text);
// What SORT orders by. As bound_of, but for numbers that are no normal double.
std::optional<double> sort_key_of(std::string_view text);
// INCRBYFLOAT, HINCRBYFLOAT, a timeout. nullopt: no number, NaN, or beyond a long double.
std::optional<long double> float_of(std::string_view text);

// "inf", "-inf", or 17 significant digits, which give it exactly.
std::string text_of_score(double score);
// As ZSCAN answers the scores of a set that Redis encodes as a listpack: integers with all digits.
std::string text_of_small_sets_score(double score);
// All digits before the point, and up to 17 behind it. Requires a number that is finite.
std::string text_of_float(long double value);

}  // namespace stele::redis
