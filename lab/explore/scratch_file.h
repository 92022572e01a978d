// A file for one recording: made with a given content, gone when nobody has it open any more.
//
// It lies in the directory asked for, else in memory where there is a file system of that kind:
// what is recorded is which calls are made, and these are the same on every file system.
#pragma once

#include <stele/error.h>

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
  ~scratch_file() { unlink(); }

  const std::string& path() const noexcept { return path_; }
  // Takes its name away: those who have it open go on.
  void unlink() noexcept;

 private:
  explicit scratch_file(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace stele::explore
