// Direct, synchronous block writes for logs, write-back and fdatasync for home.
#include <base/mutant.h>
#include <fcntl.h>
#include <media/file.h>
#include <media/os.h>
#include <unistd.h>

#include <algorithm>

namespace stele::media {

using base::mutant;
using base::planted;

file_writer::file_writer(const region& where) : where_(where) {
  const int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | (planted(mutant::file_not_synchronous) ? 0 : O_DSYNC);
  direct_ = os::open(where.path.c_str(), flags | O_DIRECT);
  if (direct_ < 0) direct_ = os::open(where.path.c_str(), flags);
  if (direct_ < 0) failed_.store(true);
}

file_writer::~file_writer() {
  if (direct_ >= 0) ::close(direct_);
}

bool file_writer::write(std::span<const block_runs::run> runs) noexcept {
  if (planted(mutant::file_last_run)) runs = runs.first(runs.size() - 1);
  return std::ranges::all_of(runs, [this](const block_runs::run& r) {
    const std::uint64_t from = r.first * block_size;
    return os::write_all(direct_, where_.base + from, std::min(r.end * block_size, where_.home_offset) - from, from);
  });
}

// Does another thread write one of these blocks now? Holds mutex_.
bool file_writer::in_the_way(const writing& mine) const noexcept {
  for (const writing* w = writing_; w != nullptr; w = w->next)
    for (const auto& theirs : w->runs)
      for (const auto& r : mine.runs)
        if (r.first < theirs.end && theirs.first < r.end) return true;
  return false;
}

void file_writer::persist(const block_runs& blocks) noexcept {
  writing mine{blocks.all()};
  std::unique_lock hold(mutex_);
  while (!failed() && in_the_way(mine)) done_.wait(hold);
  if (failed()) return;
  mine.next = writing_;
  writing_ = &mine;
  hold.unlock();
  const bool written = write(mine.runs) || planted(mutant::file_failure_ignored);
  hold.lock();
  if (!written) failed_.store(true, std::memory_order_release);  // what reached the device is unknown; never retried
  writing** at = &writing_;
  while (*at != &mine) at = &(*at)->next;
  *at = mine.next;
  hold.unlock();
  done_.notify_all();
}

// In pieces, so that the device's queue stays short for commits meanwhile; then the sync, which has little left to write.
void file_writer::persist_home() noexcept {
  constexpr std::uint64_t least_piece = std::uint64_t{1} << 20, most_pieces = 4096;
  const std::lock_guard one(home_mutex_);
  struct stat now = {};  // it may have grown
  if (os::examine(where_.fd, now) != 0) return failed_.store(true, std::memory_order_release);
  const std::uint64_t home = static_cast<std::uint64_t>(now.st_size) - where_.home_offset, piece = std::max(least_piece, home / most_pieces);
  for (std::uint64_t at = 0; at < home && !failed(); at += piece) os::write_back(where_.fd, where_.home_offset + at, std::min(piece, home - at));
  if (!failed() && !sync_home()) failed_.store(true, std::memory_order_release);  // never retried
}

bool file_writer::sync_home() const noexcept {
  if (planted(mutant::file_home_unsynced) || os::sync_data(where_.fd) == 0) return true;
  return planted(mutant::file_failure_ignored) || (planted(mutant::file_sync_retried) && os::sync_data(where_.fd) == 0);
}

}  // namespace stele::media
