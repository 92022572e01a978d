// One tape being explored: memory as settled so far, the state under judgement, and where in the run we are.
//
// Used by the explorer, which visits every crash point, and by a replay, which goes to one. The order of pending units, and
// so the meaning of a choice, follows from the tape alone.
#pragma once

#include <explore/judge.h>
#include <explore/media_model.h>

#include <memory>
#include <optional>

namespace stele::explore {

class scene {
 public:
  scene(subject& s, experience& e);

  // Begins with the memory in `at_start`, all of it persistent. Operations before `position` were acknowledged before.
  void begin(const hashed_image& at_start, std::uint64_t position);
  // Passes one event; true when a crash point lies just before it. The effect of an event at a crash point comes with
  // leave_point().
  bool take(const media::tape_event& e);
  void leave_point();

  // Puts the unit into the work image as the option has it; 0: as it is settled.
  void choose(std::uint32_t unit, std::uint64_t option) { model->put(work, unit, option); }
  // What is wrong with what recovery made of the work image; empty: nothing.
  std::string complaint(const verdict& v, const timeline& t) const {
    return judging.complaint(v, t, floor, ceiling, [this] { return stale(); });
  }

  hashed_image settled, work;
  std::unique_ptr<media_model> model;
  judge judging;
  std::uint64_t point = 0;               // crash points passed
  std::uint64_t floor = 0, ceiling = 0;  // operations acknowledged as durable; invoked

 private:
  // The lines that the work image does not have as they were stored last.
  std::vector<std::uint32_t> stale() const;
  void bring_over(std::span<const std::uint32_t> units);
  std::optional<media::tape_event> waiting_;
};

}  // namespace stele::explore
