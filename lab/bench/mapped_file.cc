// Maps a file with every page present before use.
#include <bench/mapped_file.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace stele::bench {
namespace {

std::unexpected<error> failed(const std::string& path, std::size_t size) {
  const errc code = errno == ENOSPC ? errc::full : errc::io;
  return std::unexpected(
      error{code, fmt::format("mapping {} bytes of {}: {}", size, path, std::strerror(errno))});
}

}  // namespace

result<mapped_file> mapped_file::create(std::string path, std::size_t size) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return failed(path, size);
  void* base = MAP_FAILED;
  errno = posix_fallocate(
      fd, 0,
      static_cast<off_t>(size));  // lack of space is an error now, not a SIGBUS later
  if (errno == 0)
    base = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
  if (base == MAP_FAILED) {
    const auto why = failed(path, size);
    close(fd);
    unlink(path.c_str());
    return why;
  }
  close(fd);
  return mapped_file(std::move(path), static_cast<std::byte*>(base), size);
}

mapped_file::mapped_file(mapped_file&& other) noexcept
    : path_(std::move(other.path_)),
      base_(std::exchange(other.base_, nullptr)),
      size_(other.size_) {}

mapped_file& mapped_file::operator=(mapped_file&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(base_, other.base_);
  std::swap(size_, other.size_);
  return *this;
}

mapped_file::~mapped_file() {
  if (base_ == nullptr) return;
  munmap(base_, size_);
  unlink(path_.c_str());
}

}  // namespace stele::bench
