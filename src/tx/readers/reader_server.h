// The sockets of a process that has a pool open: a thread by which readers in other processes ask
// for what reader_service does. Step A3, and the requests, of docs/protocol/readers.md.
//
// The thread sleeps until a reader comes. Once a second it looks whether the pool's file is still
// where it was opened, so that updates of a removed or replaced pool end. Readers are not trusted:
// they get memory that they cannot store to, after they have shown that they may read the file.
// Their number is limited, that of other users' processes more.
#pragma once

#include <tx/readers/channel.h>
#include <tx/readers/reader_service.h>

#include <poll.h>

#include <chrono>
#include <list>
#include <memory>
#include <thread>
#include <vector>

namespace stele::detail {

class runtime;

class reader_server {
 public:
  // Errors: of the thread; then nobody is served. Without a socket nobody is served either, but the
  // thread runs.
  [[nodiscard]] static result<std::unique_ptr<reader_server>> start(runtime& r);
  // Ends all connections. Precondition: the calling thread runs no transaction.
  ~reader_server();
  // In a child of fork(), which has no such thread: gives the name back. It keeps what the thread
  // may have been changing: the connections, which end with parent and child, as the file's lock.
  // It is not destroyed there.
  void abandon() noexcept;

 private:
  struct reader;

  reader_server(runtime& r, storage::descriptor listening, storage::descriptor wake) noexcept;
  static constexpr int look_every_ms = 1000;
  static constexpr std::size_t most_readers = 256, most_strangers = 32;
  static constexpr int silence_ms = 5000;

  void run() noexcept;
  void admit() noexcept;
  void end_silent() noexcept;
  void look_at_file() noexcept;
  void serve(reader& from);
  [[nodiscard]] result<> answer(reader& from, received_message& request);
  [[nodiscard]] result<> attach(reader& from, received_message& request);
  [[nodiscard]] result<> begin_moment(reader& from);
  void end_moment(reader& from, std::uint64_t number) noexcept;
  [[nodiscard]] result<> back_up(reader& from, received_message& request);
  [[nodiscard]] result<> check_may_read(int fd) const;
  void end(reader& r) noexcept;

  runtime& runtime_;
  reader_service service_;
  storage::descriptor listening_, wake_;
  std::list<reader> readers_;
  std::vector<pollfd> watched_;  // wake_, listening_, readers_
  std::chrono::steady_clock::time_point looked_at_{};
  std::thread thread_;
};

}  // namespace stele::detail
