// Machines from TOML files, and as text again.
//
// A file names keys of sim/config.h (docs/format/machine.md); what it does not name keeps the
// default, or the value of the file that it is based on (`base = "kiln.toml"`, relative to itself).
// What is wrong is an error that says file and line, the key, and the nearest right one. Nothing
// here knows where presets lie.
#pragma once

#include <sim/config.h>
#include <stele/error.h>

#include <nlohmann/json_fwd.hpp>

namespace stele::sim {

[[nodiscard]] result<machine_config> load_machine(const std::string& path);

// `name` stands for the file in errors; a base is looked for beside it.
[[nodiscard]] result<machine_config> parse_machine(const std::string& text,
                                                   const std::string& name);

// Sets one key, by its path ("l3.read_latency_ns"), to a value as a file would have it; names need
// no quotes. Checks the key alone, since the next call may set what it goes with: call
// check_machine() after the last.
[[nodiscard]] result<> set_key(machine_config& m, const std::string& key, const std::string& value);

// What the keys say together: whole sets, rows for every bank, a design that the machine can have.
[[nodiscard]] result<> check_machine(const machine_config& m);

// Every key. Reading toml_of(m) gives m.
std::string toml_of(const machine_config& m);
nlohmann::ordered_json json_of(const machine_config& m);

}  // namespace stele::sim
