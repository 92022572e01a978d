// Ramulator's traces: of a processor ("bubbles read-address [write-address]"), of a memory
// ("0xADDRESS R|W"), and Ramulator 2's loads and stores ("LD|ST address").
//
// Bubbles are instructions that access no memory: compute. An access is to the 64-byte line that
// holds its address. A processor's write address is a line written back beside the read.
#include <sim/feed/convert_format.h>

namespace stele::sim {

namespace {

class ramulator final : public trace_format {
 public:
  format_mismatch parse_line(std::string_view line, trace_sink& to) override {
    const line_fields fields(line);
    const auto bubbles = fields.empty() ? std::nullopt : decimal(fields[0]);
    const auto read = fields.size() < 2 ? std::nullopt : either_base(fields[1]);
    const auto write = fields.size() < 3 ? std::nullopt : either_base(fields[2]);
    if (!bubbles || !read || fields.size() > 3 || (fields.size() == 3 && !write))
      return "\"bubbles read-address\" or \"bubbles read-address write-address\", addresses "
             "decimal without leading zeroes or with 0x";
    to.compute(0, *bubbles);
    to.line(false, 0, *read);
    if (write) to.line(true, 0, *write);
    return {};
  }
};

class ramulator_memory final : public trace_format {
 public:
  format_mismatch parse_line(std::string_view line, trace_sink& to) override {
    const line_fields fields(line);
    const auto address = fields.size() != 2 ? std::nullopt : hexadecimal_0x(fields[0]);
    if (!address || (fields[1] != "R" && fields[1] != "W"))
      return "\"0xADDRESS R\" or \"0xADDRESS W\"";
    to.line(fields[1] == "W", 0, *address);
    return {};
  }
};

class ramulator2 final : public trace_format {
 public:
  format_mismatch parse_line(std::string_view line, trace_sink& to) override {
    const line_fields fields(line);
    const auto address = fields.size() != 2 ? std::nullopt : either_base(fields[1]);
    if (!address || (fields[0] != "LD" && fields[0] != "ST"))
      return "\"LD address\" or \"ST address\", the address decimal without leading zeroes or with "
             "0x";
    to.line(fields[0] == "ST", 0, *address);
    return {};
  }
};

}  // namespace

std::unique_ptr<trace_format> make_ramulator() {
  return std::make_unique<ramulator>();
}
std::unique_ptr<trace_format> make_ramulator_memory() {
  return std::make_unique<ramulator_memory>();
}
std::unique_ptr<trace_format> make_ramulator2() {
  return std::make_unique<ramulator2>();
}

}  // namespace stele::sim
