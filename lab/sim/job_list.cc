// Checks every point of a sweep and writes it.
#include <base/check.h>
#include <fmt/format.h>
#include <sim/config_file.h>
#include <sim/job_list.h>
#include <sim/simulation.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

namespace stele::sim {
namespace {

using names = std::vector<std::string>;
using settings = nlohmann::ordered_json;

std::unexpected<error> wrong(const std::string& sentence) {
  return base::fail(errc::invalid_argument, sentence);
}

result<> refuse_repetition(const std::string& what, names list) {
  std::ranges::sort(list);
  const auto twice = std::ranges::adjacent_find(list);
  if (twice != list.end()) return wrong(fmt::format("{}: '{}' is given twice", what, *twice));
  return {};
}

result<> check_axes(const sweep_axes& axes) {
  names keys;
  for (const auto& [key, values] : axes.keys) {
    if (key == "design.name")
      return wrong("design.name: give the designs of a sweep with --designs");
    keys.push_back(key);
    if (auto once = refuse_repetition("the values of " + key, values); !once) return once;
  }
  const std::pair<const char*, const names&> lists[] = {
      {"the keys of the sweep", keys}, {"--designs", axes.designs}, {"--tapes", axes.tapes}};
  for (const auto& [what, list] : lists)
    if (auto once = refuse_repetition(what, list); !once) return once;
  for (const std::string& tape : axes.tapes)
    if (const auto opened = media::tape_reader::open(tape); !opened)
      return std::unexpected(opened.error());
  return {};
}

std::unexpected<error> wrong_point(const std::string& point, const error& why) {
  return base::fail(why.code,
                    fmt::format("the point {}: {}; nothing is written", point, why.message));
}

result<> check_run(const machine_config& m, const std::string& tape) {
  auto opened = feed::open(tape, m.cores.count * m.cores.threads_per_core);
  if (!opened) return std::unexpected(opened.error());
  return simulation::check(m, *opened);
}

class list_writer {
 public:
  explicit list_writer(const sweep_axes& axes) : axes_(axes) {}

  result<> add_values(const machine_config& m, settings chosen, std::size_t level) {
    if (level == axes_.keys.size()) return add_designs(m, chosen);
    const auto& [key, values] = axes_.keys[level];
    for (const std::string& value : values) {
      chosen[key] = value;
      machine_config one = m;
      if (auto set = set_key(one, key, value); !set) return wrong_point(chosen.dump(), set.error());
      if (auto added = add_values(one, chosen, level + 1); !added) return added;
    }
    return {};
  }

  job_list list;

 private:
  result<> add_designs(const machine_config& m, const settings& chosen) {
    for (const std::string& design : axes_.designs) {
      const std::string point = fmt::format("{}, {}", design, chosen.dump());
      machine_config one = m;
      if (auto set = set_key(one, "design.name", design); !set)
        return wrong_point(chosen.dump(), set.error());
      if (auto sound = check_machine(one); !sound) return wrong_point(point, sound.error());
      for (const std::string& tape : axes_.tapes) {
        if (auto runs = check_run_once(one, tape); !runs)
          return wrong_point(fmt::format("{}, {}", point, tape), runs.error());
        add_point(chosen, design, tape);
      }
    }
    return {};
  }

  // A tape may have to be read to its end, so it is checked once for all machines that are alike in
  // what simulation::check() looks at.
  result<> check_run_once(const machine_config& m, const std::string& tape) {
    const memory_config &nonvolatile = m.nonvolatile_memory, &other = m.volatile_memory;
    const std::string kind =
        fmt::format("{} {} {} {} {} {} {}", m.cores.count * m.cores.threads_per_core,
                    nonvolatile.capacity_bytes, other.capacity_bytes, nonvolatile.technology,
                    m.design.name, m.design.log_bytes, tape);
    return checked_.insert(kind).second ? check_run(m, tape) : result<>();
  }

  void add_point(const settings& chosen, const std::string& design, const std::string& tape) {
    const nlohmann::ordered_json job{
        {"machine", axes_.machine}, {"settings", chosen},
        {"design", design},         {"tape", tape},
        {"seed", axes_.seed},       {"warm_up", axes_.warm_up_transactions}};
    list.text += job.dump() + '\n';
    ++list.points;
  }

  const sweep_axes& axes_;
  std::set<std::string> checked_;
};

}  // namespace

result<job_list> job_list_of(const sweep_axes& axes) {
  if (auto sound = check_axes(axes); !sound) return std::unexpected(sound.error());
  list_writer writer(axes);
  if (auto added = writer.add_values(axes.base, settings::object(), 0); !added)
    return std::unexpected(added.error());
  return std::move(writer.list);
}

}  // namespace stele::sim
