// Energy of memory, from its statistics: bits moved times energy per bit, and currents of DRAM.
//
// Energies per bit: each read and each write moves a line through the row buffer. Each activation
// reads from the array, and each write goes to the array (a write completes when it is in the
// cells). As in Zhao et al., "Kiln", 2013, section 6.3, accesses of one line each are counted. The
// energy of the wider row that a device senses is not included.
//
// Currents: the model of Micron's technical note TN-40-07, "Calculating memory power for DDR4
// SDRAM". The rank stands by with IDD3N while a row is open, else with IDD2N; what a command draws
// above standby is added. Power-down, self refresh, termination and VPP are not included.
// JEDEC measures IDD3N with the rows of all banks open, and IDD0 and the refresh currents with one
// and none. Where the difference matters (the 32 banks of DDR5 make IDD3N larger than IDD0),
// idd3n_all_banks lets standby grow with each open row.
#pragma once

#include <sim/config.h>
#include <sim/controller/memory.h>
#include <sim/controller/statistics.h>

#include <algorithm>

namespace stele::sim {

struct memory_energy {
  double activate_pj = 0;  // rows opened and closed
  double read_pj = 0, write_pj = 0, refresh_pj = 0, background_pj = 0;
  double total_pj() const noexcept {
    return activate_pj + read_pj + write_pj + refresh_pj + background_pj;
  }
};

// The longest wait of the rules between two commands at a level; 0 if there is none.
inline double wait_ns(const memory_config& c, std::string_view level, std::string_view preceding,
                      std::string_view following) {
  double longest = 0;
  for (const timing_rule& r : c.timing)
    if (r.level == level && r.preceding == preceding && r.following == following && r.window == 1)
      longest = std::max(longest, r.latency_ns);
  return longest;
}

// mA * V * ns are pJ.
inline memory_energy energy_of_currents(const memory_statistics& s, const memory_config& c) {
  const auto times = [](std::uint64_t count, double pj) { return static_cast<double>(count) * pj; };
  const double volts = c.vdd_v * c.devices;
  const double open_row = (c.idd3n_ma - c.idd2n_ma) / (c.bank_groups * c.banks);
  const double one_open = c.idd3n_all_banks ? c.idd2n_ma + open_row : c.idd3n_ma,
               refreshing = c.idd3n_all_banks ? c.idd2n_ma : c.idd3n_ma;
  const double open = wait_ns(c, "bank", "activate", "precharge");
  const double cycle = std::max(wait_ns(c, "bank", "activate", "activate"),
                                open + wait_ns(c, "bank", "precharge", "activate"));
  memory_energy e;
  e.activate_pj = times(
      s.activates, volts * (c.idd0_ma * cycle - one_open * open - c.idd2n_ma * (cycle - open)));
  e.read_pj =
      times(s.reads, volts * (c.idd4r_ma - c.idd3n_ma) * wait_ns(c, "channel", "read", "read"));
  e.write_pj =
      times(s.writes, volts * (c.idd4w_ma - c.idd3n_ma) * wait_ns(c, "channel", "write", "write"));
  e.refresh_pj = times(s.refreshes, volts * (c.idd5b_ma - refreshing) * c.refresh_time_ns);
  const auto ma_ps = [](picosecond_sum ps, double ma) { return static_cast<double>(ps) * ma; };
  const double above_idd2n = c.idd3n_all_banks ? ma_ps(s.open_bank_ps, open_row)
                                               : ma_ps(s.open_ps, c.idd3n_ma - c.idd2n_ma);
  e.background_pj = volts * (ma_ps(s.rank_ps, c.idd2n_ma) + above_idd2n) / 1000;
  return e;
}

inline memory_energy energy_of(const memory_statistics& s, const memory_config& c) {
  const auto lines = [](std::uint64_t count, double pj_per_bit) {
    return static_cast<double>(count * line_bytes * 8) * pj_per_bit;
  };
  memory_energy e = energy_of_currents(s, c);
  e.activate_pj += lines(s.activates, c.array_read_pj_per_bit);
  e.read_pj += lines(s.reads, c.row_buffer_read_pj_per_bit);
  e.write_pj += lines(s.writes, c.row_buffer_write_pj_per_bit + c.array_write_pj_per_bit);
  return e;
}

}  // namespace stele::sim
