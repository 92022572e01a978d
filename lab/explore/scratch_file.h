// A file for one recording: made with a given content, and removed with the object. A pool takes
// no more commits when its file has lost its name, so it keeps it until then.
//
// It lies in the directory asked for; without one, in memory where /dev/shm is writable. The
// recording holds which calls are made, and those are the same on every file system.
#pragma once

#include <stele/error.h>
#include <sys/types.h>

#include <cstddef>
#include <span>
#include <string>

namespace stele::explore {

class scratch_file {
 public:
  // Errors: io.
  [[nodiscard]] static result<scratch_file> make(const std::string& directory,
                                                 std::span<const std::byte> content);
  scratch_file(scratch_file&& other) noexcept;
  scratch_file& operator=(scratch_file&&) = delete;
  ~scratch_file();

  const std::string& path() const noexcept { return path_; }
  // Removes those of a process that has died. Call in its parent.
  static void remove_of(pid_t process, const std::string& directory) noexcept;

 private:
  explicit scratch_file(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace stele::explore
