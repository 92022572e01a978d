// Energy of memory, from its statistics: bits moved times energy per bit, by part.
//
// Each read and each write moves a line through the row buffer. Each activation reads from the
// array, and each write goes to the array (a write completes when it is in the cells). As in Zhao
// et al., "Kiln", 2013, section 6.3, accesses of one line each are counted. The energy of the wider
// row that a device senses, of refresh and of standby is not included.
#pragma once

#include <sim/config.h>
#include <sim/controller/memory.h>
#include <sim/controller/statistics.h>

namespace stele::sim {

struct memory_energy {
  double row_buffer_read_pj = 0, row_buffer_write_pj = 0, array_read_pj = 0, array_write_pj = 0;
  double total_pj() const noexcept {
    return row_buffer_read_pj + row_buffer_write_pj + array_read_pj + array_write_pj;
  }
};

inline memory_energy energy_of(const memory_statistics& s, const memory_config& c) {
  const auto lines = [](std::uint64_t count, double pj_per_bit) {
    return static_cast<double>(count * line_bytes * 8) * pj_per_bit;
  };
  return {lines(s.reads, c.row_buffer_read_pj_per_bit),
          lines(s.writes, c.row_buffer_write_pj_per_bit),
          lines(s.activates, c.array_read_pj_per_bit), lines(s.writes, c.array_write_pj_per_bit)};
}

}  // namespace stele::sim
