// A run on a tape, which can be played again from its beginning. It is what runs behind a cache and
// runs behind a controller have in common.
#pragma once

#include <explore/judge.h>

#include <utility>
#include <vector>

namespace stele::explore {

class recorded_run {
 public:
  // Records the run of the subject's plan. Errors: what the run itself reports.
  [[nodiscard]] result<> record(subject& s) {
    history = {};
    auto tape = s.record(history);
    initial_.assign(s.initial_image());
    return set_tape(s, std::move(tape), 0);
  }
  // Records what follows the current crash of `before`: recovery to the state after `position`
  // operations, then `operations` more.
  [[nodiscard]] result<> record_recovery(subject& s, recorded_run& before, std::uint64_t position,
                                         std::size_t operations) {
    history = s.branch(before.history, position, operations);
    initial_.assign(before.work);
    hashed_image image = s.empty_image();
    image.assign(initial_);
    return set_tape(s, s.record_recovery(image, history, position), position);
  }

  hashed_image work;  // media, as of the events played so far
  judge image_judge;
  run_history history;

 protected:
  recorded_run(subject& s, verdict_cache& e)
      : work(s.empty_image()), image_judge(s, work, e), initial_(s.empty_image()) {}
  ~recorded_run() = default;
  [[nodiscard]] virtual result<> tape_changed(subject& s) = 0;  // called when there is a new tape

  hashed_image initial_;
  std::vector<std::byte> tape_;
  std::uint64_t position_ = 0;  // operations acknowledged before the tape begins

 private:
  [[nodiscard]] result<> set_tape(subject& s, result<std::vector<std::byte>> tape,
                                  std::uint64_t position) {
    if (!tape) return std::unexpected(tape.error());
    tape_ = std::move(*tape);
    position_ = position;
    return tape_changed(s);
  }
};

}  // namespace stele::explore
