// Whether a path still leads to the same file.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <string>

namespace stele::sqlite {

// Compares file handles, not results of stat: since Linux 6.13 a file gets a new time at its next
// write after a stat, and a sync then writes the inode too (docs/decisions/38-sqlite.md). Uses stat
// where the file system has no handles.
class file_name {
 public:
  // A path that leads nowhere now is never checked.
  explicit file_name(std::string path);
  const std::string& path() const noexcept { return path_; }
  // Takes some 0.5 us. One thread at a time.
  bool leads_elsewhere() const noexcept;

 private:
  enum class kind { none, handle, inode };
  struct identity {
    kind by = kind::none;
    int mount = 0, type = 0;
    unsigned size = 0;  // of the handle
    std::array<std::uint8_t, 128> handle{};
    dev_t device = 0;
    ino_t inode = 0;
    bool operator==(const identity&) const = default;
  };
  static identity by_handle(const std::string& path) noexcept;
  static identity by_stat(const std::string& path) noexcept;

  std::string path_;
  identity identity_;
};

}  // namespace stele::sqlite
