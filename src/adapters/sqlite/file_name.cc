// Names of a database's file.
#include "file_name.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

namespace stele::sqlite {

file_name::file_name(std::string path) : path_(std::move(path)), identity_(by_handle(path_)) {
  if (identity_.by == kind::none) identity_ = by_stat(path_);
}

bool file_name::leads_elsewhere() const noexcept {
  if (identity_.by == kind::none) return false;
  return (identity_.by == kind::handle ? by_handle(path_) : by_stat(path_)) != identity_;
}

file_name::identity file_name::by_handle(const std::string& path) noexcept {
  struct alignas(file_handle) {
    std::array<std::byte, sizeof(file_handle)> head{};
    std::array<std::uint8_t, 128> bytes{};
  } space;
  static_assert(MAX_HANDLE_SZ == 128);
  auto* const handle = reinterpret_cast<file_handle*>(&space);
  handle->handle_bytes = static_cast<unsigned>(space.bytes.size());
  identity found;
  if (::name_to_handle_at(AT_FDCWD, path.c_str(), handle, &found.mount, AT_SYMLINK_FOLLOW) != 0)
    return {};
  found.by = kind::handle;
  found.type = handle->handle_type;
  found.size = handle->handle_bytes;
  std::copy_n(space.bytes.begin(), found.size, found.handle.begin());
  return found;
}

file_name::identity file_name::by_stat(const std::string& path) noexcept {
  struct stat s{};
  identity found;
  if (::stat(path.c_str(), &s) != 0) return found;
  found.by = kind::inode;
  found.device = s.st_dev;
  found.inode = s.st_ino;
  return found;
}

}  // namespace stele::sqlite
