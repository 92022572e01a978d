// A run on a tape, to be played again from its beginning: what runs behind a cache and behind a controller have in common.
#pragma once

#include <explore/judge.h>

#include <utility>
#include <vector>

namespace stele::explore {

class recorded_run {
 public:
  // The run that the subject's plan names. Errors: what the run itself reports.
  [[nodiscard]] result<> record(subject& s) {
    history = {};
    auto tape = s.record(history);
    start_.assign(s.start());
    return take(s, std::move(tape), 0);
  }
  // What follows the crash that `before` is at: recovery to the state after `position` operations, and so many more.
  [[nodiscard]] result<> record_recovery(subject& s, recorded_run& before, std::uint64_t position, std::size_t operations) {
    history = s.branch(before.history, position, operations);
    start_.assign(before.work);
    hashed_image image = s.blank();
    image.assign(start_);
    return take(s, s.record_recovery(image, history, position), position);
  }

  hashed_image work;  // media, as far as the tape has been played
  judge judging;
  timeline history;

 protected:
  recorded_run(subject& s, experience& e) : work(s.blank()), judging(s, work, e), start_(s.blank()) {}
  ~recorded_run() = default;
  [[nodiscard]] virtual result<> taken(subject& s) = 0;  // the tape is another

  hashed_image start_;
  std::vector<std::byte> tape_;
  std::uint64_t position_ = 0;  // operations acknowledged before its beginning

 private:
  [[nodiscard]] result<> take(subject& s, result<std::vector<std::byte>> tape, std::uint64_t position) {
    if (!tape) return std::unexpected(tape.error());
    tape_ = std::move(*tape);
    position_ = position;
    return taken(s);
  }
};

}  // namespace stele::explore
