// The options of a command that makes what a replay line names: one for each field, with the
// field's name, range and default.
#pragma once

#include <explore/replay_line.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include <cctype>

namespace stele::explore {

// The members that the fields refer to outlive the command.
inline void add_options(CLI::App& command, const line_fields& fields) {
  for (const line_field& f : fields) {
    if (f.about.empty()) continue;
    const std::string name = fmt::format("--{}", f.name), about(f.about);
    if (std::holds_alternative<bool*>(f.value)) {
      command.add_flag_callback(name, [f] { (void)read_value("1", f); }, about);
      continue;
    }
    std::string usual;
    append_value(usual, f);
    command
        .add_option_function<std::string>(
            name,
            [f, name](const std::string& text) {
              if (!read_value(text, f)) throw CLI::ValidationError(name, "must be " + form_of(f));
            },
            about)
        ->type_name(!usual.empty() && std::isdigit(usual[0]) != 0 ? "NUMBER" : "NAME")
        ->default_str(usual);
  }
}

}  // namespace stele::explore
