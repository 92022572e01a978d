// Checks the commands of a memory against its configuration, for tests.
//
// Shares no code with the timing tables, the schedulers or the refresh logic: for each rule and
// node it keeps the last commands that the rule names, and compares times. Besides the rules of the
// configuration it checks what no configuration can switch off: a row is opened in a closed bank,
// only the open row is read or written, no row is open at a refresh, a due refresh goes before
// requests and none comes early, data does not overlap on the bus, and no command goes to a bank
// whose cells are being written. An automatic precharge is the device's own: it uses no command
// slot, so rules of the levels channel and other_ranks leave it out.
#pragma once

#include <fmt/format.h>
#include <sim/controller/channel.h>

#include <deque>
#include <map>
#include <optional>

namespace stele::sim {

class command_rules {
 public:
  explicit command_rules(const memory_config& c)
      : config_(c), interval_(from_ns(c.refresh_interval_ns)) {
    for (const timing_rule& r : c.timing)
      rules_.push_back(
          {name_of(r), r.level, r.preceding, r.following, from_ns(r.latency_ns), r.window, {}});
    if (interval_)
      rules_.push_back({"tRFC", "rank", "refresh", "any", from_ns(c.refresh_time_ns), 1, {}});
    if (const picoseconds written = time_in_cells(); written)
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
  static std::string told(const command_report& r) {
    return fmt::format("the {}{} of {} {} of channel {} at {} ps", r.automatic ? "automatic " : "",
                       word_of(r.what), r.what == command::refresh ? "rank" : "bank",
                       r.what == command::refresh ? r.rank : r.bank, r.channel, r.at);
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

  void tell(const std::string& broken_rule, const command_report& r, const command_report& before,
            const std::string& why) {
    sentences_.push_back(fmt::format("{}: {} {} {}", broken_rule, told(r), why, told(before)));
  }

  void check(const command_report& r) {
    for (rule& each : rules_) check_distance(each, r);
    check_refresh(r);
    check_row(r);
    check_bus(r);
  }

  void check_distance(rule& of, const command_report& r) {
    if (r.automatic && (of.level == "channel" || of.level == "other_ranks")) return;
    if (of.level == "other_ranks") return check_other_ranks(of, r);
    std::deque<command_report>& last = of.last[node_of(of.level, r)];
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

  // A rank's first refresh is due after an interval; staggered, each rank's is due whole cycles
  // before the next rank's.
  picoseconds first_due(unsigned rank) const {
    if (!config_.staggered_refresh) return interval_;
    const picoseconds cycle = std::max<picoseconds>(1, from_ns(config_.clock_ns));
    return interval_ - (interval_ / config_.ranks / cycle * cycle) * (config_.ranks - 1 - rank);
  }

  // The n-th refresh of a rank is due n - 1 intervals after its first. Refreshes of long idle times
  // are not reported, so an interval may lack its refresh as long as it has no other command.
  void check_refresh(const command_report& r) {
    if (interval_ == 0) return;
    const unsigned rank = node_of("rank", r);
    command_report& last =
        refreshed_.try_emplace(rank, command_report{command::refresh, r.channel, r.rank, r.bank, 0})
            .first->second;
    const picoseconds first = first_due(r.rank);
    const picoseconds due =
        last.at < first ? first : first + ((last.at - first) / interval_ + 1) * interval_;
    if (r.what == command::refresh) {
      if (r.at < due) tell("tREFI", r, last, "comes in the same interval as");
      last = r;
    } else if (r.what != command::precharge && r.at >= due) {
      tell(fmt::format("tREFI: a refresh is due at {} ps", due), r, last,
           "goes before it, the last refresh being");
    }
  }

  void check_row(const command_report& r) {
    const unsigned bank = node_of("bank", r);
    if (r.what == command::refresh) {
      for (unsigned b = bank; b < bank + banks_of_rank(); ++b)
        if (const auto open = open_.find(b); open != open_.end())
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
  picoseconds interval_, burst_of_read_ = 0, burst_of_write_ = 0;
  std::vector<rule> rules_;
  std::map<unsigned, command_report> open_, closed_, refreshed_;  // by bank, bank and rank
  std::map<unsigned, std::deque<transfer>> bus_;                  // by channel
  std::vector<std::string> sentences_;
};

}  // namespace stele::sim
