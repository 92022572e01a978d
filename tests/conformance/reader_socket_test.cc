// The socket by which readers of other processes attach, beside processes of other users: nobody
// takes its name before, a stranger gets no connection to a private pool, and connections that ask
// for nothing do not take the writer's descriptors.
#include <fcntl.h>
#include <fmt/format.h>
#include <format/pool_layout.h>
#include <grp.h>
#include <stele/kv.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <tests/conformance/pools.h>
#include <tx/readers/channel.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <thread>

namespace stele::testing {
namespace {

using namespace std::chrono_literals;

constexpr unsigned nobody = 65534;

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}
bool within(std::chrono::seconds limit, const std::function<bool()>& holds) {
  for (const auto end = std::chrono::steady_clock::now() + limit;
       std::chrono::steady_clock::now() < end; std::this_thread::sleep_for(20ms))
    if (holds()) return true;
  return holds();
}

class reader_socket : public ::testing::Test {
 protected:
  reader_socket() {
    auto opened = kv::open(path_, {.create_size = 1 << 20, .engine = {.media = "process"}});
    EXPECT_TRUE(succeeds(opened));
    writer_.emplace(std::move(*opened));
    EXPECT_TRUE(succeeds(writer_->put("a", "1")));
  }
  std::uint64_t number() const {
    std::uint64_t word = 0;
    std::ifstream(path_, std::ios::binary)
        .seekg(format::reader_socket_offset)
        .read(reinterpret_cast<char*>(&word), sizeof word);
    return word;
  }
  sockaddr_un name_of(std::uint64_t number, socklen_t& length) const {
    struct stat file = {};
    EXPECT_EQ(::stat(path_.c_str(), &file), 0);
    const auto name = fmt::format("stele/{:x}/{:x}/{:016x}", file.st_dev, file.st_ino, number);
    sockaddr_un at = {};
    at.sun_family = AF_UNIX;
    std::memcpy(at.sun_path + 1, name.data(), name.size());
    length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    return at;
  }
  // A socket that is connected to the writer's.
  int connect() const {
    socklen_t length = 0;
    const sockaddr_un at = name_of(number(), length);
    const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    EXPECT_EQ(::connect(fd, reinterpret_cast<const sockaddr*>(&at), length), 0)
        << std::strerror(errno);
    return fd;
  }
  // Whether the other end has closed it.
  static bool is_closed(int fd) {
    char byte = 0;
    return ::recv(fd, &byte, 1, MSG_DONTWAIT) == 0;
  }
  // The exit status of a child of another user that runs the body.
  static int as_stranger(const std::function<int()>& body) {
    const pid_t child = ::fork();
    if (child == 0) {
      if (::setgroups(0, nullptr) != 0 || ::setgid(nobody) != 0 || ::setuid(nobody) != 0)
        ::_exit(99);
      ::_exit(body());
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  // Answers each request of each connection with an error. Does not return.
  [[noreturn]] static void refuse_readers(int listening) {
    for (;;)
      if (auto reader = detail::channel::accept(listening))
        while (reader->receive())
          (void)reader->send(detail::reply_of({errc::not_a_pool, "what a stranger says"}));
  }
  void a_reader_attaches() const {
    auto reader = kv::open_read_only(path_);
    ASSERT_TRUE(succeeds(reader));
    EXPECT_EQ(reader->get("a").value_or(std::nullopt), "1");
  }
  scratch_directory dir_;
  const std::string path_ = dir_.file("p");
  std::optional<kv> writer_;
};

TEST_F(reader_socket, has_another_name_in_each_session_and_none_when_closed) {
  const std::uint64_t first = number();
  EXPECT_NE(first, 0u);
  ASSERT_TRUE(succeeds(writer_->close()));
  EXPECT_EQ(number(), 0u);
  writer_.reset();
  auto again = kv::open(path_, {.engine = {.media = "process"}});
  ASSERT_TRUE(succeeds(again));
  EXPECT_NE(number(), first);
  a_reader_attaches();
}

TEST_F(reader_socket, gives_strangers_no_connection_to_a_private_pool) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become another user";
  std::filesystem::permissions(path_, std::filesystem::perms(0600));
  socklen_t length = 0;
  const sockaddr_un at = name_of(number(), length);
  const int closed = as_stranger([&] {
    const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&at), length) != 0) return 1;
    return within(5s, [&] { return is_closed(fd); }) ? 0 : 2;
  });
  EXPECT_EQ(closed, 0);
  a_reader_attaches();
}

// A descriptor of O_PATH needs no right to read the file; the writer once copied the pool for it.
TEST_F(reader_socket, copies_no_pool_for_a_stranger_who_may_not_read_it) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become another user";
  std::filesystem::permissions(path_, std::filesystem::perms(0640));
  std::filesystem::permissions(std::filesystem::path(path_).parent_path(),
                               std::filesystem::perms(0755));
  socklen_t length = 0;
  const sockaddr_un at = name_of(number(), length);  // /proc/net/unix has the name
  EXPECT_EQ(as_stranger([&] {
              const int pool = ::open(path_.c_str(), O_PATH | O_CLOEXEC);
              const int copy = ::memfd_create("copy", MFD_CLOEXEC);
              if (pool < 0 || copy < 0 || ::open(path_.c_str(), O_RDONLY) >= 0) return 1;
              const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
              if (::connect(fd, reinterpret_cast<const sockaddr*>(&at), length) != 0) return 2;
              detail::channel link{storage::descriptor(fd)};
              detail::reader_message m;
              m.what = static_cast<std::uint32_t>(detail::reader_request::back_up);
              if (!link.send(m, {copy, pool})) return 3;
              const auto reply = link.receive();
              if (!reply || reply->message.what != std::uint32_t(errc::permission) + 1) return 4;
              return ::lseek(copy, 0, SEEK_END) == 0 ? 0 : 5;
            }),
            0);
  a_reader_attaches();
}

// A moment's pages are the pool's content.
TEST_F(reader_socket, gives_no_moment_to_a_reader_that_has_not_attached) {
  const int pool = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  for (const auto what : {detail::reader_request::begin_moment, detail::reader_request::settle,
                          detail::reader_request::end_moment}) {
    auto link = detail::channel::connect(pool, 0);
    ASSERT_TRUE(succeeds(link));
    detail::reader_message m;
    m.what = static_cast<std::uint32_t>(what);
    ASSERT_TRUE(succeeds(link->send(m)));
    auto reply = link->receive();
    ASSERT_TRUE(succeeds(reply));
    EXPECT_EQ(reply->message.what, static_cast<std::uint32_t>(errc::permission) + 1);
    EXPECT_LT(reply->fds[0].fd, 0);
  }
  ::close(pool);
  a_reader_attaches();
}

TEST_F(reader_socket, lets_a_stranger_read_a_pool_that_all_may_read) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become another user";
  std::filesystem::permissions(path_, std::filesystem::perms(0644));
  std::filesystem::permissions(std::filesystem::path(path_).parent_path(),
                               std::filesystem::perms(0755));
  EXPECT_EQ(as_stranger([&] {
              const auto reader = kv::open_read_only(path_);
              // The writer is root, whom everybody believes.
              return reader && reader->get("a").value_or(std::nullopt) == "1" ? 0 : 1;
            }),
            0);
}

TEST_F(reader_socket, keeps_few_descriptors_for_connections_that_ask_for_nothing) {
  constexpr std::size_t most = 256;
  const std::size_t before = open_descriptors();
  std::vector<int> idle;
  for (unsigned i = 0; i < most + most / 4; ++i) idle.push_back(connect());
  EXPECT_TRUE(within(5s, [&] {
    return std::ranges::count_if(idle, is_closed) >= static_cast<std::ptrdiff_t>(most / 4);
  })) << "beyond the most";
  EXPECT_LE(open_descriptors(), before + idle.size() + most);
  ASSERT_TRUE(succeeds(writer_->put("b", "2")));
  EXPECT_TRUE(within(10s, [&] {
    return std::ranges::count_if(idle, is_closed) == static_cast<std::ptrdiff_t>(idle.size());
  })) << "that ask for nothing";
  a_reader_attaches();
  for (const int fd : idle) ::close(fd);
  constexpr std::size_t shared_memory = 4;  // that the writer keeps for later readers
  EXPECT_TRUE(within(5s, [&] { return open_descriptors() <= before + shared_memory; }));
}

TEST_F(reader_socket, of_a_dead_writer_may_be_taken_by_a_stranger) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become another user";
  ASSERT_TRUE(succeeds(writer_->close()));
  writer_.reset();
  constexpr std::uint64_t left = 0x1234;
  std::fstream(path_, std::ios::binary | std::ios::in | std::ios::out)
      .seekp(format::reader_socket_offset)
      .write(reinterpret_cast<const char*>(&left), sizeof left);
  socklen_t length = 0;
  const sockaddr_un at = name_of(left, length);
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t squatter = ::fork();
  if (squatter == 0) {
    if (::setgid(nobody) != 0 || ::setuid(nobody) != 0) ::_exit(99);
    const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET, 0);
    if (::bind(fd, reinterpret_cast<const sockaddr*>(&at), length) != 0 || ::listen(fd, 8) != 0)
      ::_exit(1);
    (void)!::write(ready[1], "x", 1);
    refuse_readers(fd);
  }
  char byte = 0;
  EXPECT_EQ(::read(ready[0], &byte, 1), 1);
  a_reader_attaches();
  writer_.emplace(std::move(*kv::open(path_, {.engine = {.media = "process"}})));
  EXPECT_NE(number(), left);
  a_reader_attaches();
  ::kill(squatter, SIGKILL);
  ::waitpid(squatter, nullptr, 0);
  ::close(ready[0]), ::close(ready[1]);
}

}  // namespace
}  // namespace stele::testing
