// Checks that the transactions of each thread of a tape can be run: each begins once and commits,
// and none aborts.
//
// One check for all that read tapes to run them. A machine decides by itself which attempts abort,
// so a tape has the transactions that committed, and nothing of attempts that did not.
#pragma once

#include <lab_media/tape.h>
#include <sim/archive.h>

#include <cstdint>
#include <vector>

namespace stele::sim {

class tape_order {
 public:
  // Call for each event in the order of the tape. `thread` runs it; it differs from the tape's
  // thread for events that belong to no log. Errors: corrupt, with the numbers of event and thread.
  [[nodiscard]] result<> see(const media::tape_record& r, unsigned thread, std::uint64_t event) {
    return is_mark(r) ? see_mark(r, thread, event) : result<>();
  }
  // see() returns no error for other events.
  static bool is_mark(const media::tape_record& r) noexcept {
    const auto op = static_cast<media::tape_op>(r.op);
    return op >= media::tape_op::tx_begin && op <= media::tape_op::tx_abort;
  }
  // Call at the end of the tape. Errors: corrupt, for the first transaction that does not end.
  [[nodiscard]] result<> finish() const;

  void visit_state(archive& a) { a(begun_); }

 private:
  [[nodiscard]] result<> see_mark(const media::tape_record& r, unsigned thread,
                                  std::uint64_t event);

  // By thread: one more than the number of the event that began its open transaction; 0: none.
  std::vector<std::uint64_t> begun_;
};

}  // namespace stele::sim
