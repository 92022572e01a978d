// The keys of a machine: one table for reading, checking, writing and the tests of the
// documentation.
//
// A key has a dotted path (`l3.ways`), a pointer to its value in the caller's machine, and the
// allowed values. Keys are in the order of the fields of sim/config.h, section after section. The
// pointers are valid as long as the machine is; pointers into a list, as long as the list is not
// resized.
#pragma once

#include <sim/config.h>

#include <span>
#include <string_view>
#include <variant>

namespace stele::sim {

using allowed_names = std::span<const std::string_view>;

struct bounds {
  double least = 0, most = 0;
  bool power_of_two = false;
};

using value_ptr =
    std::variant<bool*, unsigned*, std::uint64_t*, double*, std::string*, std::vector<std::string>*,
                 std::vector<timing_rule>*, std::vector<retention_row>*>;

struct config_key {
  std::string path;
  value_ptr where;
  bounds within;  // for a number
  // For a string; empty: any string. Those of parts that plug-ins add are valid until one is
  // loaded.
  allowed_names one_of;
};

std::vector<config_key> keys_of(machine_config& m);
std::vector<config_key> keys_of(timing_rule& r);
std::vector<config_key> keys_of(retention_row& r);

// The fields of an address mapping; each is named once, bank_group may be left out.
allowed_names mapping_fields();

}  // namespace stele::sim
