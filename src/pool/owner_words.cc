// Who has a pool open: the lock on its file, and the words of its first page by which other
// processes find the one that has it open: its pid, the generation, the number of the socket for
// readers. None is checked, none needs durability.
#include <base/assert.h>
#include <base/check.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <media/os.h>
#include <pool/new_file.h>
#include <pool/pool_file.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>

namespace stele::storage {

namespace os = media::os;
using base::fail;

namespace {

// 0: it cannot be read.
std::uint64_t owner_of(int fd) noexcept {
  std::uint64_t pid = 0;
  return os::read_all(fd, &pid, sizeof pid, format::owner_offset) ? pid : 0;
}

// Systems let go of a killed process' locks a moment after they have told its parent of its end
// (gVisor does, and Linux while another process reads its mappings in /proc).
constexpr std::chrono::seconds longest_end{1};

// Whether no process has this pid. 0: of a file that nobody has opened yet.
bool has_ended(std::uint64_t pid) {
  return pid != 0 && ::kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH;
}

// The reason of a failed open when another handle holds the lock.
std::unexpected<error> locked_error(std::uint64_t owner, const std::string& path) {
  if (owner == static_cast<std::uint64_t>(::getpid()))
    return fail(errc::in_use, fmt::format("{} is open in this process already; use that pool, or "
                                          "close it first (a pool is open once at a time)",
                                          path));
  return fail(
      errc::in_use,
      fmt::format(
          "{} is open in process {}; close it there first (one process at a time has a pool open)",
          path, owner));
}

}  // namespace

std::optional<std::uint64_t> lock_holder(int fd) noexcept {
  struct flock probe = {};
  probe.l_type = F_RDLCK;
  probe.l_whence = SEEK_SET;
  if (os::lock(fd, F_OFD_GETLK, probe) != 0 || probe.l_type == F_UNLCK) return std::nullopt;
  return owner_of(fd);
}

result<> lock_pool_file(int fd, const std::string& path) {
  STELE_ASSERT_ALWAYS(fd >= 0);
  using std::chrono::steady_clock;
  const auto begun = steady_clock::now();
  for (;;) {
    struct flock whole = {};
    whole.l_type = F_WRLCK;
    whole.l_whence = SEEK_SET;
    if (os::lock(fd, F_OFD_SETLK, whole) == 0) return {};
    if (errno != EAGAIN && errno != EACCES) return path_error("lock", path);
    const std::uint64_t owner = owner_of(fd);
    if (!has_ended(owner) || steady_clock::now() - begun >= longest_end)
      return locked_error(owner, path);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

// The file names its owner while it is open, and its generation tells readers of a new owner.
// Header and logs may be private memory, so the words are
// written there and to the file.
result<> pool_file::write_owner() {
  static_assert(format::generation_offset == format::owner_offset + 8);
  static_assert(format::reader_socket_offset == format::generation_offset + 8 &&
                    format::owner_offset / 64 == format::reader_socket_offset / 64,
                "the three words share a line that has no guarded word");
  STELE_ASSERT_ALWAYS(owner_ == 0 && mapped_ && mapping_.fd >= 0);  // once, of a locked file
  std::array<std::uint64_t, 2> words;                               // owner, generation
  std::memcpy(words.data(), mapping_.base + format::owner_offset, sizeof words);
  previous_owner_ = words[0];
  words = {static_cast<std::uint64_t>(::getpid()), words[1] + 1};
  STELE_ASSERT_ALWAYS(words[0] != 0);
  if (!os::write_all(mapping_.fd, words.data(), sizeof words, format::owner_offset))
    return path_error("write", mapping_.path);
  std::memcpy(mapping_.base + format::owner_offset, words.data(), sizeof words);
  owner_ = words[0];
  return {};
}

bool pool_file::publish_reader_socket(std::uint64_t number) noexcept {
  STELE_ASSERT_ALWAYS(owner_ != 0 && !mark_.is_of_parent());  // only who has it open serves it
  if (!os::write_all(mapping_.fd, &number, sizeof number, format::reader_socket_offset))
    return false;
  std::memcpy(mapping_.base + format::reader_socket_offset, &number, sizeof number);
  serves_readers_ = number != 0;
  return true;
}
std::uint64_t reader_socket_of(int fd) noexcept {
  std::uint64_t number = 0;
  return os::read_all(fd, &number, sizeof number, format::reader_socket_offset) ? number : 0;
}

}  // namespace stele::storage
