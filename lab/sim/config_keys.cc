// The table of keys. It does not compile while a field of sim/config.h has no key.
//
// Bounds are wide: they exclude the absurd (no ways, a latency of an hour), not the unusual. Checks
// that involve several keys are in sim/config_check.cc.
#include <sim/config_keys.h>
#include <sim/controller/scheduler.h>
#include <sim/design/design.h>
#include <sim/device/retention.h>

#include <utility>

namespace stele::sim {
namespace {

template <class S>
struct field {
  std::string_view name;
  std::variant<bool S::*, unsigned S::*, std::uint64_t S::*, double S::*, std::string S::*,
               std::vector<std::string> S::*, std::vector<timing_rule> S::*,
               std::vector<retention_row> S::*>
      member;
  bounds within = {};
  allowed_names one_of = {};
  allowed_names (*parts)() = nullptr;  // in place of one_of: parts that plug-ins may add
};

// The number of members of an aggregate: the most values that it can be initialized from.
struct anything {
  template <class T>
  operator T() const;  // never called
};
template <class S, class... Given>
consteval std::size_t members_of() {
  if constexpr (requires { S{Given{}..., anything{}}; })
    return members_of<S, Given..., anything>();
  else
    return sizeof...(Given);
}

constexpr std::string_view replacements[] = {"lru", "plru", "bip", "random"};
constexpr std::string_view prefetch_kinds[] = {"none", "next-line", "stride"};
constexpr std::string_view level_names[] = {"channel", "rank", "other_ranks", "bank_group", "bank"};
constexpr std::string_view command_names[] = {"activate", "precharge", "read",
                                              "write",    "refresh",   "any"};
constexpr std::string_view retained_as[] = {"log", "data"};
constexpr std::string_view refreshes[] = {"all-bank", "same-bank"};
constexpr std::string_view orders[] = {"strong", "relaxed"};
constexpr std::string_view isolations[] = {"htm", "mutex", "none"};
constexpr std::string_view fields_of_mappings[] = {"row",  "rank",   "bank_group",
                                                   "bank", "column", "channel"};

constexpr bounds time_ns = {0, 1e9};  // up to a second
constexpr bounds queue_entries = {1, 65536};
constexpr bounds share = {0, 1};
constexpr bounds energy = {0, 1e6};
constexpr bounds current = {0, 1e6};
constexpr bounds retention_s = {1e-9, 1e12};
constexpr bounds count_power = {1, 1024, true};

using core = core_config;
constexpr field<core> core_fields[] = {
    {"count", &core::count, {1, 32}},  // a line's holders are 32 bits
    {"threads_per_core", &core::threads_per_core, {1, 64}},
    {"clock_ghz", &core::clock_ghz, {1e-3, 100}},
    {"issue_width", &core::issue_width, {1, 64}},
    {"window_instructions", &core::window_instructions, {1, 65536}},
    {"outstanding_misses", &core::outstanding_misses, {1, 65536}},
    {"store_buffer_entries", &core::store_buffer_entries, {1, 65536}},
};

using cache = cache_config;
constexpr field<cache> cache_fields[] = {
    {"size_bytes", &cache::size_bytes, {64, 1ULL << 40}},
    {"ways", &cache::ways, {1, 1024}},
    {"replacement", &cache::replacement, {}, replacements},
    {"read_latency_ns", &cache::read_latency_ns, time_ns},
    {"write_latency_ns", &cache::write_latency_ns, time_ns},
    {"banks", &cache::banks, count_power},
    {"request_queue_entries", &cache::request_queue_entries, queue_entries},
    {"persistence_queue_entries", &cache::persistence_queue_entries, queue_entries},
    {"nonvolatile", &cache::nonvolatile},
    {"read_energy_nj", &cache::read_energy_nj, energy},
    {"write_energy_nj", &cache::write_energy_nj, energy},
};

constexpr field<prefetch_config> prefetch_fields[] = {
    {"kind", &prefetch_config::kind, {}, prefetch_kinds},
    {"degree", &prefetch_config::degree, {1, 64}},
    {"distance", &prefetch_config::distance, {1, 64}},
    {"entries", &prefetch_config::entries, {1, 65536}},
};

constexpr field<tlb_config> tlb_fields[] = {
    {"l1_entries", &tlb_config::l1_entries, {0, 65536}},
    {"l1_ways", &tlb_config::l1_ways, {1, 32}},
    {"l2_entries", &tlb_config::l2_entries, {0, 1 << 20}},
    {"l2_ways", &tlb_config::l2_ways, {1, 32}},
    {"l2_latency_ns", &tlb_config::l2_latency_ns, time_ns},
    {"page_bytes", &tlb_config::page_bytes, {4096, 1ULL << 30, true}},
    {"walk_levels", &tlb_config::walk_levels, {1, 6}},
};

constexpr field<crossbar_config> crossbar_fields[] = {
    {"latency_ns", &crossbar_config::latency_ns, time_ns},
    {"bytes_per_ns", &crossbar_config::bytes_per_ns, {1e-6, 1e6}},
};

constexpr field<timing_rule> timing_fields[] = {
    {"level", &timing_rule::level, {}, level_names},
    {"preceding", &timing_rule::preceding, {}, command_names},
    {"following", &timing_rule::following, {}, command_names},
    {"latency_ns", &timing_rule::latency_ns, time_ns},
    {"window", &timing_rule::window, {1, 1024}},
};

constexpr field<retention_row> retention_fields[] = {
    {"retention_s", &retention_row::retention_s, retention_s},
    {"speedup", &retention_row::speedup, {1e-3, 1e3}},
};

using mem = memory_config;
constexpr field<mem> memory_fields[] = {
    {"technology", &mem::technology, {}, {}, [] { return devices().names(); }},
    {"controllers", &mem::controllers, count_power},
    {"channels", &mem::channels, count_power},
    {"ranks", &mem::ranks, count_power},
    {"bank_groups", &mem::bank_groups, count_power},
    {"banks", &mem::banks, count_power},
    {"row_bytes", &mem::row_bytes, {64, 1ULL << 30, true}},
    {"capacity_bytes",
     &mem::capacity_bytes,
     {64, 1ULL << 40, true}},  // volatile memory begins at 2^40
    {"mapping", &mem::mapping},
    {"bank_hash", &mem::bank_hash},
    {"scheduler", &mem::scheduler, {}, {}, [] { return schedulers().names(); }},
    {"guarded_rules", &mem::guarded_rules},
    {"read_queue_entries", &mem::read_queue_entries, queue_entries},
    {"write_queue_entries", &mem::write_queue_entries, queue_entries},
    {"bank_queue_entries", &mem::bank_queue_entries, {0, 65536}},
    {"write_drain_from", &mem::write_drain_from, share},
    {"write_drain_to", &mem::write_drain_to, share},
    {"starvation_limit", &mem::starvation_limit, {1, 1 << 30}},
    {"age_limit_ns", &mem::age_limit_ns, time_ns},
    {"open_page", &mem::open_page},
    {"clock_ns", &mem::clock_ns, time_ns},
    {"read_latency_ns", &mem::read_latency_ns, time_ns},
    {"write_latency_ns", &mem::write_latency_ns, time_ns},
    {"write_pulse_ns", &mem::write_pulse_ns, time_ns},
    {"write_back_rows", &mem::write_back_rows},
    {"refresh", &mem::refresh, {}, refreshes},
    {"refresh_interval_ns", &mem::refresh_interval_ns, time_ns},
    {"refresh_time_ns", &mem::refresh_time_ns, time_ns},
    {"staggered_refresh", &mem::staggered_refresh},
    {"timing", &mem::timing},
    {"iteration_ns", &mem::iteration_ns, time_ns},
    {"iterations", &mem::iterations, {0, 1e6}},
    {"retention", &mem::retention},
    {"data_retention_s", &mem::data_retention_s, retention_s},
    {"log_retention_s", &mem::log_retention_s, retention_s},
    {"truncation_retention", &mem::truncation_retention, {}, retained_as},
    {"endurance_writes", &mem::endurance_writes, {0, 1e18}},
    {"row_buffer_read_pj_per_bit", &mem::row_buffer_read_pj_per_bit, energy},
    {"row_buffer_write_pj_per_bit", &mem::row_buffer_write_pj_per_bit, energy},
    {"array_read_pj_per_bit", &mem::array_read_pj_per_bit, energy},
    {"array_write_pj_per_bit", &mem::array_write_pj_per_bit, energy},
    {"vdd_v", &mem::vdd_v, {0, 1000}},
    {"devices", &mem::devices, {1, 1024}},
    {"idd0_ma", &mem::idd0_ma, current},
    {"idd2n_ma", &mem::idd2n_ma, current},
    {"idd3n_ma", &mem::idd3n_ma, current},
    {"idd4r_ma", &mem::idd4r_ma, current},
    {"idd4w_ma", &mem::idd4w_ma, current},
    {"idd5b_ma", &mem::idd5b_ma, current},
    {"idd3n_all_banks", &mem::idd3n_all_banks},
    {"cxl_flit_bytes", &mem::cxl_flit_bytes, {0, 256}},
    {"cxl_bytes_per_ns", &mem::cxl_bytes_per_ns, {0, 1e6}},
    {"cxl_latency_ns", &mem::cxl_latency_ns, time_ns},
    {"cxl_queue_entries", &mem::cxl_queue_entries, queue_entries},
    {"cxl_gpf", &mem::cxl_gpf},
};

constexpr field<design_config> design_fields[] = {
    {"name", &design_config::name, {}, {}, [] { return designs().names(); }},
    {"order", &design_config::order, {}, orders},
    {"isolation", &design_config::isolation, {}, isolations},
    {"htm_retries", &design_config::htm_retries, {0, 1e6}},
    {"transaction_ids", &design_config::transaction_ids, {1, 65536}},
    {"lock_until_durable", &design_config::lock_until_durable},
    {"overflow_at", &design_config::overflow_at, share},
    {"overflow_interrupt_ns", &design_config::overflow_interrupt_ns, time_ns},
    {"fences_wait", &design_config::fences_wait},
    {"barriers_wait", &design_config::barriers_wait},
    {"log_bytes", &design_config::log_bytes, {4096, 1ULL << 40}},
    {"log_lines_fetched", &design_config::log_lines_fetched},
};

constexpr field<machine_config> machine_fields[] = {
    {"name", &machine_config::name},
    {"source", &machine_config::source},
    {"plugins", &machine_config::plugins},
    {"processor_dynamic_peak_w", &machine_config::processor_dynamic_peak_w, {0, 1e6}},
};
constexpr std::size_t sections = 10;
static_assert(std::size(machine_fields) + sections == members_of<machine_config>(),
              "a field or section of a machine has no key");

template <class S, std::size_t N>
void append(std::vector<config_key>& keys, const std::string& prefix, S& s,
            const field<S> (&fields)[N]) {
  if constexpr (!std::is_same_v<S, machine_config>)
    static_assert(N == members_of<S>(), "a field of sim/config.h has no key");
  for (const field<S>& f : fields)
    keys.push_back({prefix + std::string(f.name),
                    std::visit([&](auto member) -> value_ptr { return &(s.*member); }, f.member),
                    f.within, f.parts == nullptr ? f.one_of : f.parts()});
}

}  // namespace

std::vector<config_key> keys_of(machine_config& m) {
  std::vector<config_key> keys;
  append(keys, "", m, machine_fields);
  append(keys, "cores.", m.cores, core_fields);
  append(keys, "l1.", m.l1, cache_fields);
  append(keys, "l2.", m.l2, cache_fields);
  append(keys, "l3.", m.l3, cache_fields);
  append(keys, "prefetch.", m.prefetch, prefetch_fields);
  append(keys, "tlb.", m.tlb, tlb_fields);
  append(keys, "crossbar.", m.crossbar, crossbar_fields);
  append(keys, "nonvolatile_memory.", m.nonvolatile_memory, memory_fields);
  append(keys, "volatile_memory.", m.volatile_memory, memory_fields);
  append(keys, "design.", m.design, design_fields);
  return keys;
}

std::vector<config_key> keys_of(timing_rule& r) {
  std::vector<config_key> keys;
  append(keys, "", r, timing_fields);
  return keys;
}

std::vector<config_key> keys_of(retention_row& r) {
  std::vector<config_key> keys;
  append(keys, "", r, retention_fields);
  return keys;
}

allowed_names mapping_fields() {
  return fields_of_mappings;
}

}  // namespace stele::sim
