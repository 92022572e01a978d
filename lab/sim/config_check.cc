// Checks that involve several keys: caches have whole sets, addresses divide into fields,
// schedulers can make progress, keys of one kind of device are not set for another.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sim/cache/prefetcher.h>
#include <sim/config_check.h>
#include <sim/config_keys.h>
#include <sim/controller/controller.h>
#include <sim/controller/scheduler.h>
#include <sim/design/design.h>
#include <sim/design/logs.h>
#include <sim/device/retention.h>
#include <sim/energy/memory_energy.h>
#include <sim/nearest.h>
#include <sim/plugins.h>

#include <bit>
#include <map>
#include <ranges>

namespace stele::sim {
namespace {

using verdict = std::optional<config_conflict>;

constexpr std::uint64_t prefetch_page_bytes = prefetcher::page_lines * line_bytes;

verdict in_cache(const std::string& name, const cache_config& c) {
  const auto key = [&](const char* field) { return name + '.' + field; };
  const std::uint64_t lines = c.size_bytes / line_bytes;
  if (c.size_bytes % line_bytes != 0 || lines % c.ways != 0)
    return config_conflict{
        {key("ways"), key("size_bytes")},
        fmt::format(
            "{}.ways is {}, which does not divide the lines of {}.size_bytes, {}; give a size that "
            "is a multiple of {} bytes, or other ways",
            name, c.ways, name, c.size_bytes, c.ways * line_bytes)};
  const std::uint64_t sets = lines / c.ways;
  if (!std::has_single_bit(sets))
    return config_conflict{{key("size_bytes"), key("ways")},
                           fmt::format("{}.size_bytes is {}, which makes {} sets of {} ways; sets "
                                       "are chosen by address bits, so "
                                       "give a size or ways that make a power of two",
                                       name, c.size_bytes, sets, c.ways)};
  if (c.banks > sets)
    return config_conflict{
        {key("banks")},
        fmt::format("{}.banks is {}, but there are only {} sets; give no more banks than sets",
                    name, c.banks, sets)};
  if (c.replacement == "plru" && !std::has_single_bit(c.ways))
    return config_conflict{{key("replacement"), key("ways")},
                           fmt::format("{}.replacement is plru, a binary tree over the ways, and "
                                       "{}.ways is {}; give a power of two "
                                       "or another replacement",
                                       name, name, c.ways)};
  return std::nullopt;
}

// A key that changes nothing, because of the value of `other`, a key of the same section, if given.
config_conflict no_effect(const std::string& section, const std::string& field,
                          const std::string& why, const std::string& other = {}) {
  config_conflict found{{section + '.' + field},
                        fmt::format("{}.{} has no effect: {}; leave it out", section, field, why)};
  if (!other.empty()) found.keys.push_back(section + '.' + other);
  return found;
}

// A private cache is volatile, and serves its accesses without waits.
verdict in_private_cache(const std::string& name, const cache_config& c) {
  if (c.banks != 1)
    return config_conflict{{name + ".banks"},
                           fmt::format("{}.banks is {}, which has no effect: only accesses to the "
                                       "l3 wait for a bank; leave it out",
                                       name, c.banks)};
  if (c.nonvolatile)
    return no_effect(name, "nonvolatile", "every design takes the private caches for volatile");
  return std::nullopt;
}

verdict in_prefetch(const machine_config& m) {
  const prefetch_config& c = m.prefetch;
  const prefetch_config usual;
  if (c.kind == "none") {
    for (const auto& [field, value, standard] : {std::tuple{"degree", c.degree, usual.degree},
                                                 {"distance", c.distance, usual.distance},
                                                 {"entries", c.entries, usual.entries}})
      if (value != standard) return no_effect("prefetch", field, "prefetch.kind is none", "kind");
    return std::nullopt;
  }
  if (c.kind != "stride" && c.entries != usual.entries)
    return no_effect("prefetch", "entries", "only the kind stride has a table", "kind");
  for (const auto& [name, memory] : {std::pair{"nonvolatile_memory", &m.nonvolatile_memory},
                                     {"volatile_memory", &m.volatile_memory}})
    if (memory->capacity_bytes < prefetch_page_bytes)
      return config_conflict{
          {std::string(name) + ".capacity_bytes", "prefetch.kind"},
          fmt::format("{}.capacity_bytes is {}, and prefetches stay in pages of {} bytes; give the "
                      "memory a page, or no prefetcher",
                      name, memory->capacity_bytes, prefetch_page_bytes)};
  return std::nullopt;
}

// The level has whole sets.
verdict in_tlb_level(const char* entries_key, unsigned entries, const char* ways_key,
                     unsigned ways) {
  if (entries % ways == 0) return std::nullopt;
  return config_conflict{{entries_key, ways_key},
                         fmt::format("{} is {}, which is no multiple of {}, {}; give whole sets",
                                     entries_key, entries, ways_key, ways)};
}

verdict in_tlb(const machine_config& m) {
  const tlb_config& c = m.tlb;
  const tlb_config usual;
  const bool first = c.l1_entries != 0, second = first && c.l2_entries != 0;
  for (const auto& [field, is_set, works] :
       {std::tuple{"l1_ways", c.l1_ways != usual.l1_ways, first},
        {"l2_entries", c.l2_entries != usual.l2_entries, first},
        {"l2_ways", c.l2_ways != usual.l2_ways, second},
        {"l2_latency_ns", c.l2_latency_ns != usual.l2_latency_ns, second},
        {"page_bytes", c.page_bytes != usual.page_bytes, first},
        {"walk_levels", c.walk_levels != usual.walk_levels, first}})
    if (is_set && !works) {
      const std::string needed = first ? "l2_entries" : "l1_entries";
      return no_effect("tlb", field, "tlb." + needed + " is 0", needed);
    }
  if (auto found = in_tlb_level("tlb.l1_entries", c.l1_entries, "tlb.l1_ways", c.l1_ways))
    return found;
  return in_tlb_level("tlb.l2_entries", c.l2_entries, "tlb.l2_ways", c.l2_ways);
}

verdict in_mapping(const std::string& name, const memory_config& c) {
  std::vector<std::string> parts;
  for (const auto& part : c.mapping | std::views::split('-'))
    parts.emplace_back(part.begin(), part.end());
  const auto wrong = [&](const std::string& why) {
    return config_conflict{
        {name + ".mapping"},
        fmt::format(
            "{}.mapping is '{}', which {}; name row, rank, bank, column and channel once each, and "
            "bank_group if it is not to lie within bank",
            name, c.mapping, why)};
  };
  for (const std::string& part : parts) {
    if (std::ranges::find(mapping_fields(), part) == mapping_fields().end())
      return wrong(fmt::format("has '{}', the nearest field is '{}'", part,
                               nearest(part, mapping_fields())));
    if (std::ranges::count(parts, part) > 1) return wrong(fmt::format("has {} twice", part));
  }
  for (const std::string_view field : mapping_fields())
    if (field != "bank_group" && std::ranges::find(parts, field) == parts.end())
      return wrong(fmt::format("lacks {}", field));
  return std::nullopt;
}

// The retentions of data and logs must be rows of the table: between rows the speed-up is not
// known.
verdict in_retention(const std::string& name, const memory_config& c) {
  if (c.technology != "pcm") return std::nullopt;
  std::vector<double> known;
  for (const retention_row& r : c.retention) known.push_back(r.retention_s);
  const std::pair<const char*, double> needs[] = {{"data_retention_s", c.data_retention_s},
                                                  {"log_retention_s", c.log_retention_s}};
  for (const auto& [key, need] : needs)
    if (std::ranges::find(known, need) == known.end())
      return config_conflict{
          {name + '.' + key, name + ".retention", name + ".technology"},
          fmt::format(
              "{}.{} is {}, and {}.retention has rows for {}; give one of them or a row for it",
              name, key, need, name,
              known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", ")))};
  return std::nullopt;
}

// A key that the scheduler does not read must keep its default.
verdict in_scheduler(const std::string& name, const memory_config& c) {
  const memory_config d;
  const bool in_order = c.scheduler == "fcfs";
  const bool guards = c.scheduler == "rule1" || c.scheduler == "rule2" || c.scheduler == "rules" ||
                      c.scheduler == "commit_first" || !schedulers().plugin_of(c.scheduler).empty();
  const std::tuple<const char*, bool, const char*> unread[] = {
      {"write_drain_from", in_order && c.write_drain_from != d.write_drain_from,
       "serves requests in order of arrival"},
      {"write_drain_to", in_order && c.write_drain_to != d.write_drain_to,
       "serves requests in order of arrival"},
      {"starvation_limit", in_order && c.starvation_limit != d.starvation_limit,
       "serves requests in order of arrival"},
      {"age_limit_ns", in_order && c.age_limit_ns != d.age_limit_ns,
       "serves requests in order of arrival"},
      {"guarded_rules", !guards && !c.guarded_rules, "has no rule to guard"}};
  for (const auto& [field, set, why] : unread)
    if (set)
      return no_effect(name, field, fmt::format("the scheduler {} {}", c.scheduler, why),
                       "scheduler");
  return std::nullopt;
}

// A key of a device without effect on this device must keep its default.
verdict in_device(const std::string& name, const memory_config& c) {
  const memory_config d;
  const bool plugged = !devices().plugin_of(c.technology).empty();  // it may read any key
  const auto idle = [&](const std::string& field, const std::string& why) {
    return no_effect(name, field, why, "technology");
  };
  const std::pair<const char*, bool> of_retention[] = {
      {"retention", !c.retention.empty()},
      {"iterations", c.iterations != d.iterations},
      {"iteration_ns", c.iteration_ns != d.iteration_ns},
      {"data_retention_s", c.data_retention_s != d.data_retention_s},
      {"log_retention_s", c.log_retention_s != d.log_retention_s},
      {"truncation_retention", c.truncation_retention != d.truncation_retention}};
  for (const auto& [field, set] : of_retention)
    if (set && c.technology != "pcm" && !plugged)
      return idle(field, fmt::format("{}.technology is {}, and only pcm writes by retention", name,
                                     c.technology));
  if (c.endurance_writes != 0 && c.technology == "dram")
    return idle("endurance_writes", "cells of dram do not wear out");
  if (name == "volatile_memory")
    for (const auto& [field, set] : std::span(of_retention).subspan(2))
      if (set) return idle(field, "logs are in the nonvolatile memory");
  if (c.write_pulse_ns > 0 && c.technology != "stt-mram" && !plugged)
    return idle("write_pulse_ns", c.technology == "pcm"
                                      ? "a write to pcm takes its iterations"
                                      : "cells of dram hold what the row buffer holds");
  if (c.write_back_rows && c.write_pulse_ns == 0)
    return idle("write_back_rows", fmt::format("{}.write_pulse_ns is 0", name));
  const std::pair<const char*, bool> of_refresh[] = {{"refresh_time_ns", c.refresh_time_ns > 0},
                                                     {"refresh", c.refresh != d.refresh}};
  for (const auto& [field, set] : of_refresh)
    if (set && c.refresh_interval_ns == 0)
      return idle(field, fmt::format("{}.refresh_interval_ns is 0: no refresh", name));
  if (c.staggered_refresh && (c.refresh_interval_ns == 0 || c.ranks == 1))
    return idle("staggered_refresh",
                c.ranks == 1 ? "a channel has one rank"
                             : fmt::format("{}.refresh_interval_ns is 0: no refresh", name));
  return std::nullopt;
}

// Keys of a link need one; a volatile memory has nothing to flush.
verdict in_link(const std::string& name, const memory_config& c) {
  const memory_config d;
  const std::pair<const char*, bool> of_link[] = {
      {"cxl_bytes_per_ns", c.cxl_bytes_per_ns != d.cxl_bytes_per_ns},
      {"cxl_latency_ns", c.cxl_latency_ns != d.cxl_latency_ns},
      {"cxl_queue_entries", c.cxl_queue_entries != d.cxl_queue_entries},
      {"cxl_gpf", c.cxl_gpf}};
  for (const auto& [field, set] : of_link)
    if (set && c.cxl_flit_bytes == 0)
      return no_effect(name, field, fmt::format("{}.cxl_flit_bytes is 0: a local memory", name),
                       "cxl_flit_bytes");
  if (c.cxl_gpf && (name == "volatile_memory" || c.technology == "dram"))
    return no_effect(name, "cxl_gpf", "the memory loses its lines without power", "technology");
  return std::nullopt;
}

// Currents need a voltage, and what a command draws must not be below standby.
verdict in_currents(const std::string& name, const memory_config& c) {
  const std::pair<const char*, bool> of_vdd[] = {{"idd0_ma", c.idd0_ma > 0},
                                                 {"idd2n_ma", c.idd2n_ma > 0},
                                                 {"idd3n_ma", c.idd3n_ma > 0},
                                                 {"idd4r_ma", c.idd4r_ma > 0},
                                                 {"idd4w_ma", c.idd4w_ma > 0},
                                                 {"idd5b_ma", c.idd5b_ma > 0},
                                                 {"devices", c.devices != memory_config{}.devices},
                                                 {"idd3n_all_banks", c.idd3n_all_banks}};
  bool any = false;
  for (const auto& [field, set] : of_vdd) {
    if (set && c.vdd_v == 0) return no_effect(name, field, fmt::format("{}.vdd_v is 0", name));
    any |= set && std::string_view(field).ends_with("_ma");
  }
  if (c.vdd_v == 0) return std::nullopt;
  if (!any) return no_effect(name, "vdd_v", "no current is set");
  memory_statistics one;
  one.activates = one.reads = one.writes = one.refreshes = 1;
  const memory_energy e = energy_of_currents(one, c);
  for (const auto& [field, pj] : {std::pair{"idd0_ma", e.activate_pj},
                                  {"idd4r_ma", e.read_pj},
                                  {"idd4w_ma", e.write_pj},
                                  {"idd5b_ma", e.refresh_pj}})
    if (pj < -1e-3)
      return config_conflict{
          {name + '.' + field},
          fmt::format("{}.{} makes its command cost {:.0f} pJ, less than standby; give a larger "
                      "current, or idd3n_all_banks if idd3n_ma is that of all rows open",
                      name, field, pj)};
  return std::nullopt;
}

// What keeps the memory from being made. Its sentence begins with "memory: " and names the keys.
verdict in_making(const std::string& name, const memory_config& c) {
  const auto made = check_memory(c);
  if (made) return std::nullopt;
  const std::string why = made.error().message.substr(std::string_view("memory: ").size());
  config_conflict found{{}, fmt::format("{}: {}", name, why)};
  machine_config any;
  std::map<std::size_t, std::string> named;  // keys by their place in the sentence
  for (const config_key& k : keys_of(any))
    if (const std::string prefix = "nonvolatile_memory."; k.path.starts_with(prefix))
      if (const std::string field = k.path.substr(prefix.size()); why.find(field) != why.npos)
        if (std::string& longest = named[why.find(field)]; longest.size() < field.size())
          longest = field;
  for (const auto& [at, field] : named) found.keys.push_back(name + '.' + field);
  return found;
}

verdict in_memory(const std::string& name, const memory_config& c) {
  const auto key = [&](const char* field) { return name + '.' + field; };
  const std::uint64_t banks =
      std::uint64_t{c.controllers} * c.channels * c.ranks * c.bank_groups * c.banks;
  if (c.capacity_bytes / c.row_bytes < banks)
    return config_conflict{
        {key("capacity_bytes"), key("row_bytes"), key("banks")},
        fmt::format(
            "{}.capacity_bytes is {}, not a row of {} bytes for each of its {} banks; give more "
            "capacity, fewer banks or shorter rows",
            name, c.capacity_bytes, c.row_bytes, banks)};
  if (c.write_drain_to >= c.write_drain_from)
    return config_conflict{{key("write_drain_to"), key("write_drain_from")},
                           fmt::format("{}.write_drain_to is {}, not below {}.write_drain_from, "
                                       "{}; draining begins at the higher "
                                       "share and ends at the lower",
                                       name, c.write_drain_to, name, c.write_drain_from)};
  if (c.refresh_interval_ns > 0 && c.refresh_time_ns >= c.refresh_interval_ns)
    return config_conflict{{key("refresh_time_ns"), key("refresh_interval_ns")},
                           fmt::format("{}.refresh_time_ns is {}, not below "
                                       "{}.refresh_interval_ns, {}; the memory would do nothing "
                                       "else",
                                       name, c.refresh_time_ns, name, c.refresh_interval_ns)};
  for (const auto& check :
       {in_mapping, in_retention, in_scheduler, in_device, in_link, in_currents, in_making})
    if (auto found = check(name, c)) return found;
  return std::nullopt;
}

// Calls f(section, field, value, default, why) for each key that has no effect with this design.
template <class Machine, class F>
void for_each_idle_key(Machine& m, F&& f) {
  const machine_config usual;
  auto& d = m.design;
  if (!designs().plugin_of(d.name).empty()) return;  // it may read any key
  const design_config& u = usual.design;
  if (d.name != "kiln") {
    constexpr std::string_view why = "only the design kiln has it";
    f("design", "order", d.order, u.order, why);
    f("design", "transaction_ids", d.transaction_ids, u.transaction_ids, why);
    f("design", "lock_until_durable", d.lock_until_durable, u.lock_until_durable, why);
    f("design", "overflow_at", d.overflow_at, u.overflow_at, why);
    f("design", "overflow_interrupt_ns", d.overflow_interrupt_ns, u.overflow_interrupt_ns, why);
    for (const auto& [cache, of] : {std::pair{"l1", &machine_config::l1},
                                    {"l2", &machine_config::l2},
                                    {"l3", &machine_config::l3}})
      f(cache, "persistence_queue_entries", (m.*of).persistence_queue_entries,
        (usual.*of).persistence_queue_entries, why);
  }
  if (!d.name.ends_with("log")) {
    constexpr std::string_view why = "only designs with logs have it";
    f("design", "fences_wait", d.fences_wait, u.fences_wait, why);
    f("design", "log_bytes", d.log_bytes, u.log_bytes, why);
    f("design", "log_lines_fetched", d.log_lines_fetched, u.log_lines_fetched, why);
  }
  if (d.isolation != "htm")
    f("design", "htm_retries", d.htm_retries, u.htm_retries, "only isolation htm retries");
  if (d.isolation == "none")
    f("design", "lock_until_durable", d.lock_until_durable, u.lock_until_durable,
      "only isolations htm and mutex have a lock");
}

// A part of a plug-in that another machine has loaded.
verdict in_plugins(const machine_config& m) {
  for (const plugged_part& p : plugged_parts(m))
    if (std::ranges::find(m.plugins, p.plugin) == m.plugins.end())
      return config_conflict{
          {p.key, "plugins"},
          fmt::format("{} is {}, which the plug-in {} has, and the machine does not name it; add "
                      "it to plugins",
                      p.key, p.name, p.plugin)};
  return std::nullopt;
}

// The logs of all threads lie between data and volatile memory.
verdict in_logs(const machine_config& m) {
  const std::uint64_t threads = std::uint64_t{m.cores.count} * m.cores.threads_per_core;
  if (!m.design.name.ends_with("log") ||
      m.design.log_bytes <= (volatile_memory_at - logs_at) / threads)
    return std::nullopt;
  return config_conflict{
      {"design.log_bytes"},
      fmt::format("design.log_bytes is {}, and the logs of {} threads have room for {} bytes in "
                  "all; give shorter logs",
                  m.design.log_bytes, threads, volatile_memory_at - logs_at)};
}

verdict in_design(const machine_config& m) {
  const std::string& design = m.design.name;
  if (auto idle = idle_keys(m); !idle.empty()) return std::move(idle.front());
  if (auto found = in_logs(m)) return found;
  const std::string& order = m.nonvolatile_memory.scheduler;
  if (const auto kind = find_scheduler(order);
      m.design.barriers_wait && kind && !(*kind)->fences_return) {
    auto found = no_effect("design", "barriers_wait",
                           fmt::format("the scheduler {} has no persist barriers, so a thread "
                                       "waits at every fence",
                                       order));
    found.keys.push_back("nonvolatile_memory.scheduler");
    return found;
  }
  if (m.l3.nonvolatile || (design != "kiln" && design != "crlog" && design != "culog"))
    return std::nullopt;
  return config_conflict{{"design.name", "l3.nonvolatile"},
                         fmt::format("design.name is {}, which persists what it writes in the l3, "
                                     "and l3.nonvolatile is false; set "
                                     "it or choose native, rlog or ulog",
                                     design)};
}

}  // namespace

std::vector<config_conflict> idle_keys(const machine_config& m) {
  std::vector<config_conflict> idle;
  for_each_idle_key(m, [&](const char* section, const char* field, const auto& value,
                           const auto& usual, std::string_view why) {
    if (value == usual) return;
    config_conflict& found = idle.emplace_back(
        no_effect(section, field,
                  fmt::format("{}, and this machine has design {} with isolation {}", why,
                              m.design.name, m.design.isolation)));
    found.keys.push_back("design.name");
  });
  return idle;
}

void reset_idle_keys(machine_config& m) {
  for_each_idle_key(m, [](const char*, const char*, auto& value, const auto& usual,
                          std::string_view) { value = usual; });
}

std::optional<config_conflict> find_config_conflict(const machine_config& m) {
  if (auto found = in_plugins(m)) return found;
  if (auto found = in_private_cache("l1", m.l1)) return found;
  if (auto found = in_private_cache("l2", m.l2)) return found;
  const std::pair<const char*, const cache_config*> caches[] = {
      {"l1", &m.l1}, {"l2", &m.l2}, {"l3", &m.l3}};
  for (const auto& [name, cache] : caches)
    if (auto found = in_cache(name, *cache)) return found;
  if (auto found = in_prefetch(m)) return found;
  if (auto found = in_tlb(m)) return found;
  if (auto found = in_memory("nonvolatile_memory", m.nonvolatile_memory)) return found;
  if (auto found = in_memory("volatile_memory", m.volatile_memory)) return found;
  return in_design(m);
}

}  // namespace stele::sim
