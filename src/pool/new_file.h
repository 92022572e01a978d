// new_file: a file in the making. It has no name until it is whole, so what is cut off leaves
// nothing behind; a descriptor that closes itself; and the errors of files in words.
#pragma once

#include <stele/error.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace stele::storage {

// The error of a system call that failed on a path, by errno.
std::unexpected<error> path_error(const char* what, const std::string& path, int number = errno);
errc errc_from_errno(int number) noexcept;

// Real space from 0 to `size`, not a promise: a full disk is an error now, not a signal later.
// Errors: full, io.
[[nodiscard]] result<> allocate_space(int fd, std::size_t size, const std::string& path);

struct descriptor {
  explicit descriptor(int n) noexcept : fd(n) {}
  descriptor(descriptor&& other) noexcept : fd(other.release()) {}
  descriptor& operator=(descriptor&&) = delete;
  ~descriptor();
  int release() noexcept;
  int fd;
};

class new_file {
 public:
  // Empty; at most so many bytes will be written. Errors: exists, not_found, permission, full (the
  // process's limit), io.
  [[nodiscard]] static result<new_file> make(const std::string& path, std::size_t max_bytes);
  new_file(new_file&&) noexcept = default;
  ~new_file();

  // Real space from 0 to `size`, not a promise; zero where nothing is written. Errors: full, io.
  [[nodiscard]] result<> reserve(std::size_t size);
  [[nodiscard]] result<> write(std::span<const std::byte> bytes, std::uint64_t offset);
  // Durable and under its name when it returns; before that nothing is there. Errors: exists, io.
  [[nodiscard]] result<> publish();

 private:
  explicit new_file(const std::string& path);

  std::string path_, name_;  // name_: by which it is linked, or that it has until then
  descriptor file_;
  bool named_ = false;
};

}  // namespace stele::storage
