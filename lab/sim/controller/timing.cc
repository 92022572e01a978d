// Compiles timing rules; applies the rules that count several preceding commands (four activates).
#include <base/check.h>
#include <sim/controller/timing.h>

#include <string_view>
#include <utility>

namespace stele::sim {
namespace {

constexpr std::array<std::string_view, commands> command_names = {"activate", "precharge", "read",
                                                                  "write", "refresh"};
constexpr std::array<std::string_view, levels> level_names = {"channel", "rank", "bank_group",
                                                              "bank"};

template <std::size_t N>
unsigned find(const std::array<std::string_view, N>& names, const std::string& name) {
  return static_cast<unsigned>(std::ranges::find(names, name) - names.begin());
}

std::unexpected<error> wrong(const timing_rule& r, const std::string& why) {
  return base::fail(errc::invalid_argument, "memory: timing rule " + r.level + ": " + r.preceding +
                                                " -> " + r.following + " " + why);
}

// The commands that a name stands for, as bits.
unsigned commands_named(const std::string& name) {
  if (name == "any") return (1U << commands) - 1;
  const unsigned i = find(command_names, name);
  return i < commands ? 1U << i : 0;
}

}  // namespace

memory_config in_cycles(memory_config c) {
  if (c.clock_ns == 0) return c;
  const double cycle_ns = static_cast<double>(from_ns(c.clock_ns)) / 1000;
  const auto round_up = [&](double& ns) { ns = std::ceil(ns / c.clock_ns - 0.026) * cycle_ns; };
  for (double* ns :
       {&c.read_latency_ns, &c.write_latency_ns, &c.write_pulse_ns, &c.refresh_time_ns})
    round_up(*ns);
  for (timing_rule& r : c.timing) round_up(r.latency_ns);
  c.refresh_interval_ns = std::floor(c.refresh_interval_ns / c.clock_ns + 0.026) * cycle_ns;
  c.clock_ns = cycle_ns;
  return c;
}

void timing_table::build(const memory_config& c) {
  ranks_ = c.ranks, groups_of_rank_ = c.bank_groups, banks_of_group_ = c.banks;
  const unsigned groups = c.ranks * c.bank_groups, banks = groups * c.banks;
  first_ = {0, 1, 1 + c.ranks, 1 + c.ranks + groups, 1 + c.ranks + groups + banks};
  nodes_.assign(first_[levels], row{});
  banks_of_.resize(c.ranks);
  for (unsigned bank = 0; bank < banks; ++bank) {
    const unsigned group = bank / c.banks;
    banks_of_[group / c.bank_groups].insert(bank);
    paths_.push_back({0, static_cast<std::uint16_t>(first_[1] + group / c.bank_groups),
                      static_cast<std::uint16_t>(first_[2] + group),
                      static_cast<std::uint16_t>(first_[3] + bank)});
  }
}

// The uppermost level whose nodes have the same banks as those of `l`: a rule at either is the
// same.
unsigned timing_table::uppermost_of(unsigned l) const noexcept {
  if (l == 2 && groups_of_rank_ == 1) l = 1;
  return l == 1 && ranks_ == 1 ? 0 : l;
}

void timing_table::add_pair(level l, command preceding, command following, const timing_rule& r) {
  const picoseconds latency = from_ns(r.latency_ns);
  if (l == level::rank && r.window == 1 && preceding == command::precharge &&
      following == command::refresh)
    refresh_after_precharge_ = std::max(refresh_after_precharge_, latency);
  l = static_cast<level>(uppermost_of(static_cast<unsigned>(l)));
  flat_ = flat_ && (l == level::channel || l == level::bank);
  const auto li = static_cast<unsigned>(l), p = static_cast<unsigned>(preceding);
  if (r.window == 1) {
    picoseconds& wait = delay_[li][p][static_cast<unsigned>(following)];
    wait = std::max(wait, latency);
    has_rule_[li] = static_cast<std::uint8_t>(has_rule_[li] | 1U << p);
    return;
  }
  has_window_rule_[li] = static_cast<std::uint8_t>(has_window_rule_[li] | 1U << p);
  windows_.push_back({l, preceding, following, latency, r.window, times_.size()});
  times_.resize(times_.size() + std::size_t{r.window} * nodes_of(l), never);
  oldest_.resize(times_.size(), 0);
}

void timing_table::add_between_ranks(unsigned preceding, unsigned following, picoseconds latency) {
  picoseconds& wait = other_ranks_[preceding][following];
  wait = std::max(wait, latency);
  has_rank_rule_ = static_cast<std::uint8_t>(has_rank_rule_ | 1U << preceding);
  flat_ = false;
}

result<void> timing_table::add(const timing_rule& r) {
  const bool between_ranks = r.level == "other_ranks";
  const unsigned l = between_ranks ? 1 : find(level_names, r.level),
                 before = commands_named(r.preceding), after = commands_named(r.following);
  if (l == levels)
    return wrong(r, "names no level; use channel, rank, other_ranks, bank_group or bank");
  if (!before || !after)
    return wrong(r, "names no command; use activate, precharge, read, write, refresh or any");
  if (!(r.latency_ns >= 0) || r.window == 0)
    return wrong(r, "has a negative latency or an empty window; give latency_ns >= 0, window >= 1");
  if (between_ranks && r.window != 1)
    return wrong(r, "counts several commands between ranks; give it window 1");
  for (unsigned p = 0; p < commands; ++p)
    for (unsigned f = 0; f < commands; ++f)
      if ((before >> p & 1) && (after >> f & 1))
        between_ranks
            ? add_between_ranks(p, f, from_ns(r.latency_ns))
            : add_pair(static_cast<level>(l), static_cast<command>(p), static_cast<command>(f), r);
  return {};
}

result<timing_table> timing_table::compile(const memory_config& c) {
  timing_table t;
  t.build(c);
  for (const timing_rule& r : c.timing)
    if (auto added = t.add(r); !added) return std::unexpected(added.error());
  if (c.refresh_interval_ns > 0) {
    if (!(c.refresh_time_ns >= 0 && c.refresh_time_ns < c.refresh_interval_ns))
      return base::fail(errc::invalid_argument,
                        "memory: refresh_time_ns is not below refresh_interval_ns; the rank would "
                        "do nothing else");
    if (auto added = t.add({"bank", "refresh", "any", c.refresh_time_ns, 1}); !added)
      return std::unexpected(added.error());
  }
  return t;
}

void timing_table::apply_window_rules(unsigned l, unsigned node, command c,
                                      picoseconds at) noexcept {
  for (const window_rule& w : windows_) {
    if (static_cast<unsigned>(w.where) != l || w.preceding != c) continue;
    const std::size_t ring = w.history + std::size_t{node - first_[l]} * w.window;
    std::uint32_t& oldest = oldest_[ring];
    times_[ring + oldest] = at;
    oldest = (oldest + 1) % w.window;
    picoseconds& ready = nodes_[node][static_cast<unsigned>(w.following)];
    if (times_[ring + oldest] != never) ready = std::max(ready, times_[ring + oldest] + w.latency);
  }
}

void timing_table::delay_other_ranks(unsigned own_node, command c, picoseconds at) noexcept {
  const row& wait = other_ranks_[static_cast<unsigned>(c)];
  for (unsigned node = 1; node <= ranks_; ++node)
    for (unsigned f = 0; node != own_node && f < commands; ++f)
      if (wait[f] != 0) nodes_[node][f] = std::max(nodes_[node][f], at + wait[f]);
}

void timing_table::issue_auto_precharge(unsigned bank, picoseconds at) noexcept {
  apply_rules(3, paths_[bank][3], command::precharge, at);
  delay_refresh(paths_[bank][3], at);
  if (refresh_after_precharge_ != 0) delay_refresh(paths_[bank][1], at + refresh_after_precharge_);
}

void timing_table::occupy(unsigned bank, picoseconds until) noexcept {
  row& ready = nodes_[paths_[bank][3]];
  for (unsigned f = 0; f < commands; ++f) ready[f] = std::max(ready[f], until);
}

// --- refresh ---

bank_set timing_table::same_banks_of(unsigned rank, unsigned of_group) const noexcept {
  bank_set same;
  const unsigned all = banks() / ranks_;
  for (unsigned bank = of_group; bank < all; bank += banks_of_group_)
    same.insert(rank * all + bank);
  return same;
}

picoseconds timing_table::earliest_refresh(const bank_set& banks) const noexcept {
  picoseconds at = 0;
  banks.for_each([&](unsigned bank) { at = std::max(at, earliest(command::refresh, bank)); });
  return at;
}

void timing_table::issue_refresh(const bank_set& banks, picoseconds at) noexcept {
  const path& first = paths_[banks.first()];
  for (unsigned l = 0; l < 2; ++l) apply_rules(l, first[l], command::refresh, at);
  if (has_rank_rule_ >> static_cast<unsigned>(command::refresh) & 1) [[unlikely]]
    delay_other_ranks(first[1], command::refresh, at);
  unsigned group = 0;
  banks.for_each([&](unsigned bank) {
    const path& p = paths_[bank];
    if (p[2] != std::exchange(group, p[2])) apply_rules(2, p[2], command::refresh, at);
    apply_rules(3, p[3], command::refresh, at);
  });
}

}  // namespace stele::sim
