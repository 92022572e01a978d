// The checkpoint of a pool: a copy of home as it was at one instant, beside home in the pool file.
// docs/protocol/archapt.md, C1 to C5 and F1 to F4.
//
// update() copies the matrices that were stored to since the last update. Stores of earlier
// sessions are not known, so a session's first update compares all of home. Not thread-safe.
#pragma once

#include <base/assert.h>
#include <media/media.h>
#include <pool/pool_file.h>
#include <published/archapt/parity_area.h>
#include <published/mutant.h>

#include <cstring>
#include <vector>

namespace stele::detail {

template <class Media>
class home_copy {
 public:
  home_copy(const storage::pool_file& file, const parity_area& area, Media& media)
      : file_(file), area_(area), media_(media), changed_(present() ? area.matrices() : 0, true) {}

  bool present() const noexcept { return file_.header().home_copy_offset != 0; }
  // Notes that a commit has stored to a line of home.
  void record_store(std::uint64_t offset) {
    STELE_ASSERT(changed_.empty() || area_.matrix_of(offset) < changed_.size());
    if (!changed_.empty() && !planted<Media>(published::mutant::archapt_copy_unchanged))
      changed_[area_.matrix_of(offset)] = true;
  }

  // Makes the copy equal to home; durable after the medium's next fence. Nothing may change home
  // meanwhile.
  void update() {
    for (std::uint64_t m = 0; m < changed_.size(); ++m) {
      if (!changed_[m]) continue;
      changed_[m] = false;
      for_each_different(
          m, [&](const std::byte* home, std::byte* copy) { media_.stream(copy, home, line_size); });
    }
  }
  // Makes home equal to the copy; durable after the medium's next fence. All of home is flushed:
  // when a process was killed in the middle of this, some lines equal the copy only in the cache.
  void restore_home() {
    STELE_ASSERT_ALWAYS(present());  // archapt.md: without a checkpoint nothing is given up
    for (std::uint64_t m = 0; m < area_.matrices(); ++m)
      for_each_different(
          m, [&](std::byte* home, const std::byte* copy) { media_.store(home, copy, line_size); });
    media_.flush(file_.at(file_.header().home_offset), area_.home_size());
    STELE_ASSERT_WHOLE(equals_home());  // archapt.md, F2
  }

 private:
  // Only for assertions.
  [[maybe_unused]] bool equals_home() const {
    bool same = true;
    for (std::uint64_t m = 0; m < area_.matrices(); ++m)
      for_each_different(m, [&](const std::byte*, const std::byte*) { same = false; });
    return same;
  }
  // Calls each(line in home, line in the copy) for the lines of a matrix that differ.
  template <class Each>
  void for_each_different(std::uint64_t matrix, Each&& each) const {
    for (std::uint64_t lines = area_.lines_in_home(matrix); lines != 0; lines &= lines - 1) {
      const std::uint64_t offset =
          area_.offset_of(matrix, static_cast<unsigned>(std::countr_zero(lines)));
      STELE_ASSERT(area_.in_home(offset));
      std::byte* const home = file_.at(offset);
      std::byte* const copy =
          file_.base() + file_.header().home_copy_offset + (offset - file_.header().home_offset);
      if (std::memcmp(home, copy, line_size) != 0) each(home, copy);
    }
  }

  const storage::pool_file& file_;
  const parity_area& area_;
  Media& media_;
  std::vector<bool> changed_;  // matrices with stores that the copy may lack
};

}  // namespace stele::detail
