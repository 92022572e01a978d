// The subcommands of `stele`: each is one file x.cc with an add_x that declares its options and
// what it does.
//
// A subcommand reports failure by throwing from its callback what fail() throws; main turns that
// into the exit status.
#pragma once

#include <stele/error.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace stele::cli {

void add_bench(CLI::App& app);
void add_compare(CLI::App& app);
void add_crash(CLI::App& app);
void add_demo(CLI::App& app);
void add_figure(CLI::App& app);
void add_manual(CLI::App& app, const std::string& version);
void add_pool(CLI::App& app);
void add_sim(CLI::App& app);
void add_tape(CLI::App& app);

// Parses and runs. Returns the program's exit status.
int run(CLI::App& app, int argc, char** argv, const std::string& version);

// Says the error on standard error and ends the command with status 1.
[[noreturn]] void fail(const std::string& message);
[[noreturn]] inline void fail(const error& e) {
  fail(e.message);
}

// Writes to the file; "-" is standard output. Fails the command when it cannot. Keys are sorted, or
// stay in their order.
void write_json(const std::string& file, const nlohmann::json& content);
void write_ordered_json(const std::string& file, const nlohmann::ordered_json& content);

// From the first call on, an interrupt (^C, SIGTERM) no longer ends the process but makes this
// true; a second one ends it.
bool interrupted();

}  // namespace stele::cli
