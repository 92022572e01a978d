// os: all system calls on pool files, in one place, so that a test can watch each of them and make
// any of them fail.
//
// Every call of the library that opens, sizes, maps, locks, reads, writes or syncs a pool file, or
// draws its id, goes through here. Without a syscall_hook it costs one load more than the call
// itself. Errors are those of the call: -1 (or what it returns) and errno. A file that exceeds the
// process's limit (RLIMIT_FSIZE) gives EFBIG like any other error, not a signal: during writes and
// reservations the thread's signal mask blocks SIGXFSZ.
//
// Every descriptor of the library is made here, and none is 0, 1 or 2: what a program prints would
// be written to a pool that had one of them. tools/lint refuses other calls that make descriptors.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>

struct flock;

namespace stele::media::os {

enum class call : std::uint8_t {
  open,
  fstat,
  lock,
  fallocate,
  truncate,
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

// Sees each call before it is made, and again after it if it was made and succeeded. Called from
// any thread.
class syscall_hook {
 public:
  virtual ~syscall_hook() = default;
  // An errno: the call fails with it and is not made. 0: the call is made.
  virtual int before(const request&) noexcept { return 0; }
  virtual void after(const request&) noexcept {}
  // How many bytes a write may write, at least one. Asked before before(); the request that
  // before() gets then has this size.
  virtual std::size_t bytes_to_write(const request& r) noexcept { return r.size; }
};
// Null removes the hook. Not while other threads make calls.
void install_hook(syscall_hook* w) noexcept;

int open(const char* path, int flags, mode_t mode = 0) noexcept;
int memory_file(const char* name, unsigned flags) noexcept;  // memfd_create
int socket(int domain, int type, int protocol) noexcept;
int accept(int listening, int flags) noexcept;  // accept4
int event(int flags) noexcept;                  // eventfd, of 0
// The descriptor, which another process has sent; moved if it is 0, 1 or 2. -1: errno.
int above_standard(int fd) noexcept;
int fstat(int fd, struct stat& status) noexcept;
int lock(int fd, int command, struct flock& what) noexcept;
// Allocates real space; returns 0 or an errno
int fallocate(int fd, std::uint64_t offset, std::uint64_t size) noexcept;
int truncate(int fd, std::uint64_t size) noexcept;  // ftruncate
ssize_t read(int fd, void* to, std::size_t size, std::uint64_t offset) noexcept;
ssize_t write(int fd, const void* from, std::size_t size, std::uint64_t offset) noexcept;
// sync_file_range: writes the dirty pages of a range and waits for that. Success makes nothing
// durable. A failure is the only report of the error: the descriptor's next sync returns 0, and the
// pages count as clean.
[[nodiscard]] int write_back(int fd, std::uint64_t offset, std::uint64_t size) noexcept;
int sync_data(int fd) noexcept;  // fdatasync
int sync(int fd) noexcept;       // fsync
void* map(void* at, std::size_t size, int protection, int flags, int fd,
          std::uint64_t offset = 0) noexcept;
ssize_t getrandom(void* to, std::size_t size) noexcept;
int link(const char* from, const char* to) noexcept;  // `from` may be a /proc name of an open file

// Transfer whole ranges in as many calls as needed; interrupted calls are repeated. False: errno
// says why; 0 means that the file ended.
bool read_all(int fd, void* to, std::size_t size, std::uint64_t offset) noexcept;
bool write_all(int fd, const void* from, std::size_t size, std::uint64_t offset) noexcept;
// At most the first `most` bytes of an ordinary file; those of /proc and /sys are such. Empty if it
// is none, or cannot be read. Does not wait for a FIFO.
std::string read_text(const char* path, std::size_t most = std::size_t{1} << 20);

}  // namespace stele::media::os
