// Compares what a name leads to with an open file.
#include <base/assert.h>
#include <pool/file_name.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

namespace stele::storage {

file_name::file_name(int fd, const std::string& path) {
  struct stat file = {}, root = {};
  if (::fstat(fd, &file) != 0 || file.st_nlink == 0 || ::stat("/", &root) != 0) return;
  std::error_code failed;
  absolute_ = std::filesystem::absolute(path, failed).string();
  if (failed) absolute_.clear();
  STELE_ASSERT(absolute_.empty() || absolute_.front() == '/');
  root_device_ = root.st_dev;
  root_inode_ = root.st_ino;
}

file_place file_name::look(int fd) const noexcept {
  struct stat file = {}, root = {}, named = {};
  if (absolute_.empty() || ::fstat(fd, &file) != 0) return file_place::in_place;
  const file_place nameless = file.st_nlink == 0 ? file_place::removed : file_place::in_place;
  if (::stat("/", &root) != 0 || root.st_dev != root_device_ || root.st_ino != root_inode_)
    return nameless;
  if (::stat(absolute_.c_str(), &named) == 0)
    return named.st_dev == file.st_dev && named.st_ino == file.st_ino ? file_place::in_place
                                                                      : file_place::replaced;
  const bool is_gone = errno == ENOENT || errno == ENOTDIR;
  return is_gone && nameless == file_place::in_place ? file_place::renamed : nameless;
}

}  // namespace stele::storage
