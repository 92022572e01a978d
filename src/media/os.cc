// System calls; an installed syscall_hook sees each one first.
#include <fcntl.h>
#include <media/os.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

namespace stele::media::os {

namespace {

std::atomic<syscall_hook*> installed_hook{nullptr};

// Calls `make()` unless the hook makes the call fail. `failed` is the return value of a failure.
template <class Make, class R>
R with_hook(const request& r, R failed, Make&& make) noexcept {
  syscall_hook* const w = installed_hook.load(std::memory_order_acquire);
  if (w == nullptr) [[likely]]
    return make();
  if (const int number = w->before(r); number != 0) {
    errno = number;
    return failed;
  }
  const R outcome = make();
  if (outcome != failed) w->after(r);
  return outcome;
}

// Blocks SIGXFSZ in this thread during the call, and removes a SIGXFSZ that the call raised: errno
// already reports the error.
template <class Make>
auto with_sigxfsz_blocked(Make&& make) noexcept {
  sigset_t size, before;
  ::sigemptyset(&size);
  ::sigaddset(&size, SIGXFSZ);
  ::pthread_sigmask(SIG_BLOCK, &size, &before);
  const auto outcome = make();
  const int number = errno;
  if (number == EFBIG || outcome == EFBIG) {
    constexpr timespec now = {};
    while (::sigtimedwait(&size, nullptr, &now) < 0 && errno == EINTR) {
    }
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = number;
  return outcome;
}

}  // namespace

void install_hook(syscall_hook* w) noexcept {
  installed_hook.store(w, std::memory_order_release);
}

int open(const char* path, int flags, mode_t mode) noexcept {
  request r{.what = call::open};
  return with_hook(r, -1, [&] { return r.fd = ::open(path, flags, mode); });
}

int fstat(int fd, struct stat& status) noexcept {
  return with_hook({.what = call::fstat, .fd = fd}, -1, [&] { return ::fstat(fd, &status); });
}

int lock(int fd, int command, struct flock& what) noexcept {
  return with_hook({.what = call::lock, .fd = fd}, -1, [&] { return ::fcntl(fd, command, &what); });
}

int fallocate(int fd, std::uint64_t offset, std::uint64_t size) noexcept {
  const int outcome =
      with_hook({.what = call::fallocate, .fd = fd, .offset = offset, .size = size}, -1, [&] {
        return with_sigxfsz_blocked([&] {
          return ::posix_fallocate(fd, static_cast<off_t>(offset), static_cast<off_t>(size));
        });
      });
  return outcome == -1 ? errno : outcome;
}

int truncate(int fd, std::uint64_t size) noexcept {
  return with_hook({.what = call::truncate, .fd = fd, .size = size}, -1,
                   [&] { return ::ftruncate(fd, static_cast<off_t>(size)); });
}

ssize_t read(int fd, void* to, std::size_t size, std::uint64_t offset) noexcept {
  return with_hook({.what = call::read, .fd = fd, .offset = offset, .size = size}, ssize_t{-1},
                   [&] { return ::pread(fd, to, size, static_cast<off_t>(offset)); });
}

ssize_t write(int fd, const void* from, std::size_t size, std::uint64_t offset) noexcept {
  request r{.what = call::write,
            .fd = fd,
            .offset = offset,
            .bytes = static_cast<const std::byte*>(from),
            .size = size};
  if (syscall_hook* const w = installed_hook.load(std::memory_order_acquire); w != nullptr)
      [[unlikely]]
    r.size = w->bytes_to_write(r);
  return with_hook(r, ssize_t{-1}, [&] {
    return with_sigxfsz_blocked(
        [&] { return ::pwrite(fd, from, r.size, static_cast<off_t>(offset)); });
  });
}

int write_back(int fd, std::uint64_t offset, std::uint64_t size) noexcept {
  constexpr unsigned all =
      SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
  return with_hook({.what = call::write_back, .fd = fd, .offset = offset, .size = size}, -1, [&] {
    return ::sync_file_range(fd, static_cast<off_t>(offset), static_cast<off_t>(size), all);
  });
}

int sync_data(int fd) noexcept {
  return with_hook({.what = call::sync, .fd = fd}, -1, [&] { return ::fdatasync(fd); });
}

int sync(int fd) noexcept {
  return with_hook({.what = call::sync, .fd = fd}, -1, [&] { return ::fsync(fd); });
}

void* map(void* at, std::size_t size, int protection, int flags, int fd,
          std::uint64_t offset) noexcept {
  return with_hook({.what = call::map, .fd = fd, .offset = offset, .size = size}, MAP_FAILED, [&] {
    return ::mmap(at, size, protection, flags, fd, static_cast<off_t>(offset));
  });
}

ssize_t getrandom(void* to, std::size_t size) noexcept {
  return with_hook({.what = call::getrandom, .size = size}, ssize_t{-1},
                   [&] { return ::getrandom(to, size, 0); });
}

int link(const char* from, const char* to) noexcept {
  return with_hook({.what = call::link}, -1,
                   [&] { return ::linkat(AT_FDCWD, from, AT_FDCWD, to, AT_SYMLINK_FOLLOW); });
}

bool read_all(int fd, void* to, std::size_t size, std::uint64_t offset) noexcept {
  for (std::size_t done = 0; done < size;) {
    const ssize_t n = read(fd, static_cast<std::byte*>(to) + done, size - done, offset + done);
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) errno = 0;
    if (n <= 0) return false;
    done += static_cast<std::size_t>(n);
  }
  return true;
}

bool write_all(int fd, const void* from, std::size_t size, std::uint64_t offset) noexcept {
  for (std::size_t done = 0; done < size;) {
    const ssize_t n =
        write(fd, static_cast<const std::byte*>(from) + done, size - done, offset + done);
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) errno = 0;
    if (n <= 0) return false;
    done += static_cast<std::size_t>(n);
  }
  return true;
}

}  // namespace stele::media::os
