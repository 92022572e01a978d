// DRAMsim3's traces: "0xADDRESS READ|WRITE cycle". Cycles are those of the memory's clock and never
// decrease.
#include <fmt/format.h>
#include <sim/feed/convert_format.h>

namespace stele::sim {

namespace {

class dramsim3 final : public trace_format {
 public:
  format_mismatch parse_line(std::string_view line, trace_sink& to) override {
    const line_fields fields(line);
    const auto address = fields.size() != 3 ? std::nullopt : hexadecimal_0x(fields[0]);
    const auto cycle = fields.size() != 3 ? std::nullopt : decimal(fields[2]);
    if (!address || !cycle || (fields[1] != "READ" && fields[1] != "WRITE"))
      return "\"0xADDRESS READ cycle\" or \"0xADDRESS WRITE cycle\"";
    if (!clock_.accepts(*cycle))
      return fmt::format("a cycle not before that of the line before, {}", clock_.last());
    to.compute(0, clock_.idle_before(0, *cycle));
    to.line(fields[1] == "WRITE", 0, *address);
    return {};
  }

 private:
  request_clock clock_;
};

}  // namespace

std::unique_ptr<trace_format> make_dramsim3() {
  return std::make_unique<dramsim3>();
}

}  // namespace stele::sim
