// Which call fails, and which descriptors get the error of a failed write-back.
#include <explore/file_faults.h>
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

namespace stele::explore {

using request = media::os::request;
using call = media::os::call;

bool is_synchronous(int fd) noexcept {
  return (::fcntl(fd, F_GETFL) & O_DSYNC) != 0;
}

bool is_directory(int fd) noexcept {
  struct stat status = {};
  return ::fstat(fd, &status) == 0 && S_ISDIR(status.st_mode);
}

file_faults::identity file_faults::identity_of(int fd) noexcept {
  struct stat status = {};
  if (::fstat(fd, &status) != 0) return {};
  return {status.st_dev, status.st_ino};
}

// A fault affects regular files only, and only calls that can have it.
bool file_faults::applies_to(const request& r) const noexcept {
  const bool of_cache = r.what == call::write_back || (r.what == call::sync && !is_directory(r.fd));
  switch (what_) {
    case file_fault::refused:
      return (r.what == call::sync && of_cache) || (r.what == call::write && is_synchronous(r.fd));
    case file_fault::write_back:
      return of_cache;
    case file_fault::short_write:
      return r.what == call::write && r.size > 1;
    case file_fault::interrupted:
      return of_cache || r.what == call::write;
  }
  return false;
}

bool file_faults::triggers(const request& r) {
  if (call_ == 0 || !applies_to(r) || ++calls_ != call_) return false;
  faulty_file_ = identity_of(r.fd);
  for (const auto& [fd, file] : descriptors_)
    if (file == faulty_file_) reported_[fd] = false;
  reported_.try_emplace(r.fd, false);
  return true;
}

void file_faults::opened(int fd) {
  descriptors_[fd] = identity_of(fd);
  reported_.erase(fd);  // the number belonged to another descriptor
  if (faulty_file_ == descriptors_[fd]) reported_[fd] = reported_once_;
}

// Whether this descriptor has no new error to report. If it has one, it counts as reported from now
// on.
bool file_faults::error_already_reported(int fd) {
  const auto found = reported_.find(fd);
  if (found == reported_.end() || found->second) return true;
  reported_once_ = found->second = true;
  return false;
}

file_faults::injection file_faults::inject(const request& r) {
  if (what_ == file_fault::short_write) return {};
  const bool now = triggers(r);
  if (what_ == file_fault::write_back)
    return {applies_to(r) && !error_already_reported(r.fd) ? number_ : 0, now};
  if (!now) return {};
  if (what_ == file_fault::interrupted) return {EINTR, false};
  return {number_, r.what == call::sync};
}

// A part of the write, in whole sectors where possible, as an O_DSYNC write may leave it.
std::size_t file_faults::bytes_to_write(const request& r) noexcept {
  constexpr std::size_t sector = 512;
  if (what_ != file_fault::short_write || !triggers(r)) return r.size;
  return r.size > sector ? std::max(r.size / 2 / sector * sector, sector) : r.size / 2;
}

bool file_faults::has_triggered(const char* path) const noexcept {
  struct stat status = {};
  return ::stat(path, &status) == 0 && faulty_file_ == identity{status.st_dev, status.st_ino};
}

}  // namespace stele::explore
