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

std::string path_before(pid_t process, const std::string& directory) {
  return fmt::format("{}/stele-crash-{}-", directory_for(directory), process);
}

}  // namespace

result<scratch_file> scratch_file::make(const std::string& directory,
                                        std::span<const std::byte> content) {
  std::string path = path_before(::getpid(), directory) + "XXXXXX";
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

scratch_file::~scratch_file() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

void scratch_file::remove_of(pid_t process, const std::string& directory) noexcept try {
  const std::string begin = path_before(process, directory);
  for (const auto& one : std::filesystem::directory_iterator(directory_for(directory)))
    if (one.path().native().starts_with(begin)) ::unlink(one.path().c_str());
} catch (const std::exception&) {  // what cannot be listed stays
}

}  // namespace stele::explore
