// The line that names a crash behind a cache, written and read back.
#include <explore/cache_crashes.h>
#include <explore/plan_line.h>
#include <fmt/format.h>

#include <sstream>

#include <base/check.h>

namespace stele::explore {

namespace {

constexpr std::string_view opening = "cache ";

bool parse_word(std::string_view word, cache_crash& c) {
  const auto equals = word.find('=');
  const std::string_view name = word.substr(0, equals);
  const std::string_view value = equals == std::string_view::npos ? "" : word.substr(equals + 1);
  if (name == "lines") return parse_number(value, c.cache.lines);
  if (name == "ways") return parse_number(value, c.cache.ways);
  if (name == "cache-seed") return parse_number(value, c.seed);
  if (name == "event") return parse_number(value, c.event);
  if (name != "policy") return parse_plan_word(word, c.what);
  const auto policy = replacement_named(value);
  if (policy) c.cache.policy = *policy;
  return policy.has_value();
}

}  // namespace

std::string format_line(const cache_crash& c) {
  return fmt::format("{}{} policy={} lines={} ways={} cache-seed={} event={}", opening, format_plan(c.what),
                     name_of(c.cache.policy), c.cache.lines, c.cache.ways, c.seed, c.event);
}

bool names_cache_crash(std::string_view line) noexcept {
  return line.starts_with(opening);
}

result<cache_crash> parse_cache_line(const std::string& line) {
  cache_crash c;
  std::istringstream words(names_cache_crash(line) ? line.substr(opening.size()) : line);
  for (std::string word; words >> word;)
    if (!parse_word(word, c))
      return base::fail(errc::invalid_argument, fmt::format("'{}' is not understood in a replay line", word));
  return c;
}

}  // namespace stele::explore
