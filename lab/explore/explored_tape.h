// One tape being explored: memory as durable so far, the state under judgement, and where in the
// run we are.
//
// Used by the explorer, which visits every crash point, and by a replay, which goes to one. The
// order of pending units, and so the meaning of a choice, follows from the tape alone.
#pragma once

#include <explore/judge.h>
#include <explore/media_model.h>

#include <memory>
#include <optional>

namespace stele::explore {

class explored_tape {
 public:
  explored_tape(subject& s, verdict_cache& e);

  // Begins with the memory in `at_start`, all of it persistent. Operations before `position` were
  // acknowledged before.
  void begin(const hashed_image& at_start, std::uint64_t position);
  // Passes one event; true when a crash point lies just before it. The effect of an event at a
  // crash point comes with leave_point().
  bool take(const media::tape_event& e);
  void leave_point();

  // Puts the unit into the work image as the option has it; 0: as it is durable.
  void choose(std::uint32_t unit, std::uint64_t option) { model->put(work, unit, option); }
  // What is wrong with what recovery made of the work image; empty: nothing.
  std::string violation_of(const verdict& v, const run_history& t) const {
    return image_judge.violation_of(v, t, acknowledged, invoked, [this] { return stale(); });
  }

  hashed_image durable, work;
  std::unique_ptr<media_model> model;
  judge image_judge;
  std::uint64_t point = 0;                      // crash points passed
  std::uint64_t acknowledged = 0, invoked = 0;  // operations acknowledged as durable; invoked

 private:
  // The lines that the work image does not have as they were stored last.
  std::vector<std::uint32_t> stale() const;
  void copy_durable(std::span<const std::uint32_t> units);
  std::optional<media::tape_event> event_at_point_;
};

}  // namespace stele::explore
