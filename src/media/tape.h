// The tape: the stream of memory events of a run, written at speed and read in bounded memory.
// Format: docs/format/tape.md.
//
// One order: an event is on the tape where its effect took place among the other threads' effects
// (the recording medium holds the tape's lock across both). Addresses are pool offsets.
#pragma once

#include <media/media.h>
#include <stele/error.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace stele::media {

enum class tape_op : std::uint8_t {
  load = 1,
  store,
  stream,
  flush,
  fence,
  bulk,
  tx_begin,
  tx_commit,
  tx_abort,
  invoked,
  returned,
  compute,
  image,
  end
};
enum class tape_tag : std::uint8_t {
  none = 0,
  data,
  log_record,
  commit_record,
  metadata,
  volatile_memory
};

const char* name_of(tape_op op) noexcept;
const char* name_of(tape_tag tag) noexcept;

struct tape_header {
  char magic[8];  // "STELETAP"
  std::uint32_t version;
  std::uint32_t flags;  // bit 0: stores carry their bytes
  std::uint64_t pool_size, home_offset, log_offset, log_size;
  std::uint32_t commit_offset,
      commit_size;  // of a log's commit lines, from its beginning; 0: it has none of its own
  std::uint64_t
      threads;  // one more than the largest thread number; 0: not known (the tape was cut off)
};
static_assert(sizeof(tape_header) == 64);

inline constexpr std::uint8_t tape_bytes_follow = 0x80;  // in the op byte
inline constexpr std::uint8_t tape_pointer_flag =
    0x80;  // in the tag byte of a load, on tapes of version 2
inline constexpr std::uint32_t tape_ordered_flag =
    1;  // in the length of a begin: the transaction asks for it

struct tape_record {
  std::uint8_t op;
  std::uint8_t tag;  // a tape_tag, and tape_pointer_flag
  std::uint16_t thread;
  std::uint32_t length;
  std::uint64_t address;  // or the argument of a mark
};
static_assert(sizeof(tape_record) == 16);

struct tape_event {
  tape_op op = tape_op::end;
  tape_tag tag = tape_tag::none;
  unsigned thread = 0;
  std::uint32_t length = 0;
  std::uint64_t address = 0;
  std::span<const std::byte> bytes;  // valid until the next event is read
  bool loads_pointer =
      false;  // a load whose value says where accesses of the thread go that follow it
};

struct tape_options {
  std::uint64_t pool_size = 0, home_offset = 0, log_offset = 0, log_size = 0;
  std::uint32_t commit_offset = 0, commit_size = 0;
  bool record_bytes = true;
  bool mark_pointers = false;  // a tape of version 2: its writer says which loads are of pointers
};

class tape_writer {
 public:
  [[nodiscard]] static result<std::unique_ptr<tape_writer>> to_file(const std::string& path,
                                                                    const tape_options& shape);
  static std::unique_ptr<tape_writer> to_memory(const tape_options& shape);
  ~tape_writer();

  // Holds the tape's order; an event is appended inside.
  class scoped_lock {
   public:
    explicit scoped_lock(tape_writer& w) noexcept;
    ~scoped_lock();
    scoped_lock(const scoped_lock&) = delete;
    scoped_lock& operator=(const scoped_lock&) = delete;

   private:
    tape_writer& writer_;
  };

  // Inside a scoped_lock.
  void event(tape_op op, unsigned thread, std::uint64_t address, std::uint32_t length,
             const void* bytes = nullptr);
  // A load of a pointer. On a tape that marks pointers.
  void pointer_load(unsigned thread, std::uint64_t address, std::uint32_t length);
  // The pool's content at the tape's beginning: lines that are not zero. Not inside a scoped_lock.
  void image(const std::byte* base, std::size_t size);

  // What is on a memory tape so far.
  std::span<const std::byte> memory() const noexcept { return buffer_; }
  std::uint64_t events() const noexcept { return events_; }
  // Writes the end mark and everything buffered. Errors: io, full (the tape is cut short, the run
  // is not harmed).
  [[nodiscard]] result<> finish();

 private:
  tape_writer(int fd, const tape_options& shape);
  void append(const void* bytes, std::size_t size);
  void write_out();
  void write_threads();
  tape_tag tag_of(std::uint64_t address) const noexcept;

  int fd_;
  tape_options options_;
  std::vector<std::byte> buffer_;
  std::uint64_t events_ = 0;
  std::uint64_t threads_ = 0;
  int failed_ = 0;  // errno of the first write that failed
  bool finished_ = false;
  std::atomic_flag busy_;
};

class tape_reader {
 public:
  // Errors: not_found, permission, not_a_pool (no tape), version, io.
  [[nodiscard]] static result<tape_reader> open(const std::string& path);
  // `tape` outlives the reader.
  [[nodiscard]] static result<tape_reader> from_memory(std::span<const std::byte> tape);
  tape_reader(tape_reader&& other) noexcept;
  tape_reader& operator=(tape_reader&&) = delete;
  ~tape_reader();

  const tape_header& header() const noexcept { return header_; }
  // The next event; nothing at the end. Errors: corrupt (with the event's number and place), io.
  [[nodiscard]] result<std::optional<tape_event>> next();
  // The quick way for events that carry no bytes, as they are on the tape: up to `max_records` that
  // follow now. 0: ask next().
  std::size_t next_batch(tape_record* into, std::size_t max_records) noexcept;

  // A place between two events, to come back to.
  struct position {
    std::uint64_t byte = 0, event = 0;
  };
  position tell() const noexcept { return {consumed_, number_}; }
  // Errors: io.
  [[nodiscard]] result<> seek(const position& p);

 private:
  explicit tape_reader(int fd) : fd_(fd) {}
  [[nodiscard]] result<bool> fill_window(
      std::size_t size);  // makes `size` bytes available; false at the end
  [[nodiscard]] result<> start(const std::string& name);

  int fd_ = -1;
  std::string name_;
  tape_header header_{};
  std::vector<std::byte> buffer_;
  std::span<const std::byte> window_;  // not yet consumed
  std::span<const std::byte> memory_;  // of a tape in memory
  std::uint64_t consumed_ = 0, number_ = 0;
  bool ended_ = false;
};

}  // namespace stele::media
