// The file medium: direct synchronous block writes for logs, write-back and fdatasync for home.
#include <base/assert.h>
#include <base/mutant.h>
#include <fcntl.h>
#include <media/file.h>
#include <media/os.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

namespace stele::media {

using base::mutant;

namespace {

// Opens the file of `fd` again; by path only if there is no /proc, since the path may name another
// file by now. -1: failed, or another file.
int reopen(int fd, const std::string& path, int flags) noexcept {
  std::array<char, 32> name;
  std::snprintf(name.data(), name.size(), "/proc/self/fd/%d", fd);
  int again = os::open(name.data(), flags);
  if (again < 0) again = os::open(path.c_str(), flags | O_NOFOLLOW);
  struct stat original = {}, reopened = {};
  if (again < 0 || (::fstat(fd, &original) == 0 && ::fstat(again, &reopened) == 0 &&
                    original.st_dev == reopened.st_dev && original.st_ino == reopened.st_ino))
    return again;
  ::close(again);
  return -1;
}

}  // namespace

file_writer::file_writer(const pool_mapping& mapping) : mapping_(mapping) {
  // Direct writes are of whole blocks, at both ends of which there is a block of this memory.
  STELE_ASSERT_ALWAYS(reinterpret_cast<std::uintptr_t>(mapping.base) % block_size == 0 &&
                      mapping.home_offset % block_size == 0);
  STELE_ASSERT_ALWAYS(mapping.home_offset <= mapping.size);
  const int flags = O_RDWR | O_CLOEXEC | (planted(mutant::file_not_synchronous) ? 0 : O_DSYNC);
  direct_fd_ = reopen(mapping.fd, mapping.path, flags | O_DIRECT);
  if (direct_fd_ < 0) direct_fd_ = reopen(mapping.fd, mapping.path, flags);
  if (direct_fd_ < 0) fail(errno);
}

file_writer::~file_writer() {
  close();
}

void file_writer::close() noexcept {
  if (direct_fd_ >= 0) ::close(std::exchange(direct_fd_, -1));
}

void file_writer::fail(int error_number) noexcept {
  if (planted(mutant::file_failure_ignored)) return;
  int none = 0;
  if (!failed()) error_number_.compare_exchange_strong(none, error_number);
  failed_.store(true, std::memory_order_release);
}

// Of the file, in bytes; 0 if it cannot be told.
std::uint64_t file_writer::length() const noexcept {
  struct stat now = {};
  return os::fstat(mapping_.fd, now) == 0 ? static_cast<std::uint64_t>(now.st_size) : 0;
}

// A write past the end of a truncated file would lengthen it, and hide what it has lost.
bool file_writer::write(std::span<const block_runs::run> runs) noexcept {
  if (planted(mutant::file_last_run)) runs = runs.first(runs.size() - 1);
  STELE_ASSERT(direct_fd_ >= 0);
  if (length() < mapping_.home_offset) return errno = 0, false;
  return std::ranges::all_of(runs, [this](const block_runs::run& r) {
    const std::uint64_t from = r.first * block_size;
    STELE_ASSERT(r.first < r.end && from < mapping_.home_offset);  // home is never written so
    return os::write_all(direct_fd_, mapping_.base + from,
                         std::min(r.end * block_size, mapping_.home_offset) - from, from);
  });
}

// Whether another thread is writing one of these blocks now. The caller holds mutex_.
bool file_writer::overlaps_write_in_flight(const write_in_flight& request) const noexcept {
  for (const write_in_flight* w = writes_in_flight_; w != nullptr; w = w->next)
    for (const auto& other : w->runs)
      for (const auto& r : request.runs)
        if (r.first < other.end && other.first < r.end) return true;
  return false;
}

void file_writer::persist(const block_runs& blocks) noexcept {
  STELE_ASSERT(!blocks.empty());
  write_in_flight request{blocks.all()};
  std::unique_lock hold(mutex_);
  while (!failed() && overlaps_write_in_flight(request)) write_done_.wait(hold);
  if (failed()) return;
  request.next = writes_in_flight_;
  writes_in_flight_ = &request;
  hold.unlock();
  const bool written = write(request.runs);
  const int error_number = errno;
  hold.lock();
  if (!written) fail(error_number);  // what reached the device is unknown; never retried
  write_in_flight** at = &writes_in_flight_;
  while (*at != &request) {
    STELE_ASSERT(*at != nullptr);  // it stays in the list until it takes itself out
    at = &(*at)->next;
  }
  *at = request.next;
  hold.unlock();
  write_done_.notify_all();
}

// Home is written back in pieces, so that the device's queue stays short for commits meanwhile. The
// sync afterwards has little left to write.
void file_writer::persist_home() noexcept {
  constexpr std::uint64_t least_piece = std::uint64_t{1} << 20, most_pieces = 4096;
  const std::lock_guard one(home_mutex_);
  const auto size = length();  // the file may have grown
  if (size < mapping_.home_offset) return fail(0);
  const std::uint64_t home = size - mapping_.home_offset,
                      piece = std::max(least_piece, home / most_pieces);
  for (std::uint64_t at = 0; at < home && !failed(); at += piece)
    if (!write_back_home(at, std::min(piece, home - at))) fail(errno);  // never retried
  if (!failed() && !sync_home()) fail(errno);                           // never retried
}

// The kernel reports a write-back error once to each descriptor, then takes the pages for clean;
// the sync would not report it again. ENOSYS (no such call) has consumed no error.
bool file_writer::write_back_home(std::uint64_t at, std::uint64_t size) const noexcept {
  STELE_ASSERT(size != 0 && mapping_.fd >= 0);  // of size 0 the system would write all of the rest
  return os::write_back(mapping_.fd, mapping_.home_offset + at, size) == 0 || errno == ENOSYS ||
         planted(mutant::file_write_back_ignored);
}

bool file_writer::sync_home() const noexcept {
  if (planted(mutant::file_home_unsynced) || os::sync_data(mapping_.fd) == 0) return true;
  return planted(mutant::file_sync_retried) && os::sync_data(mapping_.fd) == 0;
}

}  // namespace stele::media
