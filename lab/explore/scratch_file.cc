// Makes a file under an unused name.
#include <base/check.h>
#include <explore/scratch_file.h>
#include <fmt/format.h>
#include <media/os.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <utility>

namespace stele::explore {

namespace {

std::string directory_for(const std::string& asked) {
  if (!asked.empty()) return asked;
  const char* const in_memory = "/dev/shm";
  return ::access(in_memory, W_OK) == 0 ? in_memory
                                        : std::filesystem::temp_directory_path().string();
}

}  // namespace

result<scratch_file> scratch_file::make(const std::string& directory,
                                        std::span<const std::byte> content) {
  std::string path = directory_for(directory) + "/stele-crash-XXXXXX";
  const int fd = ::mkstemp(path.data());
  if (fd < 0)
    return base::fail_errno(
        errc::io,
        fmt::format("cannot create {} for the pool that is recorded; name another directory",
                    path));
  scratch_file made(path);
  const bool written = media::os::write_all(fd, content.data(), content.size(), 0);
  ::close(fd);
  if (!written) return base::fail_errno(errc::io, fmt::format("cannot write {}", path));
  return made;
}

scratch_file::scratch_file(scratch_file&& other) noexcept : path_(std::exchange(other.path_, {})) {}

void scratch_file::unlink() noexcept {
  if (!path_.empty()) ::unlink(path_.c_str());
  path_.clear();
}

}  // namespace stele::explore
