// The side of the process that has a pool open: a thread that serves readers in
// other processes. Steps A2 and A3, and what readers ask for, of
// docs/protocol/readers.md.
//
// The thread sleeps until a reader comes. Readers are not trusted: they get
// memory that they cannot store to, after they have shown that they may read
// the file.
#pragma once

#include <tx/page_snapshot.h>
#include <tx/readers/channel.h>
#include <tx/readers/shared_memory.h>
#include <tx/transaction/snapshot.h>

#include <poll.h>

#include <list>
#include <memory>
#include <thread>
#include <vector>

namespace stele::detail {

class runtime;

// Where the kept pages of a moment are: a byte for each page of the pool, then
// the pages.
struct kept_layout {
  enum mark : std::uint8_t { in_home, kept, lost };  // lost: there was no memory to keep it
  std::uint64_t pages;
  std::uint64_t pages_offset() const noexcept {
    return (pages + page_snapshot::page_size - 1) / page_snapshot::page_size *
           page_snapshot::page_size;
  }
  std::uint64_t bytes() const noexcept { return pages_offset() + pages * page_snapshot::page_size; }
};

class reader_server {
 public:
  // Errors: of the socket and of the thread; then nobody is served.
  [[nodiscard]] static result<std::unique_ptr<reader_server>> start(runtime& r);
  // Ends all connections. Precondition: the calling thread runs no transaction.
  ~reader_server();
  // In a child of fork(), which has no such thread: gives the name back. It keeps what the thread
  // may have been changing: the connections, which end with parent and child, as the file's lock.
  void abandon() noexcept;

 private:
  class kept_pages;
  struct reader;

  reader_server(runtime& r, storage::descriptor listening, storage::descriptor wake) noexcept;
  void run() noexcept;
  void serve(reader& from);
  [[nodiscard]] result<> answer(reader& from, received_message& request);
  [[nodiscard]] result<> attach(reader& from, received_message& request);
  [[nodiscard]] result<> begin_moment(reader& from);
  [[nodiscard]] result<> back_up(reader& from, received_message& request);
  [[nodiscard]] result<> check_may_read(int fd) const;
  [[nodiscard]] result<> share_locks();
  void stop_sharing() noexcept;
  void end(reader& r) noexcept;

  runtime& runtime_;
  storage::descriptor listening_, wake_;
  std::list<reader> readers_;
  std::vector<pollfd> watched_;  // wake_, listening_, readers_
  shared_memory locks_;          // made for the first reader
  unsigned attached_ = 0;
  std::uint64_t next_moment_ = 0;
  pid_t opening_pid_;
  std::thread thread_;
};

}  // namespace stele::detail
