// One line for each command.
#include <base/check.h>
#include <fmt/format.h>
#include <sim/controller/command_trace.h>
#include <unistd.h>

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

result<std::unique_ptr<command_trace>> command_trace::reopen(const std::string& path,
                                                             memory_system& memory) {
  std::FILE* const file = std::fopen(path.c_str(), "r+");
  if (file == nullptr)
    return base::fail_errno(errc::io,
                            fmt::format("cannot go on with the commands in {}; give --commands the "
                                        "name that the run had",
                                        path));
  std::unique_ptr<command_trace> trace(new command_trace(path, file, memory));
  trace->keep();
  return trace;
}

result<> command_trace::sync() {
  const bool done = std::fflush(file_) == 0 && (::fdatasync(fileno(file_)) == 0 || errno == EINVAL);
  const long at = done ? std::ftell(file_) : 0;
  if (!done || at < 0) return base::fail_errno(errc::io, fmt::format("cannot write {}", path_));
  written_ = static_cast<std::uint64_t>(at);
  return {};
}

void command_trace::visit_state(archive& a) {
  a(written_, column_);
}

result<> command_trace::go_on() {
  std::error_code none;
  const std::uint64_t size = std::filesystem::file_size(path_, none);
  if (none || size < written_)
    return base::fail(errc::invalid_argument,
                      fmt::format("{} is shorter than the {} bytes that it had at the checkpoint; "
                                  "give --commands the name that the run had",
                                  path_, written_));
  if (::ftruncate(fileno(file_), static_cast<off_t>(written_)) != 0 ||
      std::fseek(file_, 0, SEEK_END) != 0)
    return base::fail_errno(errc::io, fmt::format("cannot write {}", path_));
  return {};
}

command_trace::~command_trace() {
  if (file_ == nullptr) return;
  memory_.observe_commands(nullptr);
  std::fclose(file_);
  if (!keeps_) remove_file();
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
  if (!keeps_) remove_file();
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
