// When a command may be issued: the rules of a configuration, compiled to tables.
//
// The channel is a tree of nodes (channel, ranks, bank groups, banks). Each node keeps, for each
// command, the earliest time at which the rules allow it. Issuing a command raises these times at
// the four nodes on the path to its bank; a command is allowed when all four nodes allow it. (The
// idea of per-node tables is from Ramulator: Kim, Yang, Mutlu, "Ramulator: a fast and extensible
// DRAM simulator", 2015, section 2; the code is not.) A refresh is of several banks of a rank, so
// it raises the times of all their nodes, and waits for all of them.
#pragma once

#include <sim/archive.h>
#include <sim/branchless.h>
#include <sim/config.h>
#include <sim/controller/bank_set.h>
#include <sim/time.h>
#include <stele/error.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

namespace stele::sim {

// Of four bytes: a decision of a scheduler then has no padding, and is copied as two words.
enum class command : std::uint32_t { activate, precharge, read, write, refresh };
inline constexpr unsigned commands = 5;
constexpr bool moves_data(command c) noexcept {
  return c == command::read || c == command::write;
}
enum class level : std::uint8_t { channel, rank, bank_group, bank };
inline constexpr unsigned levels = 4;

// The configuration with times of whole cycles of its clock, in whole picoseconds. As JEDEC rounds
// (JESD79-4, section 13.5), a time that exceeds whole cycles by less than 2.6 % of one is theirs.
memory_config in_cycles(memory_config c);

class timing_table {
 public:
  [[nodiscard]] static result<timing_table> compile(const memory_config& c);

  unsigned banks() const noexcept { return static_cast<unsigned>(paths_.size()); }
  unsigned ranks() const noexcept { return ranks_; }
  unsigned rank_of(unsigned bank) const noexcept { return bank / (banks() / ranks_); }

  // The banks of a rank; those of the number `of_group` in all its bank groups.
  const bank_set& banks_of(unsigned rank) const noexcept { return banks_of_[rank]; }
  bank_set same_banks_of(unsigned rank, unsigned of_group) const noexcept;

  // The earliest time of a command other than refresh: by all rules; by the rules of the bank's own
  // node; by the rules of the nodes above it.
  picoseconds earliest(command c, unsigned bank) const noexcept {
    return std::max(earliest_in_bank(c, bank), earliest_above(c, bank));
  }
  picoseconds earliest_in_bank(command c, unsigned bank) const noexcept {
    return nodes_[first_[3] + bank][static_cast<unsigned>(c)];
  }
  [[gnu::always_inline]] picoseconds earliest_above(command c, unsigned bank) const noexcept {
    const path& p = paths_[bank];
    const auto i = static_cast<unsigned>(c);
    return larger_of(larger_of(nodes_[0][i], nodes_[p[1]][i]), nodes_[p[2]][i]);
  }
  // Whether no rule is at the nodes between channel and bank: then earliest_above() is that of the
  // channel's node, for all banks.
  bool is_flat() const noexcept { return flat_; }
  const std::array<picoseconds, 8>& channel_node() const noexcept { return nodes_[0]; }
  // Of these banks, which are of one rank.
  picoseconds earliest_refresh(const bank_set& banks) const noexcept;

  void issue(command c, unsigned bank, picoseconds at) noexcept {
    const path& p = paths_[bank];
    apply_rules(0, 0, c, at);
    apply_rules(3, p[3], c, at);
    if (flat_) return;
    apply_rules(1, p[1], c, at);
    apply_rules(2, p[2], c, at);
    if (has_rank_rule_ >> static_cast<unsigned>(c) & 1) [[unlikely]]
      delay_other_ranks(p[1], c, at);
  }
  void issue_refresh(const bank_set& banks, picoseconds at) noexcept;
  // A precharge that the device itself does at `at`, which may be in the future. The bank and its
  // refresh wait for it.
  void issue_auto_precharge(unsigned bank, picoseconds at) noexcept;
  // The bank's cells are being written: the bank takes no command before `until`.
  void occupy(unsigned bank, picoseconds until) noexcept;

  void visit_state(archive& a) {
    a.fixed(nodes_), a.fixed(times_);
    for (const window_rule& w : windows_)
      for (unsigned node = 0; node < nodes_of(w.where); ++node)
        a.index(oldest_[w.history + std::size_t{node} * w.window], w.window);
  }

 private:
  using row = std::array<picoseconds, 8>;  // by command; padded to a cache line
  using path = std::array<std::uint16_t, levels>;
  struct window_rule {
    level where;
    command preceding, following;
    picoseconds latency;
    unsigned window;
    std::size_t history;  // index in times_ for the level's first node; a ring
  };

  void build(const memory_config& c);
  unsigned uppermost_of(unsigned l) const noexcept;
  [[nodiscard]] result<void> add(const timing_rule& r);
  void add_between_ranks(unsigned preceding, unsigned following, picoseconds latency);
  void add_pair(level l, command preceding, command following, const timing_rule& r);
  unsigned nodes_of(level l) const noexcept {
    return first_[static_cast<unsigned>(l) + 1] - first_[static_cast<unsigned>(l)];
  }
  void delay_other_ranks(unsigned own_node, command c, picoseconds at) noexcept;
  void apply_window_rules(unsigned l, unsigned node, command c, picoseconds at) noexcept;

  void delay_refresh(unsigned node, picoseconds until) noexcept {
    picoseconds& ready = nodes_[node][static_cast<unsigned>(command::refresh)];
    ready = std::max(ready, until);
  }
  // Without a loop: it takes a third of the instructions.
  template <std::size_t... Command>
  static void delay_to(row& ready, picoseconds at, const row& wait,
                       std::index_sequence<Command...>) noexcept {
    ((ready[Command] = std::max(ready[Command], at + wait[Command])), ...);
  }
  void apply_rules(unsigned l, unsigned node, command c, picoseconds at) noexcept {
    const auto i = static_cast<unsigned>(c);
    if (has_rule_[l] >> i & 1) {
      const row& wait = delay_[l][i];
      row& ready = nodes_[node];
      delay_to(ready, at, wait, std::make_index_sequence<commands>{});
    }
    if (has_window_rule_[l] >> i & 1) apply_window_rules(l, node, c, at);
  }

  std::vector<row> nodes_;
  std::vector<path> paths_;  // for each bank, its node at each level
  std::array<std::array<row, commands>, levels> delay_{};
  std::array<std::uint8_t, levels> has_rule_{},
      has_window_rule_{};                    // preceding commands of the rules, as bits
  std::array<row, commands> other_ranks_{};  // delays of the rules of level other_ranks
  std::uint8_t has_rank_rule_ = 0;           // preceding commands of these rules, as bits
  std::vector<window_rule> windows_;
  std::vector<picoseconds> times_;            // the histories of window rules
  std::vector<std::uint32_t> oldest_;         // at the index of each ring: its oldest element
  std::array<unsigned, levels + 1> first_{};  // first node of each level
  std::vector<bank_set> banks_of_;            // for each rank
  unsigned ranks_ = 1, groups_of_rank_ = 1, banks_of_group_ = 1;
  picoseconds refresh_after_precharge_ = 0;  // of a rank
  bool flat_ = true;
};

}  // namespace stele::sim
