// Writes and reads the line that names a crash behind a controller.
#include <explore/controller_crashes.h>
#include <explore/plan_line.h>
#include <fmt/format.h>

#include <sstream>

#include <base/check.h>

namespace stele::explore {

namespace {

constexpr std::string_view opening = "controller ";

bool parse_moment(std::string_view text, std::uint64_t& seed, std::uint64_t& persisted) {
  const auto colon = text.find(':');
  return colon != std::string_view::npos && parse_number(text.substr(0, colon), seed) &&
         parse_number(text.substr(colon + 1), persisted);
}

bool parse_word(std::string_view word, controller_crash& c) {
  const auto equals = word.find('=');
  const std::string_view name = word.substr(0, equals);
  const std::string_view value = equals == std::string_view::npos ? "" : word.substr(equals + 1);
  if (word.starts_with('+')) return c.in_recovery = parse_number(word.substr(1), c.operations);
  if (name == "at" && c.in_recovery)
    return parse_moment(value, c.recovery_seed, c.recovery_persisted);
  if (name == "at") return parse_moment(value, c.seed, c.persisted);
  if (word == "expired") return c.expired = true;
  if (name == "scheduler") return c.scheduler = value, !value.empty();
  return parse_plan_word(word, c.run_plan);
}

}  // namespace

std::string format_line(const controller_crash& c) {
  std::string text = fmt::format("{}{} scheduler={}{} at={}:{}", opening, format_plan(c.run_plan),
                                 c.scheduler, c.expired ? " expired" : "", c.seed, c.persisted);
  if (c.in_recovery)
    text += fmt::format(" +{} at={}:{}", c.operations, c.recovery_seed, c.recovery_persisted);
  return text;
}

bool names_controller_crash(std::string_view line) noexcept {
  return line.starts_with(opening);
}

result<controller_crash> parse_controller_line(const std::string& line) {
  controller_crash c;
  std::istringstream words(names_controller_crash(line) ? line.substr(opening.size()) : line);
  for (std::string word; words >> word;)
    if (!parse_word(word, c))
      return base::fail(errc::invalid_argument,
                        fmt::format("'{}' is not understood in a replay line", word));
  return c;
}

}  // namespace stele::explore
