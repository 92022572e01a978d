// Valgrind's lackey with --trace-mem=yes: "I  address,size", " L address,size", " S address,size",
// " M address,size", addresses in hexadecimal. Valgrind's own lines begin with two equals signs and
// are skipped.
//
// An instruction that accesses memory counts as its first access; other instructions are compute. M
// is a load and a store.
#include <sim/feed/convert_format.h>

#include <utility>

namespace stele::sim {

namespace {

constexpr std::uint64_t longest_access = 4096;

class lackey final : public trace_format {
 public:
  format_mismatch parse_line(std::string_view line, trace_sink& to) override {
    if (line.starts_with("==")) return {};
    const char kind = line.starts_with("I  ")                               ? 'I'
                      : line.size() > 3 && line[0] == ' ' && line[2] == ' ' ? line[1]
                                                                            : '?';
    const std::size_t comma = line.find(',');
    if (kind == '?' || comma == line.npos) return form();
    const auto address = hexadecimal(line.substr(3, comma - 3));
    const auto size = decimal(line.substr(comma + 1));
    if (!address || !size || *size == 0 || *size > longest_access) return form();
    if (kind == 'I') {
      ++instructions_;
      is_access_ = false;
      return {};
    }
    if (kind != 'L' && kind != 'S' && kind != 'M') return form();
    access(kind, *address, static_cast<std::uint32_t>(*size), to);
    return {};
  }
  void finish(trace_sink& to) override { to.compute(0, instructions_); }

 private:
  static std::string form() {
    return "\"I  address,size\", \" L address,size\", \" S ..\" or \" M ..\" with a hexadecimal "
           "address and a size from 1 to 4096, or a line of valgrind (\"==\")";
  }

  void access(char kind, std::uint64_t address, std::uint32_t size, trace_sink& to) {
    if (!is_access_ && instructions_ != 0) --instructions_;
    is_access_ = true;
    to.compute(0, std::exchange(instructions_, 0));
    if (kind != 'S') to.load(0, address, size);
    if (kind != 'L') to.store(0, address, size);
  }

  std::uint64_t instructions_ = 0;  // since the last access
  bool is_access_ = false;          // the last instruction had an access
};

}  // namespace

std::unique_ptr<trace_format> make_lackey() {
  return std::make_unique<lackey>();
}

}  // namespace stele::sim
