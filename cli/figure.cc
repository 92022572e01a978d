// stele figure blurred|lsnvmm|dp2|kiln|archapt: measures the figures of a published evaluation on
// this machine; writes tables, JSON and pictures. stele figure all: those of several evaluations,
// as far as a folder does not have them.
#include <cli/command.h>
#include <cli/figures.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

namespace stele::cli {
namespace {

struct options {
  const evaluation* of = nullptr;
  figure_options each;
  std::string figure, json;
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

// False when the figure could not be measured; then the error has been printed.
bool redraw(const options& o, const std::string& number, nlohmann::json& all) {
  const auto m =
      measure(figure{o.of, number, o.each.sweep.host, o.each.sweep.charge}, o.each, number);
  if (!m) return false;
  fmt::print(o.json == "-" ? stderr : stdout, "{}\n", bench::table_of(m->chart));
  std::fflush(stdout);
  all.push_back(m->json);
  return true;
}

// Of `all`: those with the host, or those that the charging rule acts on.
std::vector<std::string> numbers_of(const options& o) {
  const bench::sweep_options& sweep = o.each.sweep;
  if (o.figure == "all" && !sweep.host.empty()) return o.of->hosted_figures(sweep.host);
  if (o.figure == "all" && !sweep.charge.empty()) return o.of->timed_figures();
  return wanted_figures(*o.of, o.figure);
}

void run(options& o) {
  prepare(o.each);
  nlohmann::json all = nlohmann::json::array();
  bool measured = true;
  for (const std::string& number : numbers_of(o))
    if (!interrupted()) measured = redraw(o, number, all) && measured;
  if (!o.json.empty()) write_json(o.json, {{"figures", all}});
  if (interrupted()) throw CLI::RuntimeError(130);
  if (!measured) throw CLI::RuntimeError(1);
}

// The first rule is stored as no rule, so that its files have one name.
void add_charge(CLI::App& command, const evaluation& e, const std::shared_ptr<options>& o) {
  const auto rules = e.charges();
  std::vector<std::string> meanings;
  for (const bench::charge_rule& rule : rules)
    meanings.push_back(fmt::format("{}: {}", rule.name, rule.meaning));
  const std::string first = rules.front().name;
  command
      .add_option_function<std::string>(
          "--charge",
          [o, first](const std::string& name) { o->each.sweep.charge = name == first ? "" : name; },
          fmt::format("the charging rule of all timed figures ({}): {}; default: {}",
                      fmt::join(e.timed_figures(), ", "), fmt::join(meanings, "; "), first))
      ->check([rules](const std::string& name) {
        return name.empty() || bench::find_charge(rules, name) == nullptr
                   ? bench::unknown_charge(rules, name)
                   : std::string();
      });
}

void add_evaluation(CLI::App& group, const evaluation& e) {
  const auto o = std::make_shared<options>();
  o->of = &e;
  CLI::App* command = group.add_subcommand(e.name, e.about);
  command
      ->add_option("--figure", o->figure, fmt::format("{}, or all", fmt::join(e.figures(), ", ")))
      ->required()
      ->check([&e](const std::string& named) { return check_figure(e, named); });
  command->add_option(
      "--out", o->each.out,
      "a directory for tables, JSON and pictures; default: the table is printed and that is all");
  command->add_option("--keys", o->each.keys, e.keys_help)->check(CLI::PositiveNumber);
  add_options(*command, o->each);
  if (e.hosted_figures != nullptr)
    command->add_option("--host", o->each.sweep.host,
                        fmt::format("sqlite: the mixes are SQL transactions of it; figures {}; "
                                    "redis: commands and scripts of its clients; figures {}",
                                    fmt::join(e.hosted_figures("sqlite"), ", "),
                                    fmt::join(e.hosted_figures("redis"), ", ")));
  if (e.charges != nullptr) add_charge(*command, e, o);
  command->add_option("--json", o->json, "write all figures to FILE; - is standard output");
  command->callback([o] { run(*o); });
}

void add_all(CLI::App& group) {
  const auto set = std::make_shared<figure_set>();
  CLI::App* command = group.add_subcommand(
      "all",
      "every figure and table of several evaluations; a second call goes on where the first "
      "one ended");
  command->add_option("--out", set->each.out, "the directory for tables, JSON and pictures")
      ->required();
  add_options(*command, *set);
  command->callback([set] {
    if (measure(*set)) return;
    throw CLI::RuntimeError(interrupted() ? 130 : 1);
  });
}

}  // namespace

void add_figure(CLI::App& app) {
  CLI::App* group =
      app.add_subcommand("figure", "the figures of published evaluations, measured here");
  group->require_subcommand(1);
  for (const evaluation& e : evaluations()) add_evaluation(*group, e);
  add_all(*group);
}

}  // namespace stele::cli
