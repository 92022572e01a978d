// The subcommands of `stele`. Each subcommand is one file x.cc with a function add_x, which
// declares the options and the callback.
//
// A callback reports failure by calling fail(), which throws. run() turns the exception into the
// exit status.
#pragma once

#include <stele/error.h>
#include <stele/progress.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>

namespace stele::cli {

void add_bench(CLI::App& app);
void add_compare(CLI::App& app);
void add_demo(CLI::App& app);
void add_figure(CLI::App& app);
void add_kv(CLI::App& app);
void add_manual(CLI::App& app, const std::string& version);
void add_pool(CLI::App& app);
void add_report(CLI::App& app);
void add_artefact(CLI::App& app);
void add_sim(CLI::App& app);
void add_sqlite(CLI::App& app);
void add_tape(CLI::App& app);

// Parses the arguments and runs the subcommand. Returns the program's exit status.
int run(CLI::App& app, int argc, char** argv, const std::string& version);

// `stele crash` is the program stele-crash: it has assertions, which the other commands have not.
inline constexpr const char* crash_program = "stele-crash";
bool is_crash_command(int argc, char** argv);

// Replaces this process by the program of that name in this program's folder. Returns only if it
// cannot: the exit status, after a message. Changes argv[0].
int exec_beside(const char* program, char** argv);

// Writes the message to standard error and ends the command with exit status 1.
[[noreturn]] void fail(const std::string& message);
[[noreturn]] inline void fail(const error& e) {
  fail(e.message);
}
template <class T>
T value_or_fail(result<T> r) {
  if (!r) fail(r.error());
  return std::move(*r);
}

// Writes to the file; "-" is standard output. Fails the command when it cannot. write_json
// sorts the keys, write_ordered_json keeps their order.
// write_text appends a line end. In JSON, U+FFFD takes the place of bytes that are not UTF-8: names
// of files may have such.
// content_of: the pool that it was read from, if it is content: a new file is no more open to
// others.
void write_text(const std::string& file, const std::string& text,
                const std::string& content_of = "");
void write_json(const std::string& file, const nlohmann::json& content,
                const std::string& content_of = "");
void write_ordered_json(const std::string& file, const nlohmann::ordered_json& content);

// After the first call, the first interrupt (^C, SIGTERM) does not end the process; it makes this
// function return true. A second interrupt ends the process.
bool interrupted();

// Shows progress on a terminal while the work is long. An interrupt stops the work.
progress progress_on_stderr(const char* what);

// Accepts 65536, 64K, 64M, 64MiB, 1G, 1T. Fails the command on other texts.
std::size_t parse_size(const std::string& text);

}  // namespace stele::cli
