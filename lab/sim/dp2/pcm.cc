// The configuration of the DP2 memory, and a memory created from it.
#include <sim/dp2/pcm.h>

namespace stele::sim {

memory_config dp2_memory(const std::string& scheduler, double log_retention_s) {
  memory_config c;
  c.technology = "pcm";
  c.ranks = 4;
  c.banks = 8;
  c.row_bytes = line_bytes;
  c.open_page = false;
  c.mapping = "row-column-rank-bank-channel";
  c.bank_hash = true;
  c.bank_queue_entries = 32;
  c.write_queue_entries = 32 * 32;
  c.age_limit_ns = 0;
  c.read_latency_ns = 12.5;
  c.timing = {{"bank", "activate", "read", 55}, {"channel", "read", "read", 5}};
  c.retention = {{1e7, 1.0}, {1e6, 1.2}, {1e5, 1.5}, {1e4, 1.7}, {1e3, 1.9}, {1e2, 2.1}};
  c.guarded_rules = !scheduler.starts_with("bare_");
  c.scheduler = c.guarded_rules ? scheduler : scheduler.substr(5);
  c.log_retention_s = log_retention_s;
  return c;
}

result<std::unique_ptr<memory_system>> make_dp2_memory(event_queue& time, const memory_config& c,
                                                       const media::tape_header& logs_of) {
  auto made = make_memory(time, c);
  if (!made) return made;
  const auto logs = log_ranges_of(logs_of);
  if (!logs) return std::unexpected(logs.error());
  if (auto set = (*made)->set_ranges(*logs); !set) return std::unexpected(set.error());
  return made;
}

}  // namespace stele::sim
