// Text and back; see state_line.h.
#include <base/check.h>
#include <explore/hashed_image.h>
#include <fmt/format.h>
#include <foreign/state_line.h>

#include <charconv>
#include <optional>
#include <sstream>

namespace stele::foreign {

namespace {

std::optional<std::uint64_t> number_of(std::string_view text) {
  const bool is_hex = text.starts_with("0x");
  if (is_hex) text.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [end, failed] =
      std::from_chars(text.data(), text.data() + text.size(), value, is_hex ? 16 : 10);
  if (failed != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::unexpected<error> malformed(const std::string& text) {
  return base::fail(errc::invalid_argument,
                    "--replay '" + text +
                        "' is not \"POINT lost|kept OFFSET=OPTION,...\"; take "
                        "the line as it was printed");
}

}  // namespace

std::string state_line::text() const {
  std::string all = fmt::format("{} {}", point, keeps_others ? "kept" : "lost");
  const char* before = " ";
  for (const auto& [offset, option] : options) {
    all += fmt::format("{}{:#x}={}", before, offset, option);
    before = ",";
  }
  return all;
}

result<state_line> state_line::parse(const std::string& text) {
  std::istringstream words(text);
  std::string point, others, rest, excess;
  words >> point >> others >> rest >> excess;
  const auto number = number_of(point);
  if (!number || *number == 0 || (others != "kept" && others != "lost") || !excess.empty())
    return malformed(text);
  state_line line{*number, others == "kept", {}};
  std::istringstream entries(rest);
  for (std::string entry; std::getline(entries, entry, ',');) {
    const auto equals = entry.find('=');
    if (equals == entry.npos) return malformed(text);
    const auto offset = number_of(entry.substr(0, equals)),
               option = number_of(entry.substr(equals + 1));
    if (!offset || !option || *offset % explore::line_size != 0) return malformed(text);
    line.options[*offset] = *option;
  }
  return line;
}

}  // namespace stele::foreign
