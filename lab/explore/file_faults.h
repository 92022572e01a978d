// One fault of a file, with the behaviour of Linux: which call fails, and what that call and later
// calls return.
//
// Each descriptor gets the error of a failed write-back once, from its next sync or write-back. A
// descriptor opened before any other got the error gets it too. Then the error is forgotten, and
// the pages count as clean although the device does not have them (errseq, Linux 4.13 and later). A
// write with O_DSYNC does not report it, as on a device that writes through. A write may take fewer
// bytes than it was given, and a call may be interrupted.
//
// A syscall_hook (media/os.h) asks it before each call. Not thread-safe.
#pragma once

#include <media/os.h>

#include <cerrno>
#include <map>
#include <optional>
#include <string_view>

namespace stele::explore {

enum class file_fault : std::uint8_t {
  refused,      // a call that waits for the device fails; its data is of any version
  write_back,   // the write-back of dirty pages fails, just before a sync or write-back call
  short_write,  // a write takes a part of its bytes
  interrupted,  // a write, sync or write-back does nothing and returns EINTR
};
inline constexpr std::string_view file_fault_names = "refused|write_back|short_write|interrupted";

// Whether writes to it wait for the device (O_DSYNC).
bool is_synchronous(int fd) noexcept;
bool is_directory(int fd) noexcept;

class file_faults {
 public:
  struct injection {
    int number = 0;           // the errno to return; 0: the call is made
    bool lost_pages = false;  // dirty pages of the cache count as clean from now on
  };

  file_faults() noexcept : file_faults(file_fault::refused, 0) {}  // no fault
  // Among the calls that the fault can affect, the one with number `call` (from 1) fails with the
  // errno `number`. 0: no call fails.
  file_faults(file_fault what, std::uint64_t call, int number = EIO) noexcept
      : what_(what), call_(call), number_(number) {}

  // Called before each call; opened() after each open.
  injection inject(const media::os::request& r);
  std::size_t bytes_to_write(const media::os::request& r) noexcept;
  void opened(int fd);

  bool has_triggered() const noexcept { return faulty_file_.has_value(); }
  // Whether the failed call was on the file of this name.
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
  bool reported_once_ = false;  // some descriptor got the error of the failed write-back
  std::map<int, identity> descriptors_;
  std::map<int, bool> reported_;  // by descriptor of the faulty file
};

}  // namespace stele::explore
