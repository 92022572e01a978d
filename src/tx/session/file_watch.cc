// What follows when a pool's name leads elsewhere, and what is said of it.
#include <base/assert.h>
#include <fmt/format.h>
#include <tx/session/file_watch.h>
#include <unistd.h>

namespace stele::detail {

// Updates see has_plain_updates_ on their way in already, so that the check of place_ costs a
// commit nothing.
void file_watch::note(storage::file_place now) noexcept {
  if (now == storage::file_place::in_place) return;
  place_.store(now);
  has_plain_updates_.store(false);
}

error file_watch::refusal(const std::string& path, int fd) const {
  STELE_ASSERT(place() != storage::file_place::in_place);
  const std::string rescue = fmt::format(
      "What was committed is in the file that process {} still has open: copy it with "
      "pool::backup, or /proc/{}/fd/{}, before the pool is closed",
      ::getpid(), ::getpid(), fd);
  switch (place_.load()) {
    case storage::file_place::renamed:
      return {errc::read_only, path +
                                   " was renamed or moved while it was open, so nothing more is "
                                   "committed. What was committed is in the file of the new "
                                   "name: close the pool, and open that"};
    case storage::file_place::replaced:
      return {errc::read_only, path +
                                   " names another file now: it was replaced while it was open, "
                                   "so nothing more is committed. " +
                                   rescue};
    default:
      return {errc::read_only,
              path + " was removed while it was open, so nothing more is committed. " + rescue};
  }
}

}  // namespace stele::detail
