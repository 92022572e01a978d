// Writes and reads the line that names a crash behind a cache.
#include <explore/cache_crashes.h>
#include <explore/plan_line.h>
#include <fmt/format.h>

#include <sstream>

#include <base/check.h>

namespace stele::explore {

namespace {

constexpr std::string_view opening = "cache ";

bool parse_moment(std::string_view text, cache_moment& m) {
  const auto colon = text.find(':');
  return colon != std::string_view::npos && parse_number(text.substr(0, colon), m.seed) &&
         parse_number(text.substr(colon + 1), m.event);
}

bool parse_word(std::string_view word, cache_crash& c, std::size_t& operations) {
  const auto equals = word.find('=');
  const std::string_view name = word.substr(0, equals);
  const std::string_view value = equals == std::string_view::npos ? "" : word.substr(equals + 1);
  if (word.starts_with('+')) return parse_number(word.substr(1), operations);
  if (name == "at") return parse_moment(value, c.moments.emplace_back(0, 0, operations));
  if (name == "lines") return parse_number(value, c.cache.lines);
  if (name == "ways") return parse_number(value, c.cache.ways);
  if (name != "policy") return parse_plan_word(word, c.run_plan);
  const auto policy = sim::replacement_named(value);
  if (policy) c.cache.policy = (*policy)->name;
  return policy.has_value();
}

}  // namespace

std::string format_line(const cache_crash& c) {
  std::string text =
      fmt::format("{}{} policy={} lines={} ways={}", opening, format_plan(c.run_plan),
                  c.cache.policy, c.cache.lines, c.cache.ways);
  for (std::size_t i = 0; i < c.moments.size(); ++i) {
    if (i > 0) text += fmt::format(" +{}", c.moments[i].operations);
    text += fmt::format(" at={}:{}", c.moments[i].seed, c.moments[i].event);
  }
  return text;
}

bool names_cache_crash(std::string_view line) noexcept {
  return line.starts_with(opening);
}

result<cache_crash> parse_cache_line(const std::string& line) {
  cache_crash c;
  std::istringstream words(names_cache_crash(line) ? line.substr(opening.size()) : line);
  std::size_t operations = 0;
  for (std::string word; words >> word;)
    if (!parse_word(word, c, operations))
      return base::fail(errc::invalid_argument,
                        fmt::format("'{}' is not understood in a replay line", word));
  return c;
}

}  // namespace stele::explore
