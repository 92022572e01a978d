// One operation of a workload. C++17, for programs of rivals that are compiled as such.
#pragma once

#include <cstdint>

namespace stele::workloads {

struct operation {
  enum class kind : std::uint8_t {
    read,
    swap,
    toggle,
    put,
    append,
    erase,
    insert,
    read_modify,
    scan
  };
  kind what = kind::read;
  std::uint64_t a = 0;  // a key or index
  // sps: the other index; else the seed of the value written, or as the workload defines it.
  std::uint64_t b = 0;
};

constexpr bool only_reads(const operation& op) {
  return op.what == operation::kind::read || op.what == operation::kind::scan;
}

}  // namespace stele::workloads
