// Sockets, names and descriptors behind a channel. See channel.h.
#include <base/assert.h>
#include <base/check.h>
#include <fmt/format.h>
#include <media/os.h>
#include <poll.h>
#include <pool/pool_file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <tx/readers/channel.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace stele::detail {

using base::fail;
using base::fail_errno;

namespace {

struct socket_name {
  sockaddr_un address{};
  socklen_t length = 0;
};

// With the file's place, since a copy of the pool has the number too.
socket_name name_for(const struct stat& file, std::uint64_t number) {
  const std::string name = fmt::format("stele/{:x}/{:x}/{:016x}", file.st_dev, file.st_ino, number);
  STELE_ASSERT(number != 0);  // or anybody could take the name first
  socket_name n;
  STELE_ASSERT(1 + name.size() <= sizeof n.address.sun_path);
  n.address.sun_family = AF_UNIX;
  std::memcpy(n.address.sun_path + 1, name.data(),
              name.size());  // first byte 0: abstract
  n.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return n;
}

// Anybody may take an abstract name, and connect to one; only the file's owner, root and we are
// believed.
bool is_trusted(int socket, const struct stat& file) {
  ucred peer = {};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
  return peer.uid == 0 || peer.uid == file.st_uid || peer.uid == ::geteuid();
}

// 0: there is none.
std::uint64_t random_number() noexcept {
  std::uint64_t number = 0;
  return media::os::getrandom(&number, sizeof number) == ssize_t{sizeof number} ? number : 0;
}

void set_time_limit(int socket, int ms) {
  STELE_ASSERT(socket >= 0 && ms >= 0);
  const timeval t = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
  (void)::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
  (void)::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t);
}

// Room for two descriptors.
union control_buffer {
  cmsghdr align;
  char bytes[CMSG_SPACE(2 * sizeof(int))];
};

void take_descriptors(msghdr& header, received_message& into) {
  STELE_ASSERT(into.fds[0].fd < 0 && into.fds[1].fd < 0);
  std::size_t taken = 0;
  for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
      storage::descriptor owned(media::os::above_standard(fd));
      if (taken < into.fds.size()) into.fds[taken++] = std::move(owned);
    }
  }
}

}  // namespace

std::string reader_message::sentence() const {
  return {text.begin(), std::find(text.begin(), text.end(), '\0')};
}

reader_message reply_of(const error& why) noexcept {
  reader_message m;
  m.what = static_cast<std::uint32_t>(why.code) + 1;
  why.message.copy(m.text.data(), m.text.size() - 1);
  STELE_ASSERT(m.what != 0 && m.text.back() == '\0');
  return m;
}

result<channel> channel::connect(int pool_fd, int limit_ms) {
  struct stat file = {};
  if (::fstat(pool_fd, &file) != 0) return fail_errno(errc::io, "cannot examine the pool");
  storage::descriptor socket(media::os::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (socket.fd < 0) return fail_errno(errc::io, "cannot make a socket");
  set_time_limit(socket.fd, limit_ms);
  const std::uint64_t number = storage::reader_socket_of(pool_fd);
  if (number == 0) return fail(errc::not_found, "no process serves readers of the pool");
  const socket_name name = name_for(file, number);
  const auto* const address = reinterpret_cast<const sockaddr*>(&name.address);
  if (::connect(socket.fd, address, name.length) != 0)
    return fail_errno(errno == ECONNREFUSED ? errc::not_found : errc::io,
                      "cannot reach the process that has the pool open");
  // A number that a dead process has left may be taken by anybody who can read the pool.
  if (!is_trusted(socket.fd, file))
    return fail(storage::lock_holder(pool_fd) ? errc::permission : errc::not_found,
                "a process of another user, who does not own "
                "the pool, claims to have it open");
  return channel(std::move(socket));
}

result<listening_socket> channel::listen(int pool_fd) {
  constexpr unsigned most_tries = 16;
  struct stat file = {};
  if (::fstat(pool_fd, &file) != 0) return fail_errno(errc::io, "cannot examine the pool");
  listening_socket listening{.socket = storage::descriptor(media::os::socket(
                                 AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0))};
  if (listening.socket.fd < 0) return fail_errno(errc::unsupported, "cannot make a socket");
  for (unsigned tries = 0; tries < most_tries; ++tries) {
    listening.number = random_number();
    if (listening.number == 0) return fail_errno(errc::unsupported, "no random bytes");
    const socket_name name = name_for(file, listening.number);
    const auto* const address = reinterpret_cast<const sockaddr*>(&name.address);
    if (::bind(listening.socket.fd, address, name.length) == 0) break;
    if (errno != EADDRINUSE || tries + 1 == most_tries)
      return fail_errno(errc::unsupported, "cannot listen for readers");
  }
  if (::listen(listening.socket.fd, 64) != 0)
    return fail_errno(errc::unsupported, "cannot listen for readers");
  STELE_ASSERT_ALWAYS(listening.number != 0 && listening.socket.fd >= 0);
  return listening;
}

result<channel> channel::accept(int listening) {
  storage::descriptor socket(media::os::accept(listening, SOCK_CLOEXEC));
  if (socket.fd < 0) return fail_errno(errc::io, "cannot accept a reader");
  set_time_limit(socket.fd, 1000);
  return channel(std::move(socket));
}

result<> channel::send(const reader_message& m, const std::array<int, 2>& fds) {
  STELE_ASSERT(socket_.fd >= 0);
  STELE_ASSERT(fds[0] >= 0 || fds[1] < 0);  // the first ones are sent
  STELE_ASSERT(m.protocol == reader_protocol && m.magic == reader_message().magic);
  iovec data = {.iov_base = const_cast<reader_message*>(&m), .iov_len = sizeof m};
  msghdr header = {};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  control_buffer control = {};
  const auto count = static_cast<std::size_t>(
      std::count_if(fds.begin(), fds.end(), [](int fd) { return fd >= 0; }));
  if (count != 0) {
    header.msg_control = control.bytes;
    header.msg_controllen = CMSG_SPACE(count * sizeof(int));
    cmsghdr* const c = CMSG_FIRSTHDR(&header);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(count * sizeof(int));
    STELE_ASSERT(CMSG_SPACE(count * sizeof(int)) <= sizeof control.bytes);
    std::memcpy(CMSG_DATA(c), fds.data(), count * sizeof(int));
  }
  ssize_t sent;
  do sent = ::sendmsg(socket_.fd, &header, MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);
  if (sent != ssize_t{sizeof m})
    return fail_errno(errc::io, "cannot send to the other process of the pool");
  return {};
}

result<received_message> channel::receive() {
  STELE_ASSERT(socket_.fd >= 0);
  received_message got;
  iovec data = {.iov_base = &got.message, .iov_len = sizeof got.message};
  msghdr header = {};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  control_buffer control = {};
  header.msg_control = control.bytes;
  header.msg_controllen = sizeof control.bytes;
  ssize_t size;
  do size = ::recvmsg(socket_.fd, &header, MSG_CMSG_CLOEXEC);
  while (size < 0 && errno == EINTR);
  if (size < 0) return fail_errno(errc::io, "no answer from the other process of the pool");
  take_descriptors(header, got);
  if (size == 0) return fail(errc::io, "the other process of the pool has ended");
  const reader_message known;
  if (size != ssize_t{sizeof got.message} || got.message.magic != known.magic ||
      got.message.protocol != known.protocol)
    return fail(errc::version,
                "the other process of the pool has another version of Stele, which "
                "shares pools in another way");
  return got;
}

bool channel::is_of_a_stranger(int pool_fd) const noexcept {
  struct stat file = {};
  return ::fstat(pool_fd, &file) != 0 || !is_trusted(socket_.fd, file);
}

bool channel::has_ended() const noexcept {
  pollfd p = {.fd = socket_.fd, .events = POLLIN | POLLRDHUP, .revents = 0};
  return ::poll(&p, 1, 0) > 0 && p.revents != 0;
}

}  // namespace stele::detail
