// One line for each command.
#include <base/check.h>
#include <fmt/format.h>
#include <sim/controller/command_trace.h>

#include <array>
#include <filesystem>

namespace stele::sim {
namespace {

constexpr std::array words = {"activate", "precharge", "read", "write", "refresh"};

}  // namespace

command_trace::command_trace(std::string path, std::FILE* file, memory_system& memory)
    : path_(std::move(path)),
      file_(file),
      memory_(memory),
      cycle_(std::max<picoseconds>(1, from_ns(memory.config().clock_ns))) {
  memory_.observe_commands(this);
}

result<std::unique_ptr<command_trace>> command_trace::open(const std::string& path,
                                                           memory_system& memory) {
  std::FILE* const file = std::fopen(path.c_str(), "w");
  if (file == nullptr) return base::fail_errno(errc::io, fmt::format("cannot write {}", path));
  return std::unique_ptr<command_trace>(new command_trace(path, file, memory));
}

command_trace::~command_trace() {
  if (file_ == nullptr) return;
  memory_.observe_commands(nullptr);
  std::fclose(file_);
  remove_file();
}

// A file that ends early could be taken for a whole trace. What is no regular file stays.
void command_trace::remove_file() const {
  std::error_code none;
  if (std::filesystem::is_regular_file(path_, none)) std::filesystem::remove(path_, none);
}

void command_trace::issued(const command_report& r) {
  if (column_) write(*column_, r.automatic);
  column_.reset();
  if (r.automatic) return;
  if (moves_data(r.what))
    column_ = r;
  else
    write(r, false);
}

result<> command_trace::finish() {
  if (column_) write(*column_, false);
  memory_.observe_commands(nullptr);
  const bool wrong = std::ferror(file_) != 0;
  const bool closed = std::fclose(std::exchange(file_, nullptr)) == 0;
  if (!wrong && closed) return {};
  auto failure = base::fail_errno(errc::io, fmt::format("cannot write {}", path_));
  remove_file();
  return failure;
}

void command_trace::write(const command_report& r, bool closes) {
  const memory_config& c = memory_.config();
  const bool of_banks = r.what == command::refresh && c.refresh == "same-bank";
  const std::string word = std::string(words[static_cast<unsigned>(r.what)]) + (closes     ? "_p"
                                                                                : of_banks ? "_bank"
                                                                                           : "");
  const unsigned group = r.bank / c.banks % c.bank_groups;
  fmt::print(file_, "{:<18} {:<20} {:>3} {:>3} {:>3} {:>3} {:>#8x} {:>#8x}\n", r.at / cycle_, word,
             r.channel, r.rank, group, r.bank % c.banks, r.row == no_row ? 0 : r.row,
             moves_data(r.what) ? memory_.address_map().column_of(r.address) : 0);
}

}  // namespace stele::sim
