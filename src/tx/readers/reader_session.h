// A pool that is open for reading: the reader's side of
// docs/protocol/readers.md. The steps A1, A4 and what a read does between two
// attempts.
//
// The reader's runtime has the session in place of an engine. It is attached to
// the process that has the pool open, or reads a closed pool, or a recovered
// private copy of one that was not closed. The pool's addresses stay the same.
// Thread-safe.
#pragma once

#include <base/assert.h>
#include <pool/new_file.h>
#include <stele/pool.h>
#include <tx/home.h>
#include <tx/readers/channel.h>
#include <tx/readers/shared_memory.h>
#include <tx/transaction/snapshot.h>

#include <array>
#include <atomic>
#include <memory>
#include <mutex>

namespace stele::detail {

class runtime;
struct thread_context;

// Asks the process that has a pool open for a copy of it, as pool<Root>::backup makes one, in the
// empty file `to`. `path`: the pool's, for messages. Errors: not_found, when no process serves
// readers of the pool; those of backup.
[[nodiscard]] result<> copy_open_pool(int pool_fd, const std::string& path, int to,
                                      const progress& report);

class reader_session {
 public:
  // Opens a pool for reading. Errors: those of pool<Root>::open_read_only.
  [[nodiscard]] static result<std::unique_ptr<runtime>> open(const std::string& path);

  reader_session(const reader_session&) = delete;
  virtual ~reader_session();

  foreign_home& home_read() noexcept { return *home_; }
  pool_space space() const;  // sizes of file and logs; the rest is 0
  bool is_attached() const noexcept { return mode_ == mode::attached; }
  // Asks the process that has the pool open for a copy of it in `path`. As
  // pool<Root>::backup. Errors: also not_found, when no process has it open.
  [[nodiscard]] result<> back_up(const std::string& path, const progress& report);

  // Between two attempts of a read of v's thread, in its transaction: removes
  // what may be the cause of the lost attempt. Returns the context to go on
  // with. After an error or an exception the thread is in no transaction. Errors: those of
  // attach(); bad memory as std::bad_alloc.
  [[nodiscard]] result<thread_context*> before_retry(runtime& r, thread_context& v);
  // For a read that cannot run again, at its begin, in v's transaction: fixes the moment that it
  // sees, so that only a process that opens the pool for writing restarts it. Returns the context
  // to go on with. After an error or an exception the thread is in no transaction. Errors: those of
  // attach(); in_use, when the process that has the pool open does not answer, or keeps too many
  // moments.
  [[nodiscard]] result<thread_context*> fix_moment(runtime& r, thread_context& v);
  void end_moment(thread_context& v) noexcept;
  // In a child of fork().
  void abandon() noexcept { link_ = channel(); }
  void leave_to_parent() noexcept;  // likewise

 protected:
  // Of a pool that is mapped already: `page` is its first one, which the session does not unmap.
  reader_session(const format::pool_header& h, std::byte* home, std::byte* page);

  // Errors: those of attach().
  [[nodiscard]] static result<std::unique_ptr<runtime>> begin_reading(
      std::unique_ptr<reader_session> session, storage::pool_file file);
  // Finds out who has the pool open. False: that is changing.
  [[nodiscard]] virtual result<bool> try_attach();
  // From here on reads take these locks, of the process that has the pool open.
  void attached_to(const lock_table& locks) noexcept;
  [[nodiscard]] virtual result<received_message> ask(reader_request what,
                                                     std::uint64_t argument = 0);
  virtual bool has_lost_writer() noexcept;

 private:
  class foreign_moment;
  enum class mode : std::uint8_t {
    none,
    attached,  // to the process that has the pool open
    closed,    // no process has it open
    copied,    // likewise; it was not closed, and is recovered in private memory
  };

  reader_session(storage::descriptor file, const std::string& path) noexcept
      : file_(std::move(file)), path_(path) {}
  [[nodiscard]] result<storage::pool_file> map_file();
  // Finds out who has the pool open, and reads as that needs. No transaction
  // runs. Errors: in_use, when a process has the pool open and does not answer;
  // corrupt, unsupported, version.
  [[nodiscard]] result<> attach();
  [[nodiscard]] result<> attach_to(channel link);
  // For assertions: a reader stores to no lock, so those of a pool that nobody has open stay free.
  bool has_idle_table() const noexcept {
    for (const line_lock& l : idle_locks_)
      if (l.load(std::memory_order_relaxed) != 0) return false;
    return idle_clock_.load(std::memory_order_relaxed) == 0;
  }
  [[nodiscard]] result<> read_unopened();
  [[nodiscard]] result<> recover_copy();
  [[nodiscard]] result<> map_home(bool private_copy);
  [[nodiscard]] result<> check_same_pool();
  [[nodiscard]] result<thread_context*> attach_again(runtime& r, thread_context& v);
  // Whether the process is another one than was attached to. `at_link`: also looks at the link.
  bool has_changed(bool at_link);
  std::unexpected<error> unanswered() const;
  [[nodiscard]] result<> begin_moment(thread_context& v);
  void leave_for_good(runtime& r, thread_context& v) noexcept;

  storage::descriptor file_;
  const std::string path_;
  format::pool_header header_{};  // as it was when the pool was opened
  std::byte* base_ = nullptr;     // of the pool's addresses, `room_` bytes
  std::size_t room_ = 0;
  bool is_private_ = false;          // home is mapped privately
  std::byte* first_page_ = nullptr;  // of the file, mapped shared

  std::unique_ptr<foreign_home> home_;
  // The following change while no transaction runs.
  mode mode_ = mode::none;
  std::uint64_t attachments_ = 0;  // number of attach()es that have succeeded
  shared_memory clock_, shared_locks_;
  lock_table locks_;
  std::uint64_t root_offset_ = 0;
  std::atomic<std::uint64_t> idle_clock_{0};  // of mode closed and copied, as are these
  std::array<line_lock, 64> idle_locks_{};
  std::mutex attaching_;   // held by the thread that attaches, which is in no
                           // transaction
  std::mutex link_mutex_;  // a request and its reply
  channel link_;
};

}  // namespace stele::detail
