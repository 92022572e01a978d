// One fault of a file, as Linux has them: which call it strikes, and what that call and those after
// it answer.
//
// A failed write-back is reported once to each descriptor, by its next sync or write-back, and to
// one that is opened before anybody has heard of it; then it is forgotten, and the pages count as
// clean although the device does not have them (errseq, Linux 4.13 and later). A write past the
// cache says nothing of it, as where the device writes through. A write may take fewer bytes than
// it was given, and a call may be interrupted.
//
// Made for a syscall_hook of system calls (media/os.h), which asks it before each call. Not
// thread-safe.
#pragma once

#include <media/os.h>

#include <cerrno>
#include <map>
#include <optional>
#include <string_view>

namespace stele::explore {

enum class file_fault : std::uint8_t {
  refused,  // a call that waits for the device fails; what it was to make durable is of any version
  write_back,   // the write-back of dirty pages fails, just before a sync or write-back
  short_write,  // a write takes a part of what it was given
  interrupted,  // a write, sync or write-back ends with EINTR and has done nothing
};
std::string_view name_of(file_fault f) noexcept;
std::optional<file_fault> file_fault_named(std::string_view name) noexcept;

// Does it wait for the device (O_DSYNC)?
bool is_synchronous(int fd) noexcept;
bool is_directory(int fd) noexcept;

class file_faults {
 public:
  struct injection {
    int number = 0;           // the errno; 0: the call is made
    bool lost_pages = false;  // what is dirty in the cache counts as clean from here on
  };

  file_faults() noexcept : file_faults(file_fault::refused, 0) {}  // none
  // Strikes the call of this number among those that the fault can strike, with this error; 0:
  // none.
  file_faults(file_fault what, std::uint64_t call, int number = EIO) noexcept
      : what_(what), call_(call), number_(number) {}

  // Before each call; opened() after each open.
  injection inject(const media::os::request& r);
  std::size_t bytes_to_write(const media::os::request& r) noexcept;
  void opened(int fd);

  bool has_triggered() const noexcept { return faulty_file_.has_value(); }
  // The struck call was one on the file of this name.
  bool has_triggered(const char* path) const noexcept;

 private:
  struct identity {
    dev_t device;
    ino_t inode;
    bool operator==(const identity&) const = default;
  };
  static identity identity_of(int fd) noexcept;
  bool applies_to(const media::os::request& r) const noexcept;
  bool triggers(const media::os::request& r);
  bool error_already_reported(int fd);

  const file_fault what_;
  const std::uint64_t call_;
  const int number_;
  std::uint64_t calls_ = 0;
  std::optional<identity> faulty_file_;
  bool reported_once_ = false;  // somebody has been told of the failed write-back
  std::map<int, identity> descriptors_;
  std::map<int, bool> reported_;  // of the struck file
};

}  // namespace stele::explore
