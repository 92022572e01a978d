// One tape being explored: the durable memory so far, the state under judgement, and the place in
// the run.
//
// The explorer uses it to visit every crash point, a replay to go to one. The order of pending
// units, and so the meaning of a choice, follows from the tape alone.
#pragma once

#include <explore/judge.h>
#include <explore/media_model.h>

#include <memory>
#include <optional>

namespace stele::explore {

class explored_tape {
 public:
  explored_tape(subject& s, verdict_cache& e);

  // Begins with the memory in `at_start`, all of it durable, and with operations before `position`
  // acknowledged.
  void begin(const hashed_image& at_start, std::uint64_t position);
  // Passes one event. Returns true when a crash point lies just before it; then leave_point()
  // applies the event's effect.
  bool take(const media::tape_event& e);
  void leave_point();

  // Gives the unit in the work image the content of an option; option 0 is the durable content.
  void choose(std::uint32_t unit, std::uint64_t option) { model->put(work, unit, option); }
  // What is wrong with the state that recovery made of the work image; empty: nothing.
  std::string violation_of(const verdict& v, const run_history& t) const {
    return image_judge.violation_of(v, t, acknowledged, invoked, [this] { return stale(); });
  }

  hashed_image durable, work;
  std::unique_ptr<media_model> model;
  judge image_judge;
  std::uint64_t point = 0;                      // crash points passed
  std::uint64_t acknowledged = 0, invoked = 0;  // counts of operations

 private:
  // The lines that are not in the work image as they were stored last.
  std::vector<std::uint32_t> stale() const;
  void copy_durable(std::span<const std::uint32_t> units);
  std::optional<media::tape_event> event_at_point_;
};

}  // namespace stele::explore
