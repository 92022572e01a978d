// Writes the job list of a sweep. Every point is checked before the file is opened.
#include <cli/command.h>
#include <cli/output.h>
#include <cli/sim_sweep.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <lab_media/tape.h>
#include <sim/config_file.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace stele::cli {
namespace {

using names = std::vector<std::string>;

void refuse_repetition(const std::string& what, names list) {
  std::ranges::sort(list);
  const auto twice = std::ranges::adjacent_find(list);
  if (twice != list.end()) fail(fmt::format("{}: '{}' is given twice", what, *twice));
}

void check_axes(const sweep_axes& axes) {
  names keys;
  for (const auto& [key, values] : axes.keys) {
    if (key == "design.name") fail("design.name: give the designs of a sweep with --designs");
    keys.push_back(key);
    refuse_repetition("the values of " + key, values);
  }
  refuse_repetition("the keys of the sweep", keys);
  refuse_repetition("--designs", axes.designs);
  refuse_repetition("--tapes", axes.tapes);
  for (const std::string& tape : axes.tapes)
    if (const auto opened = media::tape_reader::open(tape); !opened) fail(opened.error());
}

class job_list {
 public:
  explicit job_list(const sweep_axes& axes) : axes_(axes) {
    add_values(axes.base, nlohmann::ordered_json::object(), 0);
  }
  const std::string& text() const noexcept { return text_; }
  std::size_t points() const noexcept { return points_; }

 private:
  void add_values(const sim::machine_config& m, nlohmann::ordered_json settings,
                  std::size_t level) {
    if (level == axes_.keys.size()) return add_designs(m, settings);
    const auto& [key, values] = axes_.keys[level];
    for (const std::string& value : values) {
      settings[key] = value;
      add_values(with(m, key, value, settings), settings, level + 1);
    }
  }

  void add_designs(const sim::machine_config& m, const nlohmann::ordered_json& settings) {
    for (const std::string& design : axes_.designs) {
      const auto made = with(m, "design.name", design, settings);
      or_fail(sim::check_machine(made), fmt::format("{}, {}", design, settings.dump()));
      for (const std::string& tape : axes_.tapes) add_point(settings, design, tape);
    }
  }

  void add_point(const nlohmann::ordered_json& settings, const std::string& design,
                 const std::string& tape) {
    const nlohmann::ordered_json job{
        {"machine", axes_.machine}, {"settings", settings},
        {"design", design},         {"tape", tape},
        {"seed", axes_.seed},       {"warm_up", axes_.warm_up_transactions}};
    text_ += job.dump() + '\n';
    ++points_;
  }

  static sim::machine_config with(sim::machine_config m, const std::string& key,
                                  const std::string& value,
                                  const nlohmann::ordered_json& settings) {
    or_fail(sim::set_key(m, key, value), settings.dump());
    return m;
  }
  static void or_fail(const result<>& r, const std::string& point) {
    if (!r) fail(fmt::format("the point {}: {}; nothing is written", point, r.error().message));
  }

  const sweep_axes& axes_;
  std::string text_;
  std::size_t points_ = 0;
};

}  // namespace

void write_job_list(const sweep_axes& axes, const std::string& file) {
  check_axes(axes);
  const job_list list(axes);
  output out(file);
  out.write(list.text());
  out.keep();
  fmt::print("{} points in {}\n", list.points(), file);
}

}  // namespace stele::cli
