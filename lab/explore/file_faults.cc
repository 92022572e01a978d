// Which call is struck, and who is told of a failed write-back.
#include <explore/file_faults.h>
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

namespace stele::explore {

using request = media::os::request;
using call = media::os::call;

namespace {

constexpr std::string_view names[] = {"refused", "write_back", "short_write", "interrupted"};

}  // namespace

std::string_view name_of(file_fault f) noexcept {
  return names[static_cast<std::size_t>(f)];
}

std::optional<file_fault> file_fault_named(std::string_view name) noexcept {
  const auto* const found = std::ranges::find(names, name);
  if (found == std::end(names)) return std::nullopt;
  return static_cast<file_fault>(found - names);
}

bool is_synchronous(int fd) noexcept {
  return (::fcntl(fd, F_GETFL) & O_DSYNC) != 0;
}

bool is_folder(int fd) noexcept {
  struct stat status = {};
  return ::fstat(fd, &status) == 0 && S_ISDIR(status.st_mode);
}

file_faults::identity file_faults::identity_of(int fd) noexcept {
  struct stat status = {};
  if (::fstat(fd, &status) != 0) return {};
  return {status.st_dev, status.st_ino};
}

// A fault strikes files only, and of their calls those that can have it.
bool file_faults::concerns(const request& r) const noexcept {
  const bool of_cache = r.what == call::write_back || (r.what == call::sync && !is_folder(r.fd));
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

bool file_faults::strikes(const request& r) {
  if (call_ == 0 || !concerns(r) || ++calls_ != call_) return false;
  struck_ = identity_of(r.fd);
  for (const auto& [fd, file] : descriptors_)
    if (file == struck_) told_[fd] = false;
  told_.try_emplace(r.fd, false);
  return true;
}

void file_faults::opened(int fd) {
  descriptors_[fd] = identity_of(fd);
  told_.erase(fd);  // the number was another descriptor's
  if (struck_ == descriptors_[fd]) told_[fd] = seen_;
}

// Has this descriptor nothing new to hear of? From here on.
bool file_faults::is_told(int fd) {
  const auto found = told_.find(fd);
  if (found == told_.end() || found->second) return true;
  seen_ = found->second = true;
  return false;
}

file_faults::answer file_faults::of(const request& r) {
  if (what_ == file_fault::short_write) return {};
  const bool now = strikes(r);
  if (what_ == file_fault::write_back) return {concerns(r) && !is_told(r.fd) ? number_ : 0, now};
  if (!now) return {};
  if (what_ == file_fault::interrupted) return {EINTR, false};
  return {number_, r.what == call::sync};
}

// A part that a write past the cache can have, where there is one.
std::size_t file_faults::takes(const request& r) noexcept {
  constexpr std::size_t sector = 512;
  if (what_ != file_fault::short_write || !strikes(r)) return r.size;
  return r.size > sector ? std::max(r.size / 2 / sector * sector, sector) : r.size / 2;
}

bool file_faults::has_struck(const char* path) const noexcept {
  struct stat status = {};
  return ::stat(path, &status) == 0 && struck_ == identity{status.st_dev, status.st_ino};
}

}  // namespace stele::explore
