// Reads machines from TOML files and writes them as text.
//
// A file sets keys of sim/config.h (docs/format/machine.md). Other keys keep the default, or the
// value of the file's base (`base = "kiln.toml"`, relative to the file). An error says file and
// line, the key, and the nearest right name. This code does not know where presets are stored.
#pragma once

#include <sim/config.h>
#include <stele/error.h>

#include <nlohmann/json_fwd.hpp>

namespace stele::sim {

[[nodiscard]] result<machine_config> load_machine(const std::string& path);

// `name` is the file name for errors; a base is looked for in its folder.
[[nodiscard]] result<machine_config> parse_machine(const std::string& text,
                                                   const std::string& name);

// The same for a text that nobody has chosen to trust: a base, or plug-ins, whose code would run,
// are refused before anything is read or loaded.
[[nodiscard]] result<machine_config> parse_closed_machine(const std::string& text,
                                                          const std::string& name);

// Sets one key, given by its path ("l3.read_latency_ns"), to a value in the syntax of a file; names
// need no quotes. Checks this key alone, because a later call may set a key that it depends on:
// call check_machine() after the last one.
[[nodiscard]] result<> set_key(machine_config& m, const std::string& key, const std::string& value);

// Checks the keys against each other: whole sets, rows for every bank, a design that the machine
// supports.
[[nodiscard]] result<> check_machine(const machine_config& m);

// The machine with each of these designs, for runs side by side; each is checked. A key of [design]
// without effect on one of them has its default there. Errors: those of check_machine(), and a key
// without effect on any of the designs.
[[nodiscard]] result<std::vector<machine_config>> with_designs(
    const machine_config& m, const std::vector<std::string>& designs);

// Writes every key. Reading toml_of(m) gives m.
std::string toml_of(const machine_config& m);
nlohmann::ordered_json json_of(const machine_config& m);

}  // namespace stele::sim
