// Shared by the subcommands: failing, writing JSON, handling interrupts.
#include <cli/command.h>
#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

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

void write_text(const std::string& file, const std::string& text) {
  if (file == "-") {
    std::cout << text << '\n' << std::flush;
    if (!std::cout) fail("cannot write to standard output");
    return;
  }
  std::ofstream out(file);
  out << text << '\n' << std::flush;
  if (!out) fail(fmt::format("cannot write {}", file));
}

}  // namespace

int run(CLI::App& app, int argc, char** argv, const std::string& version) {
  app.require_subcommand(1);
  app.set_version_flag("--version",
                       fmt::format("stele {} (pool format 2, tape formats 1 and 2)", version));
  try {
    app.parse(argc, argv);
  } catch (const CLI::RuntimeError& e) {
    return e.get_exit_code();  // fail() has printed the message
  } catch (const CLI::ParseError& e) {
    return app.exit(e);
  } catch (const std::exception& e) {
    fmt::print(stderr, "stele: {}\n", e.what());
    return 1;
  }
  return 0;
}

void fail(const std::string& message) {
  fmt::print(stderr, "stele: {}\n", message);
  throw CLI::RuntimeError(1);
}

void write_json(const std::string& file, const nlohmann::json& content) {
  write_text(file, content.dump(2));
}
void write_ordered_json(const std::string& file, const nlohmann::ordered_json& content) {
  write_text(file, content.dump(2));
}

bool interrupted() {
  static const bool watching = watch_interrupts();
  return watching && was_interrupted != 0;
}

}  // namespace stele::cli
