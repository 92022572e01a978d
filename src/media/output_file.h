// output_file: a file that is written whole or not at all. It is written under a temporary name
// beside its own, so that an error, or the end of the process, leaves what had the name before. A
// device, a FIFO and what is named by a descriptor (/dev/stdout) are written as they are.
#pragma once

#include <base/assert.h>
#include <fcntl.h>
#include <media/os.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace stele::media {

class output_file {
 public:
  output_file() noexcept = default;  // of no file
  ~output_file() { discard(); }
  output_file(const output_file&) = delete;
  output_file& operator=(const output_file&) = delete;

  // `most`: the rights of a new file, less what the process's mask takes; a file that is there
  // keeps its own. Returns 0 or the system's error, as keep() does.
  [[nodiscard]] int open(const std::string& file, mode_t most) {
    STELE_ASSERT_ALWAYS(fd_ < 0 && temporary_.empty());  // once
    struct stat there = {};
    const bool exists = ::stat(file.c_str(), &there) == 0;
    if (exists && (!S_ISREG(there.st_mode) || names_a_descriptor(file))) {
      fd_ = os::open(file.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY);
      return fd_ < 0 ? errno : 0;
    }
    std::error_code none;
    target_ = exists ? std::filesystem::canonical(file, none).string() : file;
    if (none) target_ = file;
    std::string temporary = target_ + ".writing." + std::to_string(::getpid());
    fd_ = os::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, most);
    if (fd_ < 0) return errno;
    temporary_ = std::move(temporary);
    if (exists) (void)!::fchmod(fd_, there.st_mode & 0777);
    return 0;
  }
  // All is written: the file gets its name. durable: also after a power cut.
  [[nodiscard]] int keep(bool durable) {
    STELE_ASSERT_ALWAYS(fd_ >= 0);  // open() has succeeded, and it was not kept before
    durable = durable && !temporary_.empty();
    if (durable && ::fsync(fd_) != 0) return errno;
    if (::close(std::exchange(fd_, -1)) != 0) return errno;
    if (temporary_.empty()) return 0;
    STELE_ASSERT_ALWAYS(temporary_.starts_with(target_) && temporary_ != target_);
    if (std::rename(temporary_.c_str(), target_.c_str()) != 0) return errno;
    temporary_.clear();
    if (durable) sync_folder();
    return 0;
  }
  void discard() noexcept {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
    if (!temporary_.empty()) ::unlink(temporary_.c_str()), temporary_.clear();
  }

  int fd() const noexcept { return fd_; }  // negative: of no file
  bool leaves_nothing() const noexcept { return !temporary_.empty(); }

 private:
  // /dev/stdout may lead to an ordinary file, which the shell has open.
  static bool names_a_descriptor(std::string_view file) {
    return file == "/dev/stdout" || file == "/dev/stderr" || file.starts_with("/dev/fd/") ||
           file.starts_with("/proc/");
  }
  void sync_folder() const {
    const std::string folder = std::filesystem::path(target_).parent_path().string();
    const int in =
        os::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (in >= 0) (void)::fsync(in), ::close(in);
  }

  std::string target_;     // what the file's name leads to
  std::string temporary_;  // empty: written in place
  int fd_ = -1;
};

}  // namespace stele::media
