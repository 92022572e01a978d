// What `stele figure` and `stele report` share: the published evaluations, the options of
// measuring, and the files of a figure: NAME.txt, NAME.json and NAME.png in the folder `out`.
//
// A JSON file appears whole or not at all. It says what it was measured with (`origin`): machine,
// build, settings. A set of figures keeps a complete file whose origin is that of this command, so
// an interrupted command goes on where it ended.
#pragma once

#include <bench/figures/charge_rule.h>
#include <bench/figures/chart.h>
#include <bench/figures/sweep.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace stele::cli {

// A published evaluation.
struct evaluation {
  const char *name, *about, *keys_help;
  std::vector<std::string> (*figures)();
  result<bench::chart> (*measure)(std::string_view figure, const bench::sweep_options& o);
  std::vector<std::string> (*hosted_figures)(std::string_view host) =
      nullptr;  // null: no figure has a host
  // The charging rules, the first of which is used unless another is named, and the figures that
  // they act on. Null: there are none.
  std::span<const bench::charge_rule> (*charges)() noexcept = nullptr;
  std::vector<std::string> (*timed_figures)() = nullptr;
};
std::span<const evaluation> evaluations() noexcept;

// How figures are measured, and where their files go.
struct figure_options {
  bench::sweep_options sweep;
  std::string out, dir;  // `out` empty: no files
  std::size_t keys = 0;  // 0, and `runs` or `seeds` 0: as the sweep has it
  unsigned runs = 0, seeds = 0;
  bool quick = false;
};
void add_options(CLI::App& command, figure_options& o);

// Settles the sweep, makes the folder `out` and enters the scratch folder. Before any thread
// starts. Fails the command.
void prepare(figure_options& o);

struct figure {
  const evaluation* of;
  std::string number, host;  // host: empty for most
  std::string charge = {};   // its charging rule by name; empty: the first, or none
  std::string name() const;  // of its files: blurred-9, archapt-7-redis, blurred-9-once
};

// Measures a figure and writes its files. When that fails, nullopt; the error is printed. What is
// in progress is shown on a terminal behind `place`.
struct measured_figure {
  bench::chart chart;
  nlohmann::json json;
};
std::optional<measured_figure> measure(const figure& f, const figure_options& o,
                                       const std::string& place);

// Figures of several evaluations.
struct figure_set {
  std::vector<std::string> names;  // of evaluations
  bool hosts = false;              // those of the hosts redis and sqlite too
  bool again = false;              // no file is kept
  bool charges = false;            // timed figures under each charging rule
  bool claimed = false;            // only figures that a claim is about
  figure_options each;
};
void add_options(CLI::App& command, figure_set& set);
std::vector<figure> figures_of(const figure_set& set);

// Measures those that are not kept, and prints a line for each. False: a figure failed, or the
// command was interrupted.
bool measure(const figure_set& set);

// Runs a program to its end, which an interrupt does not hasten. Its exit status; -1 when it cannot
// be run or was killed.
int run_program(std::vector<std::string> words);

}  // namespace stele::cli
