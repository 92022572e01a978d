// Which covered matrices a spilled record touches. For each log, with memory that is reserved
// before its commit; used by the log's owner.
#pragma once

#include <base/assert.h>
#include <published/archapt/parity_tracker.h>
#include <tx/write_set.h>

#include <algorithm>
#include <span>
#include <vector>

namespace stele::detail {

class covered_spills {
 public:
  explicit covered_spills(std::size_t logs) : of_logs_(logs) {}

  // For a payload of so many bytes, and these lines. Throws std::bad_alloc.
  void reserve(unsigned log, std::uint64_t bytes, std::size_t lines) {
    constexpr std::uint64_t matrix_bytes = format::matrix_lines * std::uint64_t{line_size};
    of_logs_[log].reserve(bytes / matrix_bytes + 2 + lines);
  }
  // The covered matrices that hold bytes of home [offset, offset + bytes), or one of the lines.
  template <class Media>
  std::span<const std::uint64_t> find(unsigned log, const parity_tracker<Media>& tracker,
                                      std::uint64_t offset, std::uint64_t bytes,
                                      std::span<const written_line> lines) {
    STELE_ASSERT(log < of_logs_.size());
    std::vector<std::uint64_t>& found = of_logs_[log];
    found.clear();
    const auto look = [&](std::uint64_t m) {
      if (!tracker.covered(m) || std::ranges::find(found, m) != found.end()) return;
      STELE_ASSERT(found.size() < found.capacity());  // a commit allocates no memory
      found.push_back(m);
    };
    const parity_area& area = tracker.area;
    // A spilled payload lies in chunks, which are all of home.
    STELE_ASSERT(bytes != 0 && area.in_home(offset) && area.in_home(offset + bytes - 1));
    for (std::uint64_t m = area.matrix_of(offset); m <= area.matrix_of(offset + bytes - 1); ++m)
      look(m);
    for (const written_line& line : lines) look(area.matrix_of(line.offset));
    return found;
  }

 private:
  std::vector<std::vector<std::uint64_t>> of_logs_;
};

}  // namespace stele::detail
