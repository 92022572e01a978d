// System calls; an installed syscall_hook sees each one first.
#include <base/assert.h>
#include <fcntl.h>
#include <media/os.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
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

// Takes those of 0, 1 and 2 that are free, so that a new descriptor is above them from the start.
class standard_descriptors_taken {
 public:
  standard_descriptors_taken() noexcept {
    const int before = errno;
    for (int n = STDIN_FILENO; n <= STDERR_FILENO; ++n)
      if (::fcntl(n, F_GETFD) < 0) held_[static_cast<std::size_t>(n)] = take(n);
    errno = before;
  }
  ~standard_descriptors_taken() {
    const int before = errno;
    for (const int fd : held_)
      if (fd >= 0) ::close(fd);
    errno = before;
  }
  standard_descriptors_taken(const standard_descriptors_taken&) = delete;
  standard_descriptors_taken& operator=(const standard_descriptors_taken&) = delete;

 private:
  // -1: another thread has taken it, or there is no /dev/null.
  static int take(int n) noexcept {
    const int fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    STELE_ASSERT(n >= STDIN_FILENO && n <= STDERR_FILENO);
    if (fd <= n) return fd;
    ::close(fd);
    return -1;
  }

  std::array<int, 3> held_{-1, -1, -1};
};

template <class Make>
int make_descriptor(Make&& make) noexcept {
  const standard_descriptors_taken taken;
  const int made = above_standard(make());
  STELE_ASSERT(made < 0 || made > STDERR_FILENO);
  return made;
}

}  // namespace

int above_standard(int fd) noexcept {
  if (fd < STDIN_FILENO || fd > STDERR_FILENO) [[likely]]
    return fd;
  const int moved = ::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int number = errno;
  ::close(fd);
  errno = number;
  STELE_ASSERT(moved < 0 || moved > STDERR_FILENO);
  return moved;
}

int memory_file(const char* name, unsigned flags) noexcept {
  return make_descriptor([&] { return ::memfd_create(name, flags); });
}

int socket(int domain, int type, int protocol) noexcept {
  return make_descriptor([&] { return ::socket(domain, type, protocol); });
}

int accept(int listening, int flags) noexcept {
  return make_descriptor([&] { return ::accept4(listening, nullptr, nullptr, flags); });
}

int event(int flags) noexcept {
  return make_descriptor([&] { return ::eventfd(0, flags); });
}

void install_hook(syscall_hook* w) noexcept {
  installed_hook.store(w, std::memory_order_release);
}

int open(const char* path, int flags, mode_t mode) noexcept {
  request r{.what = call::open};
  return with_hook(
      r, -1, [&] { return r.fd = make_descriptor([&] { return ::open(path, flags, mode); }); });
}

int fstat(int fd, struct stat& status) noexcept {
  return with_hook({.what = call::fstat, .fd = fd}, -1, [&] { return ::fstat(fd, &status); });
}

int lock(int fd, int command, struct flock& what) noexcept {
  return with_hook({.what = call::lock, .fd = fd}, -1, [&] { return ::fcntl(fd, command, &what); });
}

int fallocate(int fd, std::uint64_t offset, std::uint64_t size) noexcept {
  STELE_ASSERT(size != 0 && static_cast<off_t>(offset + size) > 0);
  const int outcome =
      with_hook({.what = call::fallocate, .fd = fd, .offset = offset, .size = size}, -1, [&] {
        return with_sigxfsz_blocked([&] {
          return ::posix_fallocate(fd, static_cast<off_t>(offset), static_cast<off_t>(size));
        });
      });
  return outcome == -1 ? errno : outcome;
}

int truncate(int fd, std::uint64_t size) noexcept {
  STELE_ASSERT(static_cast<off_t>(size) >= 0);
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
  STELE_ASSERT(r.size <= size && (r.size != 0 || size == 0));
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
  STELE_ASSERT(size != 0 && offset % 4096 == 0);
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
  STELE_ASSERT(size == 0 || (to != nullptr && offset + size > offset));
  for (std::size_t done = 0; done < size;) {
    const ssize_t n = read(fd, static_cast<std::byte*>(to) + done, size - done, offset + done);
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) errno = 0;
    if (n <= 0) return false;
    done += static_cast<std::size_t>(n);
  }
  return true;
}

std::string read_text(const char* path, std::size_t most) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return {};
  struct stat status = {};
  std::string text(most, '\0');
  std::size_t done = 0;
  while (done < most && fstat(fd, status) == 0 && S_ISREG(status.st_mode)) {
    const ssize_t n = ::read(fd, text.data() + done, most - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    done += static_cast<std::size_t>(n);
  }
  ::close(fd);
  STELE_ASSERT(done <= most);
  text.resize(done);
  return text;
}

bool write_all(int fd, const void* from, std::size_t size, std::uint64_t offset) noexcept {
  STELE_ASSERT(size == 0 || (from != nullptr && offset + size > offset));
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
