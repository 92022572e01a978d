// The keys of a machine: one table that reading, checking, echoing and the tests of the
// documentation share.
//
// A key is a dotted path (`l3.ways`) and the place of its value in a machine given by the caller,
// with what a sensible value is. Keys come in the order of the fields of sim/config.h, section
// after section. Keys point into the machine: they are valid as long as it is, and lists' keys as
// long as the list is not resized.
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

using value_ptr = std::variant<bool*, unsigned*, std::uint64_t*, double*, std::string*,
                               std::vector<timing_rule>*, std::vector<retention_row>*>;

struct config_key {
  std::string path;
  value_ptr where;
  bounds within;         // of a number
  allowed_names one_of;  // of a string; none: any string
};

std::vector<config_key> keys_of(machine_config& m);
std::vector<config_key> keys_of(timing_rule& r);
std::vector<config_key> keys_of(retention_row& r);

// The fields that a mapping names, each once; bank_group may be left out.
allowed_names mapping_fields();

}  // namespace stele::sim
