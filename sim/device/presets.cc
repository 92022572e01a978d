// Timing tables. DDR4 rules are written in the words of the standard (clock cycles and nanoseconds); data-bus and
// turnaround rules follow from when commands put data on the bus.
#include <sim/controller/memory.h>
#include <sim/device/presets.h>

namespace stele::sim {
namespace {

struct ddr4 {
  double clock_ns;
  double cl, cwl, burst;                        // cycles
  double rcd_ns, rp_ns, ras_ns, wr_ns, rtp_ns;  // row
  double ccd_s, ccd_l, rrd_s, rrd_l;            // cycles
  double faw_ns, wtr_s_ns, wtr_l_ns;
  double rfc_ns, refi_ns;

  double ns(double cycles) const { return cycles * clock_ns; }
};

void add_bank_rules(std::vector<timing_rule>& rules, const ddr4& d) {
  rules.insert(rules.end(), {{"bank", "activate", "read", d.rcd_ns},
                             {"bank", "activate", "write", d.rcd_ns},
                             {"bank", "activate", "precharge", d.ras_ns},
                             {"bank", "activate", "activate", d.ras_ns + d.rp_ns},
                             {"bank", "precharge", "activate", d.rp_ns},
                             {"bank", "read", "precharge", d.rtp_ns},
                             {"bank", "write", "precharge", d.ns(d.cwl + d.burst) + d.wr_ns}});
}

void add_shared_rules(std::vector<timing_rule>& rules, const ddr4& d) {
  const double data_written = d.ns(d.cwl + d.burst);
  rules.insert(rules.end(), {{"channel", "any", "any", d.clock_ns},  // one command a clock
                             {"channel", "read", "read", d.ns(d.ccd_s)},
                             {"channel", "write", "write", d.ns(d.ccd_s)},
                             {"channel", "read", "write", d.ns(d.cl - d.cwl + d.burst + 2)},
                             {"rank", "write", "read", data_written + d.wtr_s_ns},
                             {"bank_group", "read", "read", d.ns(d.ccd_l)},
                             {"bank_group", "write", "write", d.ns(d.ccd_l)},
                             {"bank_group", "write", "read", data_written + d.wtr_l_ns},
                             {"rank", "activate", "activate", d.ns(d.rrd_s)},
                             {"bank_group", "activate", "activate", d.ns(d.rrd_l)},
                             {"rank", "activate", "activate", d.faw_ns, 4},
                             {"rank", "precharge", "refresh", d.rp_ns},
                             {"rank", "activate", "refresh", d.ras_ns + d.rp_ns}});
}

memory_config make(const ddr4& d) {
  memory_config c;
  c.technology = "dram";
  c.bank_groups = 4;
  c.banks = 4;
  c.row_bytes = 8192;
  c.capacity_bytes = std::uint64_t{8} << 30;
  c.mapping = "row-rank-bank-column-bank_group-channel";  // neighbouring lines in neighbouring groups: no long gaps
  c.read_latency_ns = d.ns(d.cl + d.burst);
  c.write_latency_ns = d.ns(d.cwl + d.burst);
  c.refresh_interval_ns = d.refi_ns;
  c.refresh_time_ns = d.rfc_ns;
  add_bank_rules(c.timing, d);
  add_shared_rules(c.timing, d);
  return c;
}

}  // namespace

memory_config ddr4_2400() {
  const double clock_ns = 1 / 1.2;
  return make({.clock_ns = clock_ns, .cl = 17, .cwl = 12, .burst = 4,
               .rcd_ns = 17 * clock_ns, .rp_ns = 17 * clock_ns, .ras_ns = 32, .wr_ns = 15, .rtp_ns = 7.5,
               .ccd_s = 4, .ccd_l = 6, .rrd_s = 4, .rrd_l = 6, .faw_ns = 21, .wtr_s_ns = 2.5, .wtr_l_ns = 7.5,
               .rfc_ns = 350, .refi_ns = 7800});
}

memory_config ddr4_2133() {
  const double clock_ns = 1.0 / 1.0665;
  return make({.clock_ns = clock_ns, .cl = 15, .cwl = 11, .burst = 4,
               .rcd_ns = 15 * clock_ns, .rp_ns = 15 * clock_ns, .ras_ns = 33, .wr_ns = 15, .rtp_ns = 7.5,
               .ccd_s = 4, .ccd_l = 6, .rrd_s = 4, .rrd_l = 6, .faw_ns = 21, .wtr_s_ns = 2.5, .wtr_l_ns = 7.5,
               .rfc_ns = 350, .refi_ns = 7800});
}

memory_config stt_mram_kiln() {
  memory_config c;
  c.technology = "stt-mram";
  c.read_latency_ns = c.write_latency_ns = 25;
  c.write_pulse_ns = 11;
  c.timing = {{"bank", "precharge", "activate", 20}, {"bank", "activate", "read", 20}, {"bank", "activate", "write", 20}};
  for (const char* before : {"read", "write"})
    for (const char* after : {"read", "write"}) c.timing.push_back({"channel", before, after, 5});
  c.row_buffer_read_pj_per_bit = 0.93;
  c.row_buffer_write_pj_per_bit = 1.02;
  c.array_read_pj_per_bit = 1.00;
  c.array_write_pj_per_bit = 2.89;
  return c;
}

memory_config pcm_dp2() {
  memory_config c;
  c.technology = "pcm";
  c.ranks = 4;
  c.banks = 8;
  c.row_bytes = line_bytes;
  c.open_page = false;
  c.mapping = "row-column-rank-bank-channel";
  c.scheduler = "strict";
  c.bank_queue_entries = 32;
  c.write_queue_entries = 32 * 32;
  c.read_latency_ns = 12.5;
  c.timing = {{"bank", "activate", "read", 55}, {"channel", "read", "read", 5}};
  c.retention = {{1e7, 1.0}, {1e6, 1.2}, {1e5, 1.5}, {1e4, 1.7}, {1e3, 1.9}, {1e2, 2.1}};
  return c;
}

}  // namespace stele::sim
