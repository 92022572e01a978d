// Shared by the subcommands: failing, writing JSON, handling interrupts.
#include <cli/command.h>
#include <cli/output.h>
#include <fmt/format.h>

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>
#include <system_error>

namespace stele::cli {
namespace {

volatile std::sig_atomic_t was_interrupted = 0;

void on_interrupt(int) {
  was_interrupted = 1;
}

bool watch_interrupts() {
  struct sigaction action{};
  action.sa_handler = on_interrupt;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  return true;
}

}  // namespace

static int run_command(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::RuntimeError& e) {
    return e.get_exit_code();  // fail() has printed the message
  } catch (const CLI::ParseError& e) {
    std::ostringstream out, refusal;
    const int status = app.exit(e, out, refusal);
    fmt::print("{}", out.str());
    print_error_text(refusal.str());
    return status;
  } catch (const std::exception& e) {
    print_error("stele: {}\n", e.what());
    return 1;
  }
  return 0;
}

int run(CLI::App& app, int argc, char** argv, const std::string& version) {
  app.require_subcommand(1);
  app.set_version_flag("--version",
                       fmt::format("stele {} (pool format 2, tape formats 1 and 2)", version));
  const int status = run_command(app, argc, argv);
  try {
    check_standard_output();
  } catch (const CLI::RuntimeError& e) {
    return status != 0 ? status : e.get_exit_code();
  }
  return status;
}

bool is_crash_command(int argc, char** argv) {
  return argc > 1 && argv[1] == std::string_view("crash");
}

int exec_beside(const char* program, char** argv) {
  std::error_code none;
  const std::string path =
      std::filesystem::read_symlink("/proc/self/exe", none).parent_path() / program;
  argv[0] = const_cast<char*>(path.c_str());
  ::execv(path.c_str(), argv);
  print_error("stele: {} cannot be run ({}); build it with `make build`\n", path,
              std::generic_category().message(errno));
  return 2;
}

void fail(const std::string& message) {
  print_error("stele: {}\n", message);
  throw CLI::RuntimeError(1);
}

void write_text(const std::string& file, const std::string& text, const std::string& content_of) {
  output out(file, content_of);
  out.write(text);
  out.write("\n");
  out.keep();
}

void write_json(const std::string& file, const nlohmann::json& content,
                const std::string& content_of) {
  write_text(file, content.dump(2, ' ', false, nlohmann::json::error_handler_t::replace),
             content_of);
}
void write_ordered_json(const std::string& file, const nlohmann::ordered_json& content) {
  write_text(file, content.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

bool interrupted() {
  static const bool watching = watch_interrupts();
  return watching && was_interrupted != 0;
}

progress progress_on_stderr(const char* what) {
  return [what, watched = isatty(STDERR_FILENO) != 0, last = std::uint64_t{101}](
             std::uint64_t done, std::uint64_t all) mutable {
    const std::uint64_t percent = all == 0 ? 100 : done * 100 / all;
    if (watched && percent != last)
      print_error("\r\033[K{}: {} %{}", what, last = percent, percent == 100 ? "\n" : "");
    return !interrupted();
  };
}

std::size_t parse_size(const std::string& text) {
  std::size_t used = 0;
  unsigned long long value = 0;
  try {
    value = std::stoull(text, &used);
  } catch (const std::exception&) {
    fail(fmt::format("'{}' is no size; write bytes, or a number with K, M, G or T", text));
  }
  static constexpr std::string_view units = "KMGT";
  const std::string unit = text.substr(used);
  if (text.starts_with('-')) fail(fmt::format("'{}' is no size: it is negative", text));
  if (unit.empty()) return value;
  const auto at = units.find(static_cast<char>(std::toupper(unit[0])));
  if (at == std::string_view::npos ||
      (unit.size() > 1 && unit.substr(1) != "iB" && unit.substr(1) != "B"))
    fail(fmt::format("'{}' is no size; write bytes, or a number with K, M, G or T", text));
  const unsigned shift = 10 * (static_cast<unsigned>(at) + 1);
  if (value > (~0ull >> shift)) fail(fmt::format("'{}' is more than any file can hold", text));
  return static_cast<std::size_t>(value << shift);
}

}  // namespace stele::cli
