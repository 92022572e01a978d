// NVMain's traces: "cycle R|W address data thread", or, when the first line is "NVMV1", "cycle R|W
// address data old-data thread". Addresses and data are hexadecimal, with or without 0x; cycles
// never decrease.
//
// The data are checked and not converted: the order of their bytes is not the same in all versions
// of NVMain.
#include <fmt/format.h>
#include <sim/feed/convert_format.h>

#include <utility>

namespace stele::sim {

namespace {

constexpr std::size_t most_digits = 256;  // of 128 bytes
constexpr std::uint64_t most_threads = 65535;

std::string_view without_0x(std::string_view text) {
  return has_0x(text) ? text.substr(2) : text;
}

bool is_data(std::string_view text) {
  text = without_0x(text);
  return !text.empty() && text.size() <= most_digits &&
         text.find_first_not_of("0123456789abcdefABCDEF") == text.npos;
}

class nvmain final : public trace_format {
 public:
  format_mismatch parse_line(std::string_view line, trace_sink& to) override {
    if (std::exchange(first_, false) && line == "NVMV1") {
      has_old_data_ = true;
      return {};
    }
    const line_fields fields(line);
    if (fields.size() != (has_old_data_ ? 6 : 5)) return form();
    const auto cycle = decimal(fields[0]);
    const auto address = hexadecimal(without_0x(fields[2]));
    const auto thread = decimal(fields.back());
    const bool data = is_data(fields[3]) && is_data(fields[has_old_data_ ? 4 : 3]);
    if (!cycle || !address || !data || !thread || *thread >= most_threads ||
        (fields[1] != "R" && fields[1] != "W"))
      return form();
    if (!clock_.accepts(*cycle))
      return fmt::format("a cycle not before that of the line before, {}", clock_.last());
    const auto number = static_cast<unsigned>(*thread);
    to.compute(number, clock_.idle_before(number, *cycle));
    to.line(fields[1] == "W", number, *address);
    return {};
  }

 private:
  std::string form() const {
    return has_old_data_
               ? "\"cycle R|W address data old-data thread\", as the first line says NVMV1"
               : "\"cycle R|W address data thread\" (with old data only after a first line NVMV1)";
  }

  bool first_ = true, has_old_data_ = false;
  request_clock clock_;
};

}  // namespace

std::unique_ptr<trace_format> make_nvmain() {
  return std::make_unique<nvmain>();
}

}  // namespace stele::sim
