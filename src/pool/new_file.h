// new_file: a file under construction. It has no name until it is complete, so an interrupted
// creation leaves nothing behind. Also a descriptor that closes itself, and messages for file
// errors.
#pragma once

#include <stele/error.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

namespace stele::storage {

// The error for a system call that failed on a path, by errno.
std::unexpected<error> path_error(const char* what, const std::string& path, int number = errno);
errc errc_from_errno(int number) noexcept;

// Allocates real space from 0 to `size`: a full disk is an error now, not a signal later. Errors:
// full, io.
[[nodiscard]] result<> allocate_space(int fd, std::size_t size, const std::string& path);

// media::os::open of a name that may be anything: one with a NUL byte, which the system would take
// for a shorter name, gives EINVAL.
int open_named(const std::string& path, int flags) noexcept;

struct descriptor {
  explicit descriptor(int n) noexcept : fd(n) {}
  descriptor(descriptor&& other) noexcept : fd(other.release()) {}
  descriptor& operator=(descriptor&& other) noexcept;
  ~descriptor();
  int release() noexcept;
  int fd;
};

// On return a file that has this name is durable with it. Errors: io.
[[nodiscard]] result<> sync_named(const descriptor& file, const std::string& path);

class new_file {
 public:
  // An empty file; at most `max_bytes` will be written. Errors: exists, not_found, permission, full
  // (the process's limit), io.
  [[nodiscard]] static result<new_file> make(const std::string& path, std::size_t max_bytes);
  // A file that somebody else has made and names; publish() only makes it
  // durable. `path`: for messages.
  static new_file of(descriptor file, const std::string& path) {
    return new_file(std::move(file), path);
  }
  new_file(new_file&&) noexcept = default;
  ~new_file();

  // Allocates real space from 0 to `size`; it reads as zero until written. Errors: full, io.
  [[nodiscard]] result<> reserve(std::size_t size);
  [[nodiscard]] result<> write(std::span<const std::byte> bytes, std::uint64_t offset);
  // Maps the first `size` bytes, which reserve() has allocated, for the file's lifetime at most;
  // the caller unmaps them. Errors: io.
  [[nodiscard]] result<std::byte*> map(std::size_t size);
  // Cuts off what is behind `size`. Errors: io.
  [[nodiscard]] result<> truncate(std::size_t size);
  // On return the file is durable and has its name; before, the name does not exist. Errors:
  // exists, io.
  [[nodiscard]] result<> publish();
  int fd() const noexcept { return file_.fd; }

 private:
  explicit new_file(const std::string& path);
  new_file(descriptor file, const std::string& path) : path_(path), file_(std::move(file)) {}

  std::string path_;
  std::string name_;  // the name it is linked from, or its temporary name;
                      // empty: not ours to name
  descriptor file_;
  bool named_ = false;
};

}  // namespace stele::storage
