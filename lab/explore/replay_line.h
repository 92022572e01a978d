// The line that replays a failure. All engines of the explorer print and read one form
// (docs/protocol/README.md, "Replay lines"):
//
//   ENGINE MECHANISM/WORKLOAD NAME=VALUE ...
//   run redo/sps threads=2 seed=7 at=37:0.3.255,4:1
//
// ENGINE is the subcommand of `stele crash` that found the failure. A field is left out when it has
// its default value.
//
// An engine has a struct Line with its name (Line::engine), a plan (run_plan), and a function
// fields_of(Line&): a table with each field's name, member and range. Formatter, parser, error
// sentences and the options of commands come from the table.
#pragma once

#include <explore/schedule/strategies.h>
#include <explore/subject.h>

#include <limits>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace stele::explore {

inline constexpr std::string_view engines = "run|cache|controller|schedules";

// A crash state: the number of the crash point on its tape, and an option for each pending unit.
struct crash {
  std::uint64_t point = 0;
  std::vector<std::uint64_t> chosen;
};
// A crash in a pass that a seed decides: before this event, or after this many writes.
struct crash_moment {
  std::uint64_t seed = 0, number = 0;
};

struct value_range {
  // Of numbers; of a list of pairs FIRST:SECOND, of the second ones.
  std::uint64_t least = 0, most = std::numeric_limits<std::uint64_t>::max();
  // Of names: the allowed ones, separated by |, which outlive the value. An enumerator is the name
  // at its place. Empty: any name.
  std::string_view words = "";
};

// One NAME=VALUE: where the value is, and what it may be.
struct line_field {
  std::string_view name;
  std::variant<std::uint64_t*, unsigned*, bool*, std::string*, std::string_view*, base::mutant*,
               file_fault*, schedule::granularity*, std::vector<crash>*, std::vector<crash_moment>*,
               schedule::decisions*>
      value;
  std::string_view about = "";  // for the option of this name; empty: there is none
  value_range range = {};
  std::string_view form = "";  // what to write; empty: the range says it
};
using line_fields = std::vector<line_field>;

void append_value(std::string& line, const line_field& f);
// Returns false when the value may not be this.
bool read_value(std::string_view text, const line_field& f);
// What the value may be: "a number from 1 to 64".
std::string form_of(const line_field& f);

// The fields of every plan; further ones where the medium may be a file.
line_fields fields_of(plan& p);
line_fields fields_of_files(plan& p);
inline constexpr std::string_view crash_form =
    "POINT:CHOICE.CHOICE and so on, and crashes in recoveries after commas";
line_fields joined(std::initializer_list<line_fields> parts);

// What a user types to replay the line.
std::string replay_command(std::string_view line);
// The engine that a line names. Errors: invalid_argument when it is not one of `allowed`.
[[nodiscard]] result<std::string_view> engine_of(std::string_view line,
                                                 std::string_view allowed = engines);
// For the two functions below.
std::string format_fields(std::string_view engine, const plan& p, const line_fields& fields,
                          const line_fields& defaults);
[[nodiscard]] result<> parse_fields(std::string_view line, std::string_view engine, plan& p,
                                    const line_fields& fields);

template <class Line>
std::string format_line(Line line) {
  Line fresh;
  return format_fields(Line::engine, line.run_plan, fields_of(line), fields_of(fresh));
}
// Errors: invalid_argument, naming the word that is wrong and what belongs there.
template <class Line>
[[nodiscard]] result<Line> parse_line(std::string_view text) {
  Line line;
  auto parsed = parse_fields(text, Line::engine, line.run_plan, fields_of(line));
  if (!parsed) return std::unexpected(parsed.error());
  return line;
}

}  // namespace stele::explore
