// `stele manual`: writes the manual page of this program, for `man`, from the declarations that
// --help prints.
#include <cli/command.h>
#include <fmt/format.h>

#include <string>
#include <string_view>

namespace stele::cli {
namespace {

// Escapes the characters that troff would read as commands.
std::string plain(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n'))
      out += std::string("\\&") + c;
    else
      out += c;
  }
  return out;
}

std::string options_of(const CLI::App& app) {
  std::string page;
  for (const CLI::Option* o : app.get_options()) {
    if (o->get_group().empty()) continue;
    const std::string takes =
        o->get_expected_max() == 0 || o->get_type_name().empty() ? "" : " " + o->get_type_name();
    const std::string by_default =
        o->get_default_str().empty() ? "" : fmt::format(" (default: {})", o->get_default_str());
    page += fmt::format(".TP\n.B {}{}\n{}{}\n", plain(o->get_name(false, true)), plain(takes),
                        plain(o->get_description()), plain(by_default));
  }
  return page;
}

void write_commands(const CLI::App& app, const std::string& above, std::string& page) {
  for (const CLI::App* one :
       app.get_subcommands([](const CLI::App* a) { return !a->get_group().empty(); })) {
    const std::string name = above + " " + one->get_name();
    page += fmt::format(".SS \"{}\"\n{}\n{}", plain(name), plain(one->get_description()),
                        options_of(*one));
    write_commands(*one, name, page);
  }
}

}  // namespace

void add_manual(CLI::App& app, const std::string& version) {
  CLI::App* const manual =
      app.add_subcommand("manual", "write the manual page of this program to standard output")
          ->group("");
  manual->callback([&app, version] {
    std::string page = fmt::format(
        ".TH STELE 1 \"\" \"stele {}\" \"User Commands\"\n.SH NAME\nstele \\- durable "
        "transactional memory: pools, their care, and comparisons\n",
        version);
    page += fmt::format(
        ".SH SYNOPSIS\n.B stele\n.I COMMAND\n[options]\n.SH DESCRIPTION\n{}\n{}\n.SH "
        "OPTIONS\n{}.SH COMMANDS\n",
        plain(app.get_description()), plain(app.get_footer()), options_of(app));
    write_commands(app, "stele", page);
    page +=
        ".SH \"EXIT STATUS\"\n0 when all went well, 1 when something is wrong with what was given "
        "or found, which is said in a sentence.\n";
    fmt::print("{}", page);
  });
}

}  // namespace stele::cli
