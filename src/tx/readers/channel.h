// What the process that has a pool open and its readers say to each other: one
// request, then one reply, over a Unix socket of sequenced packets.
// docs/protocol/readers.md.
//
// The socket's name is abstract, made of the device and inode of the pool's file, and of a random
// number that the pool's first page has, so that nobody can take it before. The descriptors that a
// message carries belong to its receiver.
#pragma once

#include <pool/new_file.h>
#include <stele/error.h>

#include <array>
#include <cstdint>
#include <string>

namespace stele::detail {

enum class reader_request : std::uint32_t {
  attach = 1,    // with a descriptor of the pool's file; the reply has clock and locks
  settle,        // make deferred commits durable, release the locks of idle threads
  begin_moment,  // the reply has the kept pages
  end_moment,    // of the number in `argument`
  back_up,       // with a descriptor of an empty file; replies with progress, then
                 // with the end
};

inline constexpr std::uint32_t reader_protocol = 1;  // the version

struct reader_message {
  std::uint32_t magic = 0x524C5453;  // "STLR"
  std::uint32_t protocol = reader_protocol;
  std::uint32_t what = 0;  // a reader_request; of a reply: 0 or an errc + 1
  std::uint32_t more = 0;  // of a reply: another one follows
  std::array<std::uint64_t, 4> argument{};
  std::array<char, 464> text{};  // of a reply that is an error: its sentence, zero-terminated

  std::string sentence() const;
};
static_assert(sizeof(reader_message) == 512);

// A reply that reports this error.
reader_message reply_of(const error& why) noexcept;

struct received_message {
  reader_message message;
  std::array<storage::descriptor, 2> fds{storage::descriptor{-1}, storage::descriptor{-1}};
};

struct listening_socket {
  storage::descriptor socket{-1};
  std::uint64_t number = 0;  // in its name
};

class channel {
 public:
  channel() noexcept = default;  // of nobody
  explicit channel(storage::descriptor socket) noexcept : socket_(std::move(socket)) {}

  // Of the process that serves readers of the file behind `pool_fd`; a call
  // waits at most `limit_ms`. Errors: not_found, when there is none;
  // permission, when a stranger has its name; io.
  [[nodiscard]] static result<channel> connect(int pool_fd, int limit_ms);
  // A listening socket for that file, with a random name. Errors: unsupported; io.
  [[nodiscard]] static result<listening_socket> listen(int pool_fd);
  [[nodiscard]] static result<channel> accept(int listening);

  // Errors: io, when the other end is gone or silent.
  [[nodiscard]] result<> send(const reader_message& m, const std::array<int, 2>& fds = {-1, -1});
  [[nodiscard]] result<received_message> receive();
  // The other end is a process of another user, who does not own the pool and is not root.
  bool is_of_a_stranger(int pool_fd) const noexcept;
  // The other end is gone, or has sent what nobody asked for. Does not wait.
  bool has_ended() const noexcept;
  int fd() const noexcept { return socket_.fd; }
  explicit operator bool() const noexcept { return socket_.fd >= 0; }

 private:
  storage::descriptor socket_{-1};
};

}  // namespace stele::detail
