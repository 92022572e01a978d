// Checks the commands of a memory against its configuration, for tests.
//
// Shares no code with the timing tables, the schedulers or the refresh logic: for each rule and
// node it keeps the last commands that the rule names, and compares times. Besides the rules of the
// configuration it checks what no configuration can switch off: a row is opened in a closed bank,
// only the open row is read or written, no row of a refreshed bank is open, a due refresh goes
// before requests of its banks, none comes early, is left out or is of other banks than those whose
// turn it is, data does not overlap on the bus, and no command goes to a bank whose cells are being
// written: after each write, or, with write_back_rows, when a written row is closed. An automatic
// precharge is the device's own: it uses no command slot, so rules of the levels channel and
// other_ranks leave it out.
#pragma once

#include <fmt/format.h>
#include <sim/controller/channel.h>

#include <deque>
#include <map>
#include <optional>
#include <set>

namespace stele::sim {

class command_rules {
 public:
  explicit command_rules(const memory_config& c)
      : config_(c),
        same_bank_(c.refresh == "same-bank"),
        interval_(from_ns(c.refresh_interval_ns)) {
    for (const timing_rule& r : c.timing)
      rules_.push_back(
          {name_of(r), r.level, r.preceding, r.following, from_ns(r.latency_ns), r.window, {}});
    if (interval_)
      rules_.push_back({same_bank_ ? "tRFCsb" : "tRFC",
                        same_bank_ ? "bank" : "rank",
                        "refresh",
                        "any",
                        from_ns(c.refresh_time_ns),
                        1,
                        {}});
    if (const picoseconds written = time_in_cells(); written && !c.write_back_rows)
      rules_.push_back({"cells being written", "bank", "write", "any", written, 1, {}});
    for (const timing_rule& r : c.timing) {
      if (r.level != "channel" || r.window != 1 || r.preceding != r.following) continue;
      if (r.preceding == "read") burst_of_read_ = from_ns(r.latency_ns);
      if (r.preceding == "write") burst_of_write_ = from_ns(r.latency_ns);
    }
  }

  // A sentence for each rule that two of the commands break, in order of time.
  static std::vector<std::string> broken(const memory_config& c,
                                         std::vector<command_report> issued) {
    command_rules rules(c);
    std::ranges::stable_sort(issued, {}, &command_report::at);
    for (const command_report& r : issued) rules.check(r);
    return std::move(rules.sentences_);
  }

 private:
  struct rule {
    std::string name, level, preceding, following;
    picoseconds distance = 0;
    unsigned window = 1;
    std::map<unsigned, std::deque<command_report>> last;  // by node: `window` preceding commands
  };
  struct transfer {
    command_report by;
    picoseconds begin = 0, end = 0;
  };

  static std::string word_of(command c) {
    constexpr std::array words = {"activate", "precharge", "read", "write", "refresh"};
    return words[static_cast<unsigned>(c)];
  }
  static std::string name_of(const timing_rule& r) {
    const std::string pair = r.preceding + " " + r.following;
    if (pair == "activate activate")
      return r.window > 1 ? "tFAW" : r.level == "bank" ? "tRC" : "tRRD";
    const std::pair<const char*, const char*> names[] = {{"activate read", "tRCD"},
                                                         {"activate write", "tRCD"},
                                                         {"activate precharge", "tRAS"},
                                                         {"precharge activate", "tRP"},
                                                         {"precharge refresh", "tRP"},
                                                         {"activate refresh", "tRC"},
                                                         {"read read", "tCCD"},
                                                         {"write write", "tCCD"},
                                                         {"write read", "tWTR"},
                                                         {"read write", "tRTW"},
                                                         {"read precharge", "tRTP"},
                                                         {"write precharge", "tWR"},
                                                         {"any any", "one command a cycle"}};
    for (const auto& [both, name] : names)
      if (pair == both) return name;
    return pair;
  }
  std::string told(const command_report& r) const {
    const bool of_rank = r.what == command::refresh && !same_bank_;
    return fmt::format("the {}{} of {} {} of channel {} at {} ps", r.automatic ? "automatic " : "",
                       word_of(r.what), of_rank ? "rank" : "bank", of_rank ? r.rank : r.bank,
                       r.channel, r.at);
  }
  static bool names(const std::string& name, const command_report& r) {
    return name == "any" || name == word_of(r.what);
  }

  // The time from a write until the cells hold the line, at least.
  picoseconds time_in_cells() const {
    double pulse_ns = config_.write_pulse_ns;
    if (config_.technology == "pcm") {
      double fastest = 1;
      for (const retention_row& r : config_.retention)
        if (r.retention_s == config_.log_retention_s || r.retention_s == config_.data_retention_s)
          fastest = std::max(fastest, r.speedup);
      pulse_ns = config_.iterations * config_.iteration_ns / fastest;
    }
    return pulse_ns > 0 ? from_ns(config_.write_latency_ns) + from_ns(pulse_ns) : 0;
  }

  unsigned banks_of_rank() const { return config_.bank_groups * config_.banks; }
  unsigned node_of(const std::string& level, const command_report& r) const {
    const unsigned bank = r.channel * config_.ranks * banks_of_rank() + r.bank;
    if (level == "channel") return r.channel;
    if (level == "rank") return bank / banks_of_rank();
    return level == "bank_group" ? bank / config_.banks : bank;
  }

  // The nodes of a level that a refresh is of.
  std::set<unsigned> nodes_of(const std::string& level, const command_report& r) const {
    std::set<unsigned> nodes;
    command_report one = r;
    for (; one.bank < r.bank / banks_of_rank() * banks_of_rank() + banks_of_rank();
         one.bank += same_bank_ ? config_.banks : 1)
      nodes.insert(node_of(level, one));
    return nodes;
  }

  void tell(const std::string& broken_rule, const command_report& r, const command_report& before,
            const std::string& why) {
    sentences_.push_back(fmt::format("{}: {} {} {}", broken_rule, told(r), why, told(before)));
  }

  void check(const command_report& r) {
    for (rule& each : rules_) check_distance(each, r);
    check_refresh(r);
    check_row(r);
    if (config_.write_back_rows) check_cells(r);
    check_bus(r);
  }

  void check_distance(rule& of, const command_report& r) {
    if (r.automatic && (of.level == "channel" || of.level == "other_ranks")) return;
    if (of.level == "other_ranks") return check_other_ranks(of, r);
    if (!names(of.following, r) && !names(of.preceding, r)) return;
    if (r.what != command::refresh) return check_node(of, node_of(of.level, r), r);
    for (const unsigned node : nodes_of(of.level, r)) check_node(of, node, r);
  }

  void check_node(rule& of, unsigned node, const command_report& r) {
    std::deque<command_report>& last = of.last[node];
    if (names(of.following, r) && last.size() == of.window && r.at < last.front().at + of.distance)
      tell(fmt::format("{} of a {} is {} ps", of.name, of.level, of.distance), r, last.front(),
           "comes too soon after");
    if (!names(of.preceding, r)) return;
    last.push_back(r);
    if (last.size() > of.window) last.pop_front();
  }

  void check_other_ranks(rule& of, const command_report& r) {
    if (names(of.following, r))
      for (const auto& [rank, last] : of.last)
        if (last.back().channel == r.channel && last.back().rank != r.rank &&
            r.at < last.back().at + of.distance)
          tell(fmt::format("{} of another rank is {} ps", of.name, of.distance), r, last.back(),
               "comes too soon after");
    if (names(of.preceding, r)) of.last[node_of("rank", r)] = {r};
  }

  // What a rank's refreshes are ahead of those of a rank that is due after whole intervals:
  // staggered, each rank's are due whole cycles before the next rank's.
  picoseconds ahead(unsigned rank) const {
    if (!config_.staggered_refresh) return 0;
    const picoseconds cycle = std::max<picoseconds>(1, from_ns(config_.clock_ns));
    return interval_ / config_.ranks / cycle * cycle * (config_.ranks - 1 - rank);
  }

  // The n-th refresh of a rank is due after n intervals, less what it is ahead; if it is a
  // same-bank one, it is the turn of the banks n - 1, modulo the banks of a group. Refreshes of
  // long idle times are not reported, so an interval may lack its refresh as long as it has no
  // other command.
  void check_refresh(const command_report& r) {
    if (interval_ == 0) return;
    const unsigned rank = node_of("rank", r), turns = same_bank_ ? config_.banks : 1;
    command_report& last =
        refreshed_.try_emplace(rank, command_report{command::refresh, r.channel, r.rank, r.bank, 0})
            .first->second;
    const picoseconds early = ahead(r.rank);
    const picoseconds next = (last.at + early) / interval_ + 1, now = (r.at + early) / interval_;
    if (r.what == command::refresh) {
      if (now < next) tell("tREFI", r, last, "comes in the same interval as");
      if ((now - 1) % turns != r.bank % banks_of_rank())
        tell(
            fmt::format("same-bank refreshes take turns: it is that of bank {}", (now - 1) % turns),
            r, last, "comes after");
      if (const auto served = served_.find(rank);
          now > next && served != served_.end() && served->second.at + early >= next * interval_)
        tell(fmt::format("no refresh is left out: one was due at {} ps", next * interval_ - early),
             r, served->second, "comes after");
      last = r;
    } else if (r.what != command::precharge) {
      served_[rank] = r;
      for (picoseconds due = next; due <= now; ++due)
        if (!same_bank_ || (due - 1) % turns == r.bank % config_.banks)
          return tell(fmt::format("tREFI: a refresh is due at {} ps", due * interval_ - early), r,
                      last, "goes before it, the last refresh being");
    }
  }

  void check_row(const command_report& r) {
    const unsigned bank = node_of("bank", r);
    if (r.what == command::refresh) {
      for (const unsigned refreshed : nodes_of("bank", r))
        if (const auto open = open_.find(refreshed); open != open_.end())
          tell("no row is open at a refresh", r, open->second, "comes after");
      return;
    }
    const auto open = open_.find(bank);
    const command_report& before = open == open_.end() ? closed_[bank] : open->second;
    if (r.what == command::activate) {
      if (open != open_.end())
        tell("a row is opened in a closed bank", r, before, "finds it opened by");
      open_[bank] = r;
    } else if (open == open_.end()) {
      tell("only an open row is read, written or closed", r, before, "finds it closed by");
    } else if (r.what == command::precharge) {
      closed_[bank] = r;
      open_.erase(open);
    } else if (before.row != r.row) {
      tell("only the open row is read or written", r, before,
           fmt::format("is for row {} and finds row {}, opened by", r.row, before.row));
    }
  }

  // A row that was written and is closed at `r`: the bank's cells are being written first.
  void close_written(unsigned bank, const command_report& r, const command_report& write) {
    const picoseconds in_buffer = write.at + from_ns(config_.write_latency_ns),
                      pulse = from_ns(config_.write_pulse_ns);
    if (!r.automatic)
      closing_[bank] = {r, std::max(r.at, in_buffer), std::max(r.at, in_buffer) + pulse};
    else if (r.at < in_buffer + pulse)
      tell("cells being written from a row", r, write, "closes the row too soon after");
  }

  // The time from the end of a pulse to a command: as from a precharge.
  picoseconds after_precharge(const std::string& following) const {
    double longest_ns = 0;
    for (const timing_rule& t : config_.timing)
      if (t.preceding == "precharge" && t.following == following && t.level != "channel")
        longest_ns = std::max(longest_ns, t.latency_ns);
    return from_ns(longest_ns);
  }

  void check_cells(const command_report& r) {
    const unsigned bank = node_of("bank", r);
    if (r.what == command::write) written_[bank] = r;
    if (r.what == command::precharge)
      if (const auto write = written_.extract(bank)) close_written(bank, r, write.mapped());
    if (r.what != command::activate && r.what != command::refresh) return;
    const unsigned banks = r.what == command::refresh ? banks_of_rank() : 1;
    for (unsigned b = bank; b < bank + banks; ++b)
      if (const auto closing = closing_.find(b);
          closing != closing_.end() &&
          r.at < closing->second.end + after_precharge(word_of(r.what)))
        tell("cells being written from a row", r, closing->second.by, "comes too soon after");
  }

  // The data of a column command is on the bus in the last part of its latency.
  void check_bus(const command_report& r) {
    const bool read = r.what == command::read;
    const picoseconds burst = read ? burst_of_read_ : burst_of_write_;
    if ((!read && r.what != command::write) || burst == 0) return;
    const picoseconds end =
        r.at + from_ns(read ? config_.read_latency_ns : config_.write_latency_ns);
    std::deque<transfer>& bus = bus_[r.channel];
    for (const transfer& t : bus)
      if (t.begin < end && end - std::min(end, burst) < t.end)
        tell("data does not overlap on the bus", r, t.by, "moves its data during that of");
    bus.push_back({r, end - std::min(end, burst), end});
    if (bus.size() > 16) bus.pop_front();
  }

  memory_config config_;
  bool same_bank_;
  picoseconds interval_, burst_of_read_ = 0, burst_of_write_ = 0;
  std::vector<rule> rules_;
  std::map<unsigned, command_report> open_, closed_;       // by bank
  std::map<unsigned, command_report> refreshed_, served_;  // by rank: refresh, request
  std::map<unsigned, command_report> written_;             // by bank: the open row's last
  std::map<unsigned, transfer> closing_;                   // by bank: the row to the cells
  std::map<unsigned, std::deque<transfer>> bus_;           // by channel
  std::vector<std::string> sentences_;
};

}  // namespace stele::sim
