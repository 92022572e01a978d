// Writes findings as a sentence and as JSON, and reads them from the process that made them.
#include <explore/report.h>
#include <explore/schedule/schedules.h>
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace stele::explore {

schedule_findings& schedule_findings::operator+=(const schedule_findings& f) {
  schedules += f.schedules, distinct += f.distinct, systematic += f.systematic;
  complete = complete || f.complete;
  choices = std::max(choices, f.choices);
  points += f.points, exhausted += f.exhausted, states += f.states,
      distinct_states += f.distinct_states;
  recovered += f.recovered, refused += f.refused;
  seconds += f.seconds, judging_seconds += f.judging_seconds;
  violations.insert(violations.end(), f.violations.begin(), f.violations.end());
  return *this;
}

std::string summary_of(const schedule_findings& f) {
  const double run = f.seconds - f.judging_seconds;
  return fmt::format(
      "{} schedules ({} systematic{}, {} tapes with something new), at most {} choices; {} crash "
      "points ({:.0f} % "
      "exhausted), {} states ({} distinct, {} after recovery{}); "
      "{:.0f} schedules/s, {:.0f} states/s while judging; {} violations",
      f.schedules, f.systematic, f.complete ? ", complete" : "", f.distinct, f.choices, f.points,
      f.points == 0 ? 0.0
                    : 100.0 * static_cast<double>(f.exhausted) / static_cast<double>(f.points),
      f.states, f.distinct_states, f.recovered,
      f.refused == 0 ? ""
                     : fmt::format(", {} refused for what was lost, as they may be", f.refused),
      run > 0 ? static_cast<double>(f.schedules) / run : 0,
      f.judging_seconds > 0 ? static_cast<double>(f.states) / f.judging_seconds : 0,
      f.violations.size());
}

nlohmann::json json_of(const schedule_findings& f) {
  return {{"schedules", f.schedules},
          {"systematic", f.systematic},
          {"complete", f.complete},
          {"distinct_tapes", f.distinct},
          {"choices", f.choices},
          {"epochs", f.points},
          {"epochs_exhausted", f.exhausted},
          {"states", f.states},
          {"distinct_states", f.distinct_states},
          {"recovered_states", f.recovered},
          {"refused", f.refused},
          {"seconds", f.seconds},
          {"judging_seconds", f.judging_seconds},
          {"violations", json_of(f.violations)}};
}

schedule_findings schedule_findings_of(const nlohmann::json& j) {
  schedule_findings f;
  f.schedules = j.at("schedules"), f.systematic = j.at("systematic"), f.complete = j.at("complete"),
  f.distinct = j.at("distinct_tapes"), f.choices = j.at("choices");
  f.points = j.at("epochs"), f.exhausted = j.at("epochs_exhausted"), f.states = j.at("states"),
  f.distinct_states = j.at("distinct_states"), f.recovered = j.at("recovered_states");
  f.refused = j.at("refused"), f.seconds = j.at("seconds"),
  f.judging_seconds = j.at("judging_seconds");
  f.violations = violations_of(j);
  return f;
}

}  // namespace stele::explore
