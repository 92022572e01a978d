// Configuration, and a memory made from it.
#include <sim/dp2/pcm.h>

namespace stele::sim {

memory_config dp2_memory(const std::string& scheduler, double log_retention_s) {
  memory_config c = pcm_dp2();
  c.guarded_rules = !scheduler.starts_with("bare_");
  c.scheduler = c.guarded_rules ? scheduler : scheduler.substr(5);
  c.log_retention_s = log_retention_s;
  return c;
}

result<std::unique_ptr<memory_system>> make_dp2_memory(event_queue& time, const memory_config& c, const media::tape_header& logs_of) {
  auto made = make_memory(time, c);
  if (!made) return made;
  if (auto set = (*made)->set_ranges(log_ranges_of(logs_of)); !set) return std::unexpected(set.error());
  return made;
}

}  // namespace stele::sim
