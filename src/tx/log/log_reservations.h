// Log reservation: lines of a ring set aside for the owner of a log, before its commit draws a
// TxID. If a commit waited for lines with its TxID drawn, later commits could fill the rings with
// records that no truncation may remove before it. An attempt that does not reach its commit keeps
// the reservation until the owner's next one. Not thread-safe.
#pragma once

#include <base/assert.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace stele::detail {

class log_reservations {
 public:
  explicit log_reservations(std::size_t logs) : of_logs_(logs), of_rings_(logs) {}

  // The owner of `log` has no other reservation.
  void reserve(unsigned log, std::size_t ring, std::uint64_t lines) noexcept {
    STELE_ASSERT(log < of_logs_.size() && ring < of_rings_.size() && lines != 0);
    STELE_ASSERT(of_logs_[log].lines == 0);
    of_logs_[log] = {ring, lines};
    of_rings_[ring] += lines;
    STELE_ASSERT_WHOLE(sums_up(ring));
  }
  // Returns the ring that the reservation was in.
  std::size_t release(unsigned log) noexcept {
    STELE_ASSERT(log < of_logs_.size());
    reservation& r = of_logs_[log];
    STELE_ASSERT(of_rings_[r.ring] >= r.lines);
    of_rings_[r.ring] -= std::exchange(r.lines, 0);
    STELE_ASSERT_WHOLE(sums_up(r.ring));
    return r.ring;
  }
  std::uint64_t lines_in(std::size_t ring) const noexcept {
    STELE_ASSERT(ring < of_rings_.size());
    return of_rings_[ring];
  }

 private:
  struct reservation {
    std::size_t ring = 0;
    std::uint64_t lines = 0;
  };
  // For assertions: the ring has the lines that logs hold in it.
  [[maybe_unused]] bool sums_up(std::size_t ring) const noexcept {
    std::uint64_t lines = 0;
    for (const reservation& r : of_logs_) lines += r.ring == ring ? r.lines : 0;
    return lines == of_rings_[ring];
  }

  std::vector<reservation> of_logs_;
  std::vector<std::uint64_t> of_rings_;
};

}  // namespace stele::detail
