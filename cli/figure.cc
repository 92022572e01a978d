// stele figure blurred|lsnvmm|dp2|kiln|archapt: measures the figures of published evaluations on
// this machine; writes tables, JSON and pictures.
#include <bench/figures/archapt.h>
#include <bench/figures/blurred.h>
#include <bench/figures/dp2.h>
#include <bench/figures/kiln.h>
#include <bench/figures/lsnvmm.h>
#include <cli/command.h>
#include <cli/scratch.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

namespace stele::cli {
namespace {

// A published evaluation.
struct evaluation {
  const char *name, *about, *figures_help, *keys_help;
  std::vector<std::string> (*figures)();
  result<bench::chart> (*measure)(std::string_view figure, const bench::sweep_options& o);
  std::vector<std::string> (*hosted_figures)(std::string_view host) =
      nullptr;  // null: no figure has a host
};
constexpr evaluation evaluations[] = {
    {"blurred", "Lu, Shu and Sun, \"Blurred Persistence\" (2016), section 5",
     "9 to 17, II (also table2), or all",
     "size of the key space; default: 2^18, where values are large 2^15, with --quick 2^14",
     bench::blurred_figures, bench::measure_blurred},
    {"lsnvmm",
     "Hu, Ren, Badam, Shu, Moscibroda, \"Log-Structured Non-Volatile Main Memory\" (2017), section "
     "5",
     "4 to 13, or all",
     "size of the key space, half of it filled; default: 2^18, figure 10 2^16, with --quick 2^14",
     bench::lsnvmm_figures, bench::measure_lsnvmm},
    {"dp2",
     "Sun, Lu, Shu, \"DP2: Reducing Transaction Overhead with Differential and Dual Persistency in "
     "Persistent Memory\" (2015), section 4",
     "2, 5 to 10, endurance, or all",
     "size of the key space of what is emulated; default: 2^15, with --quick 2^14",
     bench::dp2_figures, bench::measure_dp2},
    {"kiln", "Zhao, Li, Yoon, Xie, Jouppi, \"Kiln\" (2013), sections 1 and 6",
     "1, 6 to 11, overflow, sensitivity, or all",
     "size of the key space of small elements; default: 2^20, with --quick 2^12",
     bench::kiln_figures, bench::measure_kiln},
    {"archapt",
     "Wu, Ren and Li, \"Architecture-Aware, High Performance Transaction for Persistent Memory\" "
     "(2019), sections II and V",
     "2, 3, 6 to 10, I, IV, or all", "records, and rows of stock; default: 2^16, with --quick 2^12",
     bench::archapt_figures, bench::measure_archapt, bench::archapt_hosted_figures}};

struct options {
  const evaluation* of = nullptr;
  bench::sweep_options sweep;
  std::string figure, out, dir, json;
  std::size_t keys = 0;
  bool quick = false;
};

std::vector<std::string> wanted_figures(const evaluation& of, const std::string& named) {
  if (named == "all") return of.figures();
  for (const auto& [number, name] : {std::pair{'1', "I"}, {'2', "II"}, {'4', "IV"}})
    if (named == fmt::format("table{}", number)) return {name};
  return {named == "ii" ? "II" : named};
}

std::string check_figure(const evaluation& of, const std::string& named) {
  const auto names = of.figures();
  if (named == "all" || std::ranges::find(names, wanted_figures(of, named).front()) != names.end())
    return {};
  return fmt::format("there is no figure '{}'; choose one of {}, all", named,
                     fmt::join(names, ", "));
}

// tools/plot prints the reason when it cannot draw.
void draw(const std::string& json_file, const std::string& picture) {
  std::string program = STELE_PLOT, from = json_file, to = picture;
  char* const arguments[] = {program.data(), from.data(), to.data(), nullptr};
  pid_t child = 0;
  int status = 0;
  if (posix_spawn(&child, program.c_str(), nullptr, nullptr, arguments, environ) != 0 ||
      ::waitpid(child, &status, 0) != child)
    return fmt::print(stderr,
                      "no picture {}: cannot run {}; the table and the JSON file are complete\n",
                      picture, program);
}

void write_text(const std::string& file, const std::string& text) {
  std::ofstream out(file);
  out << text << std::flush;
  if (!out) fail(fmt::format("cannot write {}", file));
}

void write_files(const options& o, const bench::chart& c) {
  if (o.out.empty()) return;
  const std::string stem = (std::filesystem::path(o.out) / c.name).string();
  write_text(stem + ".txt", bench::table_of(c));
  write_json(stem + ".json", bench::json_of(c));
  draw(stem + ".json", stem + ".png");
}

// On a terminal, one line that is rewritten; elsewhere, one line for each figure.
std::function<void(const std::string&)> progress_of(const std::string& figure) {
  if (isatty(STDERR_FILENO) == 0) {
    fmt::print(stderr, "figure {} ...\n", figure);
    return [](const std::string&) {};
  }
  return [figure](const std::string& what) {
    fmt::print(stderr, "\r\033[Kfigure {}: {}", figure, what);
  };
}

// False when the figure could not be measured; then the error has been printed.
bool redraw(const options& o, const std::string& figure, nlohmann::json& all) {
  bench::sweep_options sweep = o.sweep;
  sweep.progress = progress_of(figure);
  const auto c = o.of->measure(figure, sweep);
  if (isatty(STDERR_FILENO) != 0) fmt::print(stderr, "\r\033[K");
  if (!c) return fmt::print(stderr, "stele: figure {}: {}\n", figure, c.error().message), false;
  fmt::print(o.json == "-" ? stderr : stdout, "{}\n", bench::table_of(*c));
  std::fflush(stdout);
  write_files(o, *c);
  all.push_back(bench::json_of(*c));
  return true;
}

void check(options& o) {
  if (o.quick) bench::make_quick(o.sweep);
  if (o.keys != 0)
    o.sweep.keys = o.sweep.large_keys = o.sweep.kiln_keys = o.sweep.archapt_keys = o.keys;
  std::error_code problem;
  if (!o.out.empty()) std::filesystem::create_directories(o.out, problem);
  if (problem) fail(fmt::format("--out {}: {}", o.out, problem.message()));
  o.sweep.dir = enter_scratch(!o.dir.empty() ? o.dir : folder_in_memory());
}

void run(options& o) {
  check(o);
  o.sweep.cancelled = interrupted;
  nlohmann::json all = nlohmann::json::array();
  bool measured = true;
  const bool all_hosted = o.figure == "all" && !o.sweep.host.empty();
  for (const std::string& figure :
       all_hosted ? o.of->hosted_figures(o.sweep.host) : wanted_figures(*o.of, o.figure))
    if (!interrupted()) measured = redraw(o, figure, all) && measured;
  if (!o.json.empty()) write_json(o.json, {{"figures", all}});
  if (interrupted()) throw CLI::RuntimeError(130);
  if (!measured) throw CLI::RuntimeError(1);
}

void add_evaluation(CLI::App& group, const evaluation& e) {
  const auto o = std::make_shared<options>();
  o->of = &e;
  CLI::App* command = group.add_subcommand(e.name, e.about);
  command->add_option("--figure", o->figure, e.figures_help)
      ->required()
      ->check([&e](const std::string& named) { return check_figure(e, named); });
  command->add_option(
      "--out", o->out,
      "a directory for tables, JSON and pictures; default: the table is printed and that is all");
  command->add_flag("--quick", o->quick,
                    "short runs on small structures: to see that it works, not to quote");
  command->add_option("--keys", o->keys, e.keys_help)->check(CLI::PositiveNumber);
  command->add_option("--seed", o->sweep.seed, "of content and operations")->capture_default_str();
  command->add_option("--dir", o->dir, "where pools are created; default /dev/shm");
  if (e.hosted_figures != nullptr)
    command->add_option("--host", o->sweep.host,
                        fmt::format("sqlite: the mixes are SQL transactions of it; figures {}; "
                                    "redis: commands and scripts of its clients; figures {}",
                                    fmt::join(e.hosted_figures("sqlite"), ", "),
                                    fmt::join(e.hosted_figures("redis"), ", ")));
  command->add_option("--json", o->json, "write all figures to FILE; - is standard output");
  command->callback([o] { run(*o); });
}

}  // namespace

void add_figure(CLI::App& app) {
  CLI::App* group =
      app.add_subcommand("figure", "the figures of published evaluations, measured here");
  group->require_subcommand(1);
  for (const evaluation& e : evaluations) add_evaluation(*group, e);
}

}  // namespace stele::cli
