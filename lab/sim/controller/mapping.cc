// Parses a mapping: turns names into runs of bits, and reports errors.
#include <base/check.h>
#include <sim/controller/mapping.h>
#include <sim/controller/memory.h>

#include <bit>
#include <ranges>
#include <string_view>
#include <vector>

namespace stele::sim {
namespace {

std::vector<std::string> fields_of(const std::string& mapping) {
  std::vector<std::string> names;
  for (const auto& part : mapping | std::views::split('-'))
    names.emplace_back(part.begin(), part.end());
  return names;
}

result<void> check_sizes(const memory_config& c) {
  const std::pair<const char*, std::uint64_t> sizes[] = {
      {"controllers", c.controllers},      {"channels", c.channels}, {"ranks", c.ranks},
      {"bank_groups", c.bank_groups},      {"banks", c.banks},       {"row_bytes", c.row_bytes},
      {"capacity_bytes", c.capacity_bytes}};
  for (const auto& [name, value] : sizes)
    if (!std::has_single_bit(value))
      return base::fail(errc::invalid_argument,
                        std::string("memory: ") + name + " is " + std::to_string(value) +
                            "; an address is cut into bits, so give a power of two");
  const std::uint64_t places =
      std::uint64_t{c.controllers} * c.channels * c.ranks * c.bank_groups * c.banks;
  if (c.row_bytes < line_bytes || c.capacity_bytes / places < c.row_bytes)
    return base::fail(errc::invalid_argument,
                      "memory: " + std::to_string(c.capacity_bytes) + " bytes in " +
                          std::to_string(places) + " banks hold no row of " +
                          std::to_string(c.row_bytes) + "; give more capacity or fewer banks");
  return {};
}

unsigned bits_of(std::uint64_t power) {
  return static_cast<unsigned>(std::countr_zero(power));
}

}  // namespace

result<void> mapping::lay_out(const memory_config& c) {
  const std::vector<std::string> names = fields_of(c.mapping);
  unsigned at = bits_of(line_bytes);
  unsigned seen = 0;
  const bool groups_named = std::ranges::find(names, "bank_group") != names.end();
  const auto take = [&](field& f) { at += (f.shift = at, f.bits), ++seen; };
  for (const std::string& name : names | std::views::reverse) {
    if (name == "bank" && !groups_named) take(group_), --seen;
    field* const f = name == "row"          ? &row_
                     : name == "rank"       ? &rank_
                     : name == "bank_group" ? &group_
                     : name == "bank"       ? &bank_
                     : name == "column"     ? &column_
                     : name == "channel"    ? &channel_
                                            : nullptr;
    if (f == nullptr || f->shift != 0)
      return base::fail(errc::invalid_argument,
                        "memory: mapping \"" + c.mapping + "\" " + (f ? "repeats" : "has unknown") +
                            " field \"" + name +
                            "\"; name each of row, rank, bank, column, channel once");
    take(*f);
  }
  if (seen != (groups_named ? 6U : 5U))
    return base::fail(errc::invalid_argument,
                      "memory: mapping \"" + c.mapping +
                          "\" lacks a field; name each of row, rank, bank, column, channel once");
  return {};
}

result<mapping> mapping::parse(const memory_config& c) {
  if (auto sound = check_sizes(c); !sound) return std::unexpected(sound.error());
  mapping m;
  m.rank_.bits = bits_of(c.ranks);
  m.group_.bits = bits_of(c.bank_groups);
  m.bank_.bits = bits_of(c.banks);
  m.column_.bits = bits_of(c.row_bytes / line_bytes);
  m.channel_.bits = bits_of(std::uint64_t{c.controllers} * c.channels);
  m.group_and_bank_bits_ = m.group_.bits + m.bank_.bits;
  if (c.bank_hash) m.hash_bits_ = m.rank_.bits + m.group_and_bank_bits_;
  m.row_.bits = bits_of(c.capacity_bytes / line_bytes) - m.rank_.bits - m.group_and_bank_bits_ -
                m.column_.bits - m.channel_.bits;
  if (m.row_.bits > 31)
    return base::fail(
        errc::invalid_argument,
        "memory: capacity_bytes makes more than 2^31 rows a bank; give less capacity");
  if (auto laid = m.lay_out(c); !laid) return std::unexpected(laid.error());
  return m;
}

}  // namespace stele::sim
