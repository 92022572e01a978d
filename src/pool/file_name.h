// file_name: the name that an open file was found by, and whether it still leads to that file.
//
// A removed, renamed or replaced file stays usable for the process that has it open, but no later
// open of the name finds what is written to it.
#pragma once

#include <sys/types.h>
#include <cstdint>
#include <string>

namespace stele::storage {

enum class file_place : std::uint8_t {
  in_place,
  removed,  // the file has no name
  renamed,  // the name leads to no file
  replaced  // the name leads to another file
};

class file_name {
 public:
  file_name() noexcept = default;  // of no file, which is in place
  // `path` led to the open file `fd`, or the file has no name. Throws std::bad_alloc.
  file_name(int fd, const std::string& path);

  // What cannot be told is in place: the file system does not answer, or the process has changed
  // its root since. Thread-safe.
  file_place look(int fd) const noexcept;

 private:
  std::string absolute_;  // empty: the file has no name
  dev_t root_device_ = 0;
  ino_t root_inode_ = 0;
};

}  // namespace stele::storage
