// Writes schedules as words and reads them.
#include <base/check.h>
#include <explore/plan_line.h>
#include <explore/schedule/schedules.h>
#include <fmt/format.h>

namespace stele::explore {

using base::fail;

namespace {

const char* name_of(schedule::granularity g) {
  return g == schedule::granularity::locks    ? "locks"
         : g == schedule::granularity::stores ? "stores"
                                              : "loads";
}

}  // namespace

std::string format_schedule(const schedule_line& l) {
  std::string text = format_plan(l.run_plan) + fmt::format(" each={} points={}", l.concurrent.each,
                                                           name_of(l.concurrent.points));
  if (!l.concurrent.beside.empty()) text += " beside=" + l.concurrent.beside;
  if (l.concurrent.background) text += " background=1";
  if (l.concurrent.mixed) text += " mixed=1";
  for (const auto& d : l.decided) text += fmt::format(" {}:{}", d.number, d.thread);
  if (!l.crashed) return text;
  text += fmt::format(" at={}:", l.at.point);
  for (std::size_t i = 0; i < l.at.chosen.size(); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : ".", l.at.chosen[i]);
  return text;
}

namespace {

bool parse_crash(std::string_view text, schedule_line& l) {
  const auto colon = text.find(':');
  if (colon == std::string_view::npos || !parse_number(text.substr(0, colon), l.at.point))
    return false;
  l.crashed = true;
  std::string_view left = text.substr(colon + 1);
  while (!left.empty()) {
    const auto dot = std::min(left.find('.'), left.size());
    if (!parse_number(left.substr(0, dot), l.at.chosen.emplace_back())) return false;
    left.remove_prefix(std::min(dot + 1, left.size()));
  }
  return true;
}

bool parse_word(std::string_view word, schedule_line& l) {
  const auto equals = word.find('=');
  const std::string_view name = word.substr(0, equals),
                         value = equals == std::string_view::npos ? "" : word.substr(equals + 1);
  if (name == "each") return parse_number(value, l.concurrent.each);
  if (name == "beside") return l.concurrent.beside = value, true;
  if (name == "background") return l.concurrent.background = value == "1", true;
  if (name == "mixed") return l.concurrent.mixed = value == "1", true;
  if (name == "at") return parse_crash(value, l);
  if (name == "points") {
    l.concurrent.points = value == "loads"    ? schedule::granularity::loads
                          : value == "stores" ? schedule::granularity::stores
                                              : schedule::granularity::locks;
    return value == "loads" || value == "stores" || value == "locks";
  }
  if (const auto colon = word.find(':');
      equals == std::string_view::npos && colon != std::string_view::npos) {
    auto& d = l.decided.emplace_back();
    return parse_number(word.substr(0, colon), d.number) &&
           parse_number(word.substr(colon + 1), d.thread);
  }
  return parse_plan_word(word, l.run_plan);
}

}  // namespace

result<schedule_line> parse_schedule(const std::string& text) {
  schedule_line l;
  for (std::string_view left = text; !left.empty();) {
    const auto space = std::min(left.find(' '), left.size());
    const std::string_view word = left.substr(0, space);
    left.remove_prefix(std::min(space + 1, left.size()));
    if (!word.empty() && !parse_word(word, l))
      return fail(errc::invalid_argument,
                  fmt::format("'{}' is no word of a schedule's line", word));
  }
  return l;
}

}  // namespace stele::explore
