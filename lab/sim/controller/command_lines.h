// Reads a trace of commands as another program would, for tests.
#pragma once

#include <sim/controller/channel.h>

#include <fstream>
#include <map>

namespace stele::sim {

// Times are cycles; picoseconds without a clock. A column command that closes its row is
// followed by the precharge of the device as soon as the bank's rules allow it.
inline std::vector<command_report> commands_of(const std::string& path, const memory_config& c) {
  const picoseconds cycle = std::max<picoseconds>(1, from_ns(c.clock_ns));
  std::vector<command_report> all;
  std::map<unsigned, picoseconds> activated;
  std::ifstream in(path);
  std::string word;
  for (std::uint64_t at = 0; in >> std::dec >> at >> word;) {
    unsigned channel = 0, rank = 0, group = 0, bank = 0, row = 0, column = 0;
    in >> channel >> rank >> group >> bank >> std::hex >> row >> column;
    const bool closes = word.ends_with("_p");
    const std::string name = closes ? word.substr(0, word.size() - 2) : word;
    const char* names[] = {"activate", "precharge", "read", "write", "refresh", "refresh_bank"};
    const auto found = std::min<std::ptrdiff_t>(4, std::ranges::find(names, name) - names);
    const auto what = static_cast<command>(found);
    const unsigned flat = (rank * c.bank_groups + group) * c.banks + bank;
    command_report r{what, channel, rank, flat, at * cycle, row, false, 0};
    all.push_back(r);
    if (what == command::activate) activated[channel * max_banks + flat] = r.at;
    if (!closes) continue;
    picoseconds closed = 0;
    for (const timing_rule& t : c.timing)
      if (t.level == "bank" && t.following == "precharge")
        closed =
            std::max(closed, t.preceding == "activate"
                                 ? activated[channel * max_banks + flat] + from_ns(t.latency_ns)
                             : t.preceding == name ? r.at + from_ns(t.latency_ns)
                                                   : 0);
    all.push_back({command::precharge, channel, rank, flat, closed, no_row, true, 0});
  }
  return all;
}

}  // namespace stele::sim
