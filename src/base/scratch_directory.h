// A test's own directory.
#pragma once

#include <base/assert.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace stele::base {

// A new directory, removed at the end: in memory if the machine has /dev/shm, or where it is told.
class scratch_directory {
 public:
  scratch_directory() : scratch_directory(in_memory()) {}
  explicit scratch_directory(const std::filesystem::path& in) {
    std::string name = (in / "stele-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    path_ = name;
  }
  ~scratch_directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  scratch_directory(const scratch_directory&) = delete;
  scratch_directory& operator=(const scratch_directory&) = delete;
  const std::filesystem::path& path() const { return path_; }
  std::string file(const std::string& name) const {
    STELE_ASSERT(name.empty() || name.front() != '/');  // else it would lie elsewhere
    return (path_ / name).string();
  }

 private:
  static std::filesystem::path in_memory() {
    return std::filesystem::is_directory("/dev/shm") ? "/dev/shm"
                                                     : std::filesystem::temp_directory_path();
  }

  std::filesystem::path path_;
};

}  // namespace stele::base
