// Where numbers come from: the machine that measured them, and the program.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace stele::bench {

// Processor, the cores that this process may use, last-level cache, memory, write-back
// instruction, system.
nlohmann::json machine_json();

// The version, and a checksum of the running program: another one may measure something else.
nlohmann::json build_json(const std::string& version);

// The time now, in UTC: 2026-11-26T18:30:00Z.
std::string date_now();

}  // namespace stele::bench
