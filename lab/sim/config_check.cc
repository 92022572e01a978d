// Checks that involve several keys: caches have whole sets, addresses divide into fields,
// schedulers can make progress, keys of one kind of device are not set for another.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sim/config_check.h>
#include <sim/config_keys.h>
#include <sim/controller/memory.h>
#include <sim/nearest.h>

#include <bit>
#include <ranges>

namespace stele::sim {
namespace {

using verdict = std::optional<config_conflict>;

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

verdict in_timing(const std::string& name, const memory_config& c) {
  for (const timing_rule& r : c.timing) {
    const bool below_rank = r.level == "bank" || r.level == "bank_group";
    if (below_rank && (r.preceding == "refresh" || r.following == "refresh"))
      return config_conflict{{name + ".timing"},
                             fmt::format("{}.timing has a rule {} to {} at level {}, but a refresh "
                                         "is a rank's; give it the level "
                                         "rank or channel",
                                         name, r.preceding, r.following, r.level)};
  }
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

// A key of a device without effect on this device must keep its default.
verdict in_device(const std::string& name, const memory_config& c) {
  const memory_config d;
  const auto idle = [&](const std::string& field, const std::string& why) {
    return config_conflict{{name + '.' + field, name + ".technology"},
                           fmt::format("{}.{} has no effect: {}; leave it out", name, field, why)};
  };
  const std::pair<const char*, bool> of_retention[] = {
      {"retention", !c.retention.empty()},
      {"iterations", c.iterations != d.iterations},
      {"iteration_ns", c.iteration_ns != d.iteration_ns},
      {"data_retention_s", c.data_retention_s != d.data_retention_s},
      {"log_retention_s", c.log_retention_s != d.log_retention_s}};
  for (const auto& [field, set] : of_retention)
    if (set && c.technology != "pcm")
      return idle(field, fmt::format("{}.technology is {}, and only pcm writes by retention", name,
                                     c.technology));
  if (name == "volatile_memory" && c.log_retention_s != d.log_retention_s)
    return idle("log_retention_s", "logs are in the nonvolatile memory");
  if (c.write_pulse_ns > 0 && c.technology != "stt-mram")
    return idle("write_pulse_ns", c.technology == "pcm"
                                      ? "a write to pcm takes its iterations"
                                      : "cells of dram hold what the row buffer holds");
  const std::pair<const char*, double> currents[] = {
      {"idd0_ma", c.idd0_ma},   {"idd2n_ma", c.idd2n_ma}, {"idd3n_ma", c.idd3n_ma},
      {"idd4r_ma", c.idd4r_ma}, {"idd4w_ma", c.idd4w_ma}, {"idd5b_ma", c.idd5b_ma}};
  bool any = false;
  for (const auto& [field, value] : currents) {
    if (value > 0 && c.vdd_v == 0) return idle(field, fmt::format("{}.vdd_v is 0", name));
    any |= value > 0;
  }
  if (c.vdd_v > 0 && !any) return idle("vdd_v", "no current is set");
  if (c.devices != d.devices && c.vdd_v == 0)
    return idle("devices", fmt::format("{}.vdd_v is 0", name));
  if (c.refresh_time_ns > 0 && c.refresh_interval_ns == 0)
    return idle("refresh_time_ns", fmt::format("{}.refresh_interval_ns is 0: no refresh", name));
  if (c.staggered_refresh && (c.refresh_interval_ns == 0 || c.ranks == 1))
    return idle("staggered_refresh",
                c.ranks == 1 ? "a channel has one rank"
                             : fmt::format("{}.refresh_interval_ns is 0: no refresh", name));
  return std::nullopt;
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
  for (const auto& check : {in_mapping, in_timing, in_retention, in_device})
    if (auto found = check(name, c)) return found;
  return std::nullopt;
}

verdict in_design(const machine_config& m) {
  const std::string& design = m.design.name;
  if (m.l3.nonvolatile || (design != "kiln" && design != "crlog" && design != "culog"))
    return std::nullopt;
  return config_conflict{{"design.name", "l3.nonvolatile"},
                         fmt::format("design.name is {}, which persists what it writes in the l3, "
                                     "and l3.nonvolatile is false; set "
                                     "it or choose native, rlog or ulog",
                                     design)};
}

}  // namespace

std::optional<config_conflict> find_config_conflict(const machine_config& m) {
  const std::pair<const char*, const cache_config*> caches[] = {
      {"l1", &m.l1}, {"l2", &m.l2}, {"l3", &m.l3}};
  for (const auto& [name, cache] : caches)
    if (auto found = in_cache(name, *cache)) return found;
  if (auto found = in_memory("nonvolatile_memory", m.nonvolatile_memory)) return found;
  if (auto found = in_memory("volatile_memory", m.volatile_memory)) return found;
  return in_design(m);
}

}  // namespace stele::sim
