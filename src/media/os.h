// os: the system calls that pool files are made of, in one place, so that a test can watch each and
// have any of them fail.
//
// Every call of the library that opens, sizes, maps, locks, reads, writes or syncs a pool file, or
// draws its id, goes through here. Without a syscall_hook a call costs one load more than the call
// itself. Errors are those of the call: -1 (or what it returns) and errno. A file that outgrows the
// process's limit (RLIMIT_FSIZE) is EFBIG like any other error, not a signal: writes and
// reservations change the thread's signal mask meanwhile.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>

struct flock;

namespace stele::media::os {

enum class call : std::uint8_t {
  open,
  fstat,
  lock,
  fallocate,
  read,
  write,
  write_back,
  sync,
  map,
  link,
  getrandom
};

struct request {
  call what;
  int fd = -1;                       // after an open: the new descriptor
  std::uint64_t offset = 0;          // read, write, write_back, map
  const std::byte* bytes = nullptr;  // write: what is written
  std::size_t size = 0;
};

// Sees each call before it is made, and after it when it was made and has succeeded. From any
// thread.
class syscall_hook {
 public:
  virtual ~syscall_hook() = default;
  // The errno to fail with instead of making the call; 0: make it.
  virtual int before(const request&) noexcept { return 0; }
  virtual void after(const request&) noexcept {}
  // How many bytes of a write are written, at least one; asked first, and the request that follows
  // is of so many.
  virtual std::size_t bytes_to_write(const request& r) noexcept { return r.size; }
};
// Null: nobody. Not while calls are made in other threads.
void install_hook(syscall_hook* w) noexcept;

int open(const char* path, int flags, mode_t mode = 0) noexcept;
int fstat(int fd, struct stat& status) noexcept;
int lock(int fd, int command, struct flock& what) noexcept;
int fallocate(int fd, std::uint64_t offset,
              std::uint64_t size) noexcept;  // real space; 0, or an errno
ssize_t read(int fd, void* to, std::size_t size, std::uint64_t offset) noexcept;
ssize_t write(int fd, const void* from, std::size_t size, std::uint64_t offset) noexcept;
// sync_file_range: has dirty pages of a range written and waits for that. Success promises nothing.
// A failure is the only word of an error that there is: the descriptor's next sync answers 0, and
// the pages count as clean.
[[nodiscard]] int write_back(int fd, std::uint64_t offset, std::uint64_t size) noexcept;
int sync_data(int fd) noexcept;  // fdatasync
int sync(int fd) noexcept;       // fsync
void* map(void* at, std::size_t size, int protection, int flags, int fd,
          std::uint64_t offset = 0) noexcept;
ssize_t getrandom(void* to, std::size_t size) noexcept;  // getrandom
int link(const char* from, const char* to) noexcept;     // the file that a /proc name stands for

// Whole ranges, in as many calls as it takes; interrupted ones go on. False: errno says why, 0 that
// the file ended.
bool read_all(int fd, void* to, std::size_t size, std::uint64_t offset) noexcept;
bool write_all(int fd, const void* from, std::size_t size, std::uint64_t offset) noexcept;

}  // namespace stele::media::os
