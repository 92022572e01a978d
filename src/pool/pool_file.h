// A pool file in memory: creates, locks, checks the header, maps. No logs, no heap, no
// transactions.
//
// Invariants: an open file is locked (open-file-description lock), has the size that its header
// says, and is backed by real space. A file is created without a name and linked at the end, so a
// pool exists completely or not at all. The content of a file is not trusted: offsets are checked
// before use.
#pragma once

#include <base/assert.h>
#include <base/forks.h>
#include <format/pool_layout.h>
#include <media/media.h>
#include <pool/file_name.h>
#include <stele/error.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stele::storage {

inline constexpr std::size_t max_pool_size = std::size_t{1} << 46;
inline constexpr std::size_t file_page = 4096;  // the parts of a pool's file begin at multiples
constexpr std::uint64_t round_up(std::uint64_t n, std::uint64_t unit) {
  return (n + unit - 1) / unit * unit;
}

struct pool_geometry {
  std::size_t size = 0;
  std::size_t log_size = 0;   // 0: chosen by pool size
  std::size_t log_count = 0;  // 0: chosen by pool size
  std::string layout;
  format::home_kind home = format::home_kind::in_place;
  std::uint32_t parity_block_size = 0;  // bytes of each parity block; 0: the pool has none
  // Commits from one checkpoint of home to the next; 0: no space for one. Only with parity blocks.
  std::uint64_t checkpoint_commits = 0;
  // Of the chunks, in bits; 0: chosen by pool size. Not for home_kind::log.
  std::uint32_t chunk_shift = 0;
  bool sums = false;  // block checksums of home (block_checksums.h). Not for home_kind::log
};

// The pid of the process that has locked the pool behind `fd`, 0 if it is not known; nullopt: none.
std::optional<std::uint64_t> lock_holder(int fd) noexcept;
// The number in the name of the socket that serves readers of that pool; 0: none, or unreadable.
std::uint64_t reader_socket_of(int fd) noexcept;

enum class map_kind : std::uint8_t {
  shared,  // loads and stores reach the file's pages
  // Home as `shared`. Header and logs are private memory, read at open, written only by the file
  // medium.
  private_log,
  // As `shared`, but home is mapped at another address, and accesses to its own addresses fault
  // (tests).
  relocated_home,
};

class pool_file {
 public:
  // A header for a pool of this geometry. Errors: invalid_argument for sizes that cannot hold a
  // pool.
  [[nodiscard]] static result<format::pool_header> make_header(const pool_geometry& s);

  // Makes zeroed memory of the header's size an empty pool. Writes the bytes before the logs.
  static void write_header(std::byte* zeroes, const format::pool_header& h) noexcept;

  // Errors: exists, not_found, permission, full, io, invalid_argument.
  [[nodiscard]] static result<> create(const std::string& path, const pool_geometry& s);

  // Locks, checks and maps the file, at `address` if it is not 0, with addresses for a pool of
  // `max_size` bytes if there are so many. Errors: not_found, permission, in_use, not_a_pool,
  // version, corrupt, io; unsupported if the address is not available.
  [[nodiscard]] static result<pool_file> open(const std::string& path, map_kind kind,
                                              std::uintptr_t address = 0, std::size_t max_size = 0);

  // A private copy in memory; changes to it never reach the file. Takes no lock. Errors: as open.
  [[nodiscard]] static result<pool_file> open_copy(const std::string& path);

  // For reading beside a process that has the pool open. Maps the file read-only, with addresses
  // for its growth: header().size is the end of these. Of home_kind::log only the header. Takes no
  // lock; `fd` stays the caller's. Errors: not_a_pool, version, corrupt, io.
  [[nodiscard]] static result<pool_file> map_for_reading(int fd, const std::string& path);

  // As open_copy, of a pool that may be damaged. A header that is not whole is taken from its copy.
  // Words of growth that are damaged count as none. What the file lacks of its size reads as zero.
  // `notes` gets a sentence for each of these. Errors: corrupt if no header is whole; as open.
  [[nodiscard]] static result<pool_file> open_damaged_copy(const std::string& path,
                                                           std::vector<std::string>& notes);

  // Uses memory that holds a pool image. Locks nothing; the caller keeps ownership of the memory.
  [[nodiscard]] static result<pool_file> adopt(std::byte* image, std::size_t size);

  // The header, including growth, of a pool that may be in use elsewhere. Only reads; takes no
  // lock.
  [[nodiscard]] static result<format::pool_header> peek(const std::string& path);

  // Makes room for a pool of `size` bytes, on the device and in memory; header() does not change.
  // Addresses stay valid. No transaction may run. Errors: full, io; unsupported if the addresses
  // after the pool are in use.
  [[nodiscard]] result<> extend(std::uint64_t size);
  // Makes header() describe the grown pool. extend() has made room before.
  void apply_growth(const format::growth& g) noexcept;
  // Makes header() of the present version. The header on media is.
  void apply_version() noexcept {
    STELE_ASSERT_ALWAYS(header_.version <= format::pool_version);  // heap.md: it is only raised
    header_.version = format::pool_version;
  }

  pool_file(pool_file&& other) noexcept;
  pool_file& operator=(pool_file&& other) noexcept;
  ~pool_file();

  const format::pool_header& header() const noexcept { return header_; }
  std::byte* base() const noexcept { return mapping_.base; }
  // The address that pool offsets are added to. home_kind::log: home is reserved addresses without
  // memory.
  std::byte* address() const noexcept {
    return home_reservation_ != nullptr ? home_reservation_ - header_.home_offset : mapping_.base;
  }
  // Where the byte at a pool offset is in memory (relocated_home: not at its own address).
  std::byte* at(std::uint64_t offset) const noexcept {
    STELE_ASSERT(offset <= reserved_bytes());
    return mapping_.base + offset + (offset >= header_.home_offset ? home_delta_ : 0);
  }
  // Addresses from base() on that are this pool's: mapped, room to grow, and some past its end.
  std::size_t reserved_bytes() const noexcept { return reserved_ + past_end_; }
  std::ptrdiff_t home_delta() const noexcept { return home_delta_; }
  const media::pool_mapping& mapping() const noexcept { return mapping_; }
  const std::string& path() const noexcept { return mapping_.path; }
  // Populates the pages of a range, so that first stores do not fault. A hint.
  void populate(std::uint64_t offset, std::size_t bytes) const noexcept;
  // Checks that the file is as long as the pool. Errors: corrupt; io.
  [[nodiscard]] result<> check_not_truncated() const;
  // Where the file is by now. Thread-safe, except beside unlock().
  file_place place() const noexcept {
    return gave_name_up_.load() ? file_place::in_place : name_.look(mapping_.fd);
  }
  // Removes the file's name: its memory goes with the process. The file is in place from now on.
  void remove_name() noexcept;
  // Whether the file is still the one of header(): another pool may have been copied over it.
  // Thread-safe, except beside unlock().
  bool holds_this_pool() const noexcept;
  // The error of reserving the file's space again, of which it may have lost some; 0: none.
  int space_error() const noexcept;
  // Writes the number by which readers of other processes find their socket. False: it cannot be
  // written.
  bool publish_reader_socket(std::uint64_t number) noexcept;
  // Releases the lock on the file; the mapping stays until the object's end.
  void unlock() noexcept;
  // Gives lock, file and mapping back; of a child of fork, its copies of the last two.
  void release() noexcept;
  // Whether this is a shared mapping of memory that survives power loss without a sync (MAP_SYNC
  // works).
  bool direct_access() const noexcept { return direct_access_; }

 private:
  pool_file() = default;
  [[nodiscard]] result<> map(map_kind kind, std::uintptr_t address, std::size_t max_size);
  [[nodiscard]] result<std::byte*> map_memory(std::uintptr_t address, std::size_t size,
                                              int protection, int flags, int fd) const;
  [[nodiscard]] result<> reserve_home_addresses(std::uintptr_t address = 0);
  [[nodiscard]] result<> write_owner();

  format::pool_header header_{};
  media::pool_mapping mapping_;
  std::ptrdiff_t home_delta_ = 0;
  std::byte* home_reservation_ = nullptr;
  std::size_t reserved_ = 0;  // addresses from base on, in which the pool may grow
  std::size_t past_end_ = 0;  // bytes that are mapped past the end of the file
  bool mapped_ = false;
  bool direct_access_ = false;
  file_name name_;
  std::atomic<bool> gave_name_up_ = false;
  // pids: the owner word while the file is held, and before.
  std::uint64_t owner_ = 0, previous_owner_ = 0;
  base::process_mark mark_;
  bool serves_readers_ = false;
};

// Locks a pool file that is open for writing, until the descriptor is closed. Waits a second at
// most where the lock is held and the process that the file names as its owner has ended: its lock
// goes with it, on some systems a moment later. Errors: in_use, io.
[[nodiscard]] result<> lock_pool_file(int fd, const std::string& path);

// A random id for a pool, not 0. Errors: io.
[[nodiscard]] result<std::uint64_t> generate_pool_id();

// Whether the path is on memory that keeps its content (DAX with MAP_SYNC).
bool is_direct_access(const std::string& path);

// The header in force. `front` is the first front_size bytes of the pool; `file_size` is the size
// of what holds it. Errors: not_a_pool, version, corrupt.
[[nodiscard]] result<format::pool_header> parse_header(const std::byte* front,
                                                       std::uint64_t file_size,
                                                       const std::string& path);

// Checks a header as written at creation. `copy_is_usable`: a damaged one can be repaired. Errors:
// as parse_header.
[[nodiscard]] result<> check_header(const format::pool_header& h, bool copy_is_usable,
                                    std::uint64_t file_size, const std::string& path);

// The header of a pool after this growth. Errors: corrupt if the growth is impossible.
[[nodiscard]] result<format::pool_header> grown_header(format::pool_header h,
                                                       const format::growth& g,
                                                       const std::string& path);
// The number of chunks that chunk table and block checksums of a grown pool take.
std::uint64_t table_chunk_count(const format::pool_header& h, std::uint64_t chunk_count) noexcept;

}  // namespace stele::storage
