// For each log of a pool, which lines of home its records have stored to: from the lane's
// dirty-line queue, or from a record in the log, if the queue does not name the lines. For
// truncation, which one thread at a time runs.
#pragma once

#include <base/assert.h>
#include <tx/log/dirty_line_queue.h>
#include <tx/log/record.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace stele::detail {

class stored_lines {
 public:
  stored_lines(const storage::pool_file& file, std::size_t logs) : file_(file), until_(logs) {}

  // No record that is read from a log has more payload words. Throws std::bad_alloc.
  void reserve(std::size_t words) { record_.payload.reserve(words); }
  // Nothing before this position is collected.
  void begin(unsigned log, std::uint64_t position) noexcept {
    STELE_ASSERT(log < until_.size() && position >= until_[log]);
    until_[log] = position;
  }

  // Calls line(offset) for the lines of l's records up to TxID `through`, and removes them from the
  // queue. False: a record cannot be read back, because another program has written to the log; it
  // and those after it stay in the queue.
  template <class Lane, class Line>
  [[nodiscard]] bool collect(Lane& l, std::uint64_t through, Line&& line) {
    STELE_ASSERT(l.number < until_.size());
    std::uint64_t& position = until_[l.number];
    position = std::max(position, l.log.head());
    for (dirty_line_queue::entry n; l.dirty_lines.peek(n) && n.txid <= through;) {
      for (std::uint64_t at = position; n.lines == 0 && !n.clean && at < n.next;) {
        const auto whole = l.read(at, n.next, record_);
        if (!whole) return false;
        if (!*whole) break;  // only aborted transactions are left
        for_each_stored_line(file_, record_.payload, line);
      }
      STELE_ASSERT(n.next > position);
      position = n.next;
      l.dirty_lines.pop(n, line);
    }
    return true;
  }
  // For each log, the position after the records that were collected.
  const std::vector<std::uint64_t>& ends() const noexcept { return until_; }

 private:
  const storage::pool_file& file_;
  std::vector<std::uint64_t> until_;
  log_record record_;
};

}  // namespace stele::detail
