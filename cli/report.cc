// stele report: the figures of published evaluations on one HTML page, with the stated numbers
// beside the measured ones. Measures what the folder lacks, or reads a folder as it is. stele
// artefact: the same of all publications, for their claims.
#include <bench/figures/verdicts.h>
#include <cli/command.h>
#include <cli/figures.h>
#include <cli/output.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>

namespace stele::cli {
namespace {

namespace fs = std::filesystem;

struct options {
  figure_set set;
  std::string from, against;
};

// Of a folder that is only read: the evaluations that were named, else those with any figure there.
std::vector<figure> expected_in(const options& o, bool named) {
  std::vector<figure> expected;
  for (const evaluation& e : evaluations()) {
    figure_set one{.names = {e.name}, .hosts = o.set.hosts, .charges = o.set.charges, .each = {}};
    const std::vector<figure> figures = figures_of(one);
    const bool any = std::ranges::any_of(figures, [&](const figure& f) {
      return fs::exists(fs::path(o.from) / (f.name() + ".json"));
    });
    const bool wanted = named ? std::ranges::find(o.set.names, e.name) != o.set.names.end() : any;
    if (wanted) expected.insert(expected.end(), figures.begin(), figures.end());
  }
  return expected;
}

// The claims about a figure that the file has; without a sound file none of them is measured.
std::vector<bench::verdict> verdicts_in(const fs::path& file, const figure& f) {
  std::ifstream in(file);
  const auto content = nlohmann::json::parse(in, nullptr, false);
  std::vector<bench::verdict> found;
  if (content.is_object() && content.contains("verdicts"))
    for (const nlohmann::json& one : content["verdicts"])
      if (auto v = bench::verdict_in(one)) found.push_back(std::move(*v));
  return found.empty() ? bench::unmeasured_verdicts(f.of->name, f.number) : found;
}

constexpr const char* claims_file = "claims.json";
using earlier_claims = std::optional<std::vector<bench::verdict>>;

// Of an earlier report.
std::vector<bench::verdict> claims_in(const std::string& folder) {
  const std::string file = (fs::path(folder) / claims_file).string();
  std::ifstream in(file);
  if (!in)
    fail(fmt::format("--against {}: there is no {}; name the --out of a report", folder, file));
  const auto content = nlohmann::json::parse(in, nullptr, false);
  std::vector<bench::verdict> all;
  if (content.is_object() && content.contains("claims") && content["claims"].is_array())
    for (const nlohmann::json& one : content["claims"])
      if (auto v = bench::verdict_in(one)) all.push_back(std::move(*v));
  if (all.empty())
    fail(
        fmt::format("--against {}: {} has no claims that stele report wrote; name the --out of a "
                    "report",
                    folder, file));
  return all;
}

// One table of all claims: printed, and beside the page, which begins with it.
void write_claims(const std::string& from, const fs::path& page, const std::vector<figure>& figures,
                  const earlier_claims& then) {
  std::vector<bench::verdict> all;
  for (const figure& f : figures)
    bench::merge(all, verdicts_in(fs::path(from) / (f.name() + ".json"), f));
  if (all.empty()) return;
  fmt::print("{}", bench::table_of(all));
  nlohmann::json claims = nlohmann::json::array();
  for (const bench::verdict& v : all) claims.push_back(bench::json_of(v));
  write_json((page.parent_path() / claims_file).string(), {{"claims", std::move(claims)}});
  if (then) fmt::print("\nagainst the earlier report: {}", bench::comparison_of(all, *then));
}

// tools/report prints what it wrote, or why it could not.
void write_page(const std::string& from, const std::string& page,
                const std::vector<figure>& expected, const earlier_claims& then) {
  write_claims(from, page, expected, then);
  std::vector<std::string> words = {STELE_REPORT, from, page};
  for (const figure& f : expected) words.push_back(f.name());
  const int status = run_program(words);
  if (status == -1) fail(fmt::format("no page {}: cannot run {}", page, STELE_REPORT));
  if (status != 0) throw CLI::RuntimeError(status);
}

void run_from_folder(const options& o, bool named, const earlier_claims& then) {
  if (!fs::is_directory(o.from)) fail(fmt::format("--from {} is not a directory", o.from));
  std::error_code problem;
  fs::create_directories(o.set.each.out, problem);
  if (problem) fail(fmt::format("--out {}: {}", o.set.each.out, problem.message()));
  write_page(o.from, fs::path(o.set.each.out) / "report.html", expected_in(o, named), then);
}

void run(const options& o, bool named) {
  earlier_claims then;
  if (!o.against.empty()) then = claims_in(o.against);  // before it measures for an hour
  if (!o.from.empty()) return run_from_folder(o, named, then);
  const bool whole = measure(o.set);
  write_page(o.set.each.out, fs::path(o.set.each.out) / "report.html", figures_of(o.set), then);
  if (!whole) throw CLI::RuntimeError(interrupted() ? 130 : 1);
}

// Of a report of all claims: fewer runs, so that it ends in hours.
void run_artefact(options o, bool full, bool list) {
  for (const evaluation& e : evaluations()) o.set.names.emplace_back(e.name);
  o.set.charges = true, o.set.claimed = !full, o.set.hosts = full;
  if (!full && o.set.each.runs == 0) o.set.each.runs = 3;
  if (!full && o.set.each.seeds == 0) o.set.each.seeds = 1;
  if (!list) return run(o, true);
  for (const figure& f : figures_of(o.set))
    fmt::print("{:<20} {} claims\n", f.name(),
               bench::unmeasured_verdicts(f.of->name, f.number).size());
}

void add_out(CLI::App& command, options& o) {
  command
      .add_option("--out", o.set.each.out,
                  "the directory for report.html, and for tables, JSON and pictures as of figure "
                  "all, whose figures there are used")
      ->required();
}
void add_against(CLI::App& command, options& o) {
  command.add_option("--against", o.against,
                     "the --out of an earlier report: prints which claims are measured otherwise");
}

}  // namespace

void add_artefact(CLI::App& app) {
  const auto o = std::make_shared<options>();
  const auto full = std::make_shared<bool>(false), list = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand(
      "artefact",
      "every claim of the five publications, judged by what is measured here: one page, a table of "
      "claims first; a second call goes on where the first one ended");
  add_out(*command, *o);
  add_against(*command, *o);
  command->add_flag(
      "--full", *full,
      "a night: figures without claims and the hosts sqlite and redis too, and 5 runs "
      "and seeds; default: 3 runs, 1 seed");
  command->add_flag("--list", *list, "only print which figures it measures");
  command->add_flag("--again", o->set.again, "measure figures too that the folder has");
  add_options(*command, o->set.each);
  command->callback([o, full, list] { run_artefact(*o, *full, *list); });
}

void add_report(CLI::App& app) {
  const auto o = std::make_shared<options>();
  CLI::App* command = app.add_subcommand(
      "report", "one HTML page of the figures of published evaluations, measured here");
  add_out(*command, *o);
  command->add_option("--from", o->from,
                      "a directory with JSON files of figures: nothing is measured");
  add_against(*command, *o);
  add_options(*command, o->set);
  command->callback([o, command] { run(*o, command->count("evaluations") != 0); });
}

}  // namespace stele::cli
