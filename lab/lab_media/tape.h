// The tape: the stream of memory events of a run. It is written at full speed and read in bounded
// memory. Format: docs/format/tape.md.
//
// Order: an event is on the tape at the place where it took effect among the effects of all threads
// (the recording medium holds the tape's lock during both). Addresses are pool offsets.
#pragma once

#include <media/media.h>
#include <media/output_file.h>
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
  // Place of the commit lines in a log, from the log's beginning; size 0: there are none
  std::uint32_t commit_offset, commit_size;
  // One more than the largest thread number; 0: not known (the tape was cut off, or written to a
  // device)
  std::uint64_t threads;
};
static_assert(sizeof(tape_header) == 64);

// Addresses from here on are in volatile memory, which begins here.
inline constexpr std::uint64_t tape_volatile_at = std::uint64_t{1} << 40;

inline constexpr std::uint8_t tape_bytes_follow = 0x80;  // in the op byte
// In the tag byte of a load, on tapes of version 2
inline constexpr std::uint8_t tape_pointer_flag = 0x80;
// In the length of a begin: the transaction asks for durability::ordered
inline constexpr std::uint32_t tape_ordered_flag = 1;

struct tape_record {
  std::uint8_t op;
  std::uint8_t tag;  // a tape_tag, and tape_pointer_flag
  std::uint16_t thread;
  std::uint32_t length;
  std::uint64_t address;  // for a mark: its argument
};
static_assert(sizeof(tape_record) == 16);

struct tape_event {
  tape_op op = tape_op::end;
  tape_tag tag = tape_tag::none;
  unsigned thread = 0;
  std::uint32_t length = 0;
  std::uint64_t address = 0;
  std::span<const std::byte> bytes;  // valid until the next event is read
  // A load whose value determines addresses that the thread accesses later
  bool loads_pointer = false;
};

struct tape_options {
  std::uint64_t pool_size = 0, home_offset = 0, log_offset = 0, log_size = 0;
  std::uint32_t commit_offset = 0, commit_size = 0;
  bool record_bytes = true;
  bool record_loads = false;   // of transactions, from home
  bool mark_pointers = false;  // a tape of version 2: its writer marks the loads of pointers
};

class tape_writer {
 public:
  // The file has its name once finish() has succeeded; without that nothing is left of it.
  [[nodiscard]] static result<std::unique_ptr<tape_writer>> to_file(const std::string& path,
                                                                    const tape_options& shape);
  static std::unique_ptr<tape_writer> to_memory(const tape_options& shape);

  // Holds the tape's lock; events are appended while it exists.
  class scoped_lock {
   public:
    explicit scoped_lock(tape_writer& w) noexcept;
    ~scoped_lock();
    scoped_lock(const scoped_lock&) = delete;
    scoped_lock& operator=(const scoped_lock&) = delete;

   private:
    tape_writer& writer_;
  };

  // The caller holds a scoped_lock.
  void event(tape_op op, unsigned thread, std::uint64_t address, std::uint32_t length,
             const void* bytes = nullptr);
  // A load of a pointer; only on a tape that marks pointers. The caller holds a scoped_lock.
  void pointer_load(unsigned thread, std::uint64_t address, std::uint32_t length);
  // Records the pool's content at the tape's beginning, without pages of zeroes. The caller must
  // not hold a scoped_lock.
  void image(const std::byte* base, std::size_t size);

  // The content so far of a tape in memory.
  std::span<const std::byte> memory() const noexcept { return buffer_; }
  std::uint64_t events() const noexcept { return events_; }
  bool records_loads() const noexcept { return options_.record_loads; }
  // Writes the end mark and all buffered bytes. Errors: io, full (there is no tape; the run is not
  // harmed).
  [[nodiscard]] result<> finish();

 private:
  explicit tape_writer(const tape_options& shape);
  void append(const void* bytes, std::size_t size);
  void count_event(unsigned thread);
  void write_out();
  void write_threads();
  tape_tag tag_of(std::uint64_t address) const noexcept;

  output_file file_;  // none: the tape is in memory
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
  // The next event; nothing at the end. Errors: corrupt (with number and place of the event), io.
  [[nodiscard]] result<std::optional<tape_event>> next();
  // A faster next() for events that carry no bytes: copies up to `max_records` of the records that
  // follow. 0: call next().
  std::size_t next_batch(tape_record* into, std::size_t max_records) noexcept;

  // A place between two events, for a later seek().
  struct position {
    std::uint64_t byte = 0, event = 0;
  };
  position tell() const noexcept { return {consumed_, number_}; }
  // Errors: io.
  [[nodiscard]] result<> seek(const position& p);

 private:
  explicit tape_reader(int fd) : fd_(fd) {}
  // Makes `size` bytes available; false at the end
  [[nodiscard]] result<bool> fill_window(std::size_t size);
  [[nodiscard]] result<> start(const std::string& name);

  int fd_ = -1;
  std::string name_;
  tape_header header_{};
  std::vector<std::byte> buffer_;
  std::span<const std::byte> window_;  // not yet consumed
  std::span<const std::byte> memory_;  // the tape in memory
  std::uint64_t consumed_ = 0, number_ = 0;
  bool ended_ = false;
};

}  // namespace stele::media
