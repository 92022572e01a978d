// Files that are complete before they get a name.
#include <base/assert.h>
#include <base/check.h>
#include <base/mutant.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <media/os.h>
#include <pool/new_file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <filesystem>
#include <utility>

namespace stele::storage {

using base::fail;
using base::fail_errno;
namespace os = media::os;

errc errc_from_errno(int number) noexcept {
  switch (number) {
    case ENOENT:
    case ENOTDIR:
      return errc::not_found;
    case EACCES:
    case EPERM:
      return errc::permission;
    case EROFS:
      return errc::read_only;
    case EEXIST:
      return errc::exists;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return errc::full;
    default:
      return errc::io;
  }
}

static bool holds_nul(const std::string& path) noexcept {
  return path.find('\0') != std::string::npos;
}

int open_named(const std::string& path, int flags) noexcept {
  if (!holds_nul(path)) return os::open(path.c_str(), flags);
  errno = EINVAL;
  return -1;
}

std::unexpected<error> path_error(const char* what, const std::string& path, int number) {
  if (holds_nul(path))
    return fail(errc::invalid_argument,
                fmt::format("cannot {} {}: its name has a NUL byte after that, which no file's "
                            "name can have",
                            what, path.c_str()));
  const char* const advice =
      number == ENOENT || number == ENOTDIR ? " (does the directory exist?)"
      : number == EROFS
          ? " (its file system is read-only: remount it for writing, or use a pool elsewhere)"
          : "";
  return fail_errno(errc_from_errno(number), fmt::format("cannot {} {}{}", what, path, advice),
                    number);
}

// Without this check, a process that exceeds its limit would be ended by a signal.
static result<> check_size_limit(std::size_t size, const std::string& path) {
  struct rlimit limit = {};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
      size <= limit.rlim_cur)
    return {};
  return fail(errc::full,
              fmt::format("cannot reserve {} bytes for {}: this process may write files of {} "
                          "bytes (RLIMIT_FSIZE); raise that (ulimit -f), or use a smaller pool",
                          size, path, limit.rlim_cur));
}

// tmpfs looks at every page of a file again when space is reserved that is there, for 120 ms a GiB.
// Its count of blocks is exact; other file systems may count blocks of their own.
static bool has_all_pages_on_tmpfs(int fd, std::size_t size) {
  constexpr std::uint64_t page = 4096, block = 512;
  struct statfs where = {};
  struct stat file = {};
  if (::fstatfs(fd, &where) != 0 || where.f_type != TMPFS_MAGIC || os::fstat(fd, file) != 0)
    return false;
  const auto bytes = static_cast<std::uint64_t>(file.st_size);
  return bytes >= size &&
         static_cast<std::uint64_t>(file.st_blocks) * block == (bytes + page - 1) / page * page;
}

result<> allocate_space(int fd, std::size_t size, const std::string& path) {
  STELE_ASSERT_ALWAYS(fd >= 0 && size != 0);
  if (auto allowed = check_size_limit(size, path); !allowed) return allowed;
  if (has_all_pages_on_tmpfs(fd, size)) return {};
  int failed = EINTR;
  while (failed == EINTR) failed = os::fallocate(fd, 0, size);
  if (failed == 0) return {};
  if (failed == EFBIG || failed == EINVAL)
    return fail(
        errc::full,
        fmt::format("cannot create {}: {} bytes are more than this file system takes in one file",
                    path, size));
  return fail_errno(
      errc_from_errno(failed),
      fmt::format("cannot reserve {} bytes for {}; free some space or create a smaller pool", size,
                  path),
      failed);
}

descriptor::~descriptor() {
  if (fd >= 0) ::close(fd);
}
descriptor& descriptor::operator=(descriptor&& other) noexcept {
  std::swap(fd, other.fd);
  return *this;
}
int descriptor::release() noexcept {
  return std::exchange(fd, -1);
}

namespace {

std::string directory_of(const std::string& path) {
  const std::string directory = std::filesystem::path(path).parent_path().string();
  return directory.empty() ? "." : directory;
}

// -1: this process may make names there, but not read them.
result<descriptor> open_directory_of(const std::string& path) {
  descriptor directory(os::open(directory_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.fd < 0 && errno != EACCES) return path_error("open the directory of", path);
  return directory;
}

// Makes the name of an open file durable. In a directory that cannot be read it needs a sync of the
// file system.
result<> sync_name(const descriptor& directory, const descriptor& file, const std::string& path) {
  const int failed = directory.fd >= 0 ? os::sync(directory.fd) : ::syncfs(file.fd);
  if (failed != 0 && errno != EINVAL) return path_error("sync the directory of", path);
  return {};
}

}  // namespace

result<> sync_named(const descriptor& file, const std::string& path) {
  STELE_ASSERT_ALWAYS(file.fd >= 0);
  if (os::sync(file.fd) != 0) return path_error("sync", path);
  const auto directory = open_directory_of(path);
  if (!directory) return std::unexpected(directory.error());
  return sync_name(*directory, file, path);
}

// A file system without unnamed files gets a file with a temporary name, and so does a process
// without /proc, which gives an unnamed file its name. The temporary name must be new: an existing
// file of that name may be a link to anything.
new_file::new_file(const std::string& path)
    : path_(path),
      file_(os::open(directory_of(path).c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)) {
  name_ = fmt::format("/proc/self/fd/{}", file_.fd);
  const bool is_unnamed = file_.fd >= 0;
  if (is_unnamed ? ::access(name_.c_str(), F_OK) == 0 : errno != EOPNOTSUPP && errno != EISDIR)
    return;
  file_ = descriptor(-1);
  constexpr unsigned max_names = 1000;
  for (unsigned i = 0; i < max_names && file_.fd < 0 && (i == 0 || errno == EEXIST); ++i) {
    name_ = fmt::format("{}.creating.{}.{}", path, ::getpid(), i);
    file_.fd = os::open(name_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  }
  named_ = file_.fd >= 0;
  STELE_ASSERT_ALWAYS(!named_ || name_.starts_with(path));
}

new_file::~new_file() {
  if (named_ && file_.fd >= 0) ::unlink(name_.c_str());
}

result<new_file> new_file::make(const std::string& path, std::size_t max_bytes) {
  if (auto allowed = check_size_limit(max_bytes, path); !allowed)
    return std::unexpected(allowed.error());
  if (holds_nul(path)) return path_error("create", path, EINVAL);
  if (::access(path.c_str(), F_OK) == 0)
    return fail(errc::exists, fmt::format("{} exists already; nothing was changed", path));
  new_file made(path);
  if (made.file_.fd < 0) return path_error("create", path);
  return made;
}

result<> new_file::reserve(std::size_t size) {
  return allocate_space(file_.fd, size, path_);
}

result<> new_file::write(std::span<const std::byte> bytes, std::uint64_t offset) {
  STELE_ASSERT_ALWAYS(file_.fd >= 0 && offset + bytes.size() >= offset);
  if (!os::write_all(file_.fd, bytes.data(), bytes.size(), offset))
    return path_error("write", path_);
  return {};
}

result<std::byte*> new_file::map(std::size_t size) {
  STELE_ASSERT_ALWAYS(file_.fd >= 0 && size != 0);
  void* const at = os::map(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file_.fd);
  if (at == MAP_FAILED) return path_error("map", path_);
  return static_cast<std::byte*>(at);
}

result<> new_file::truncate(std::size_t size) {
  STELE_ASSERT_ALWAYS(file_.fd >= 0 && size != 0);
  if (os::truncate(file_.fd, size) != 0) return path_error("shorten", path_);
  return {};
}

result<> new_file::publish() {
  STELE_ASSERT_ALWAYS(file_.fd >= 0);
  // The name that it is linked from leads to this file, or nobody else has it.
  STELE_ASSERT_ALWAYS(named_ || name_.empty() ||
                      name_ == fmt::format("/proc/self/fd/{}", file_.fd));
  if (!planted(base::mutant::file_named_first) && os::sync(file_.fd) != 0)
    return path_error("sync", path_);
  if (name_.empty()) return {};
  // Opened first: without a descriptor for its sync the name is not made.
  const auto directory = open_directory_of(path_);
  if (!directory) return std::unexpected(directory.error());
  if (os::link(name_.c_str(), path_.c_str()) != 0) return path_error("create", path_);
  return sync_name(*directory, file_, path_);
}

}  // namespace stele::storage
