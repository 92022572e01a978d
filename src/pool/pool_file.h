// A pool file in memory: creating, locking, checking the header, mapping. No logs, no heap, no
// transactions.
//
// Invariants: a file that is open here is locked (open-file-description lock), of the size its
// header says, and backed by real space. Creation happens without a name and ends with a link, so a
// pool exists whole or not at all. What the file says is not trusted: offsets are checked before
// use.
#pragma once

#include <format/pool_layout.h>
#include <media/media.h>
#include <stele/error.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace stele::storage {

inline constexpr std::size_t max_pool_size = std::size_t{1} << 46;

struct pool_geometry {
  std::size_t size = 0;
  std::size_t log_size = 0;   // 0: by size
  std::size_t log_count = 0;  // 0: by size
  std::string layout;
  format::home_kind home = format::home_kind::in_place;
  std::uint32_t parity_block_size = 0;   // of checksums over home; 0: the pool has none
  std::uint64_t checkpoint_commits = 0;  // from one checkpoint of home to the next; 0: the pool has
                                         // no room for one. Only with checksums
  bool sums = false;  // of home's blocks (block_checksums.h). Not for home_kind::log
};

enum class map_kind : std::uint8_t {
  shared,          // loads and stores reach the file's pages
  private_log,     // home as shared; header and logs in private memory, read at open and written by
                   // the file medium only
  relocated_home,  // as shared, but home is mapped at another address and its own addresses fault
                   // (tests)
};

class pool_file {
 public:
  // A header for a pool of this shape. Errors: invalid_argument for sizes that cannot hold a pool.
  [[nodiscard]] static result<format::pool_header> make_header(const pool_geometry& s);

  // Makes zeroed memory of the header's size an empty pool; the first header_area_size bytes are
  // written.
  static void write_header(std::byte* zeroes, const format::pool_header& h) noexcept;

  // Errors: exists, not_found, permission, full, io, invalid_argument.
  [[nodiscard]] static result<> create(const std::string& path, const pool_geometry& s);

  // Locks, checks and maps, at `address` when it is not 0. Errors: not_found, permission, in_use,
  // not_a_pool, version, corrupt, io; unsupported when the address cannot be had.
  [[nodiscard]] static result<pool_file> open(const std::string& path, map_kind kind,
                                              std::uintptr_t address = 0);

  // A private copy in memory: changes to it never reach the file. Takes no lock. Errors: as open.
  [[nodiscard]] static result<pool_file> open_copy(const std::string& path);

  // Over memory that holds a pool image; nothing is locked, and the memory stays the caller's.
  [[nodiscard]] static result<pool_file> adopt(std::byte* image, std::size_t size);

  // The header of a pool that may be in use elsewhere, as growth has left it; reads, locks nothing.
  [[nodiscard]] static result<format::pool_header> peek(const std::string& path);

  // Puts the copy of the header in place of a damaged one. True: that was needed. Errors: corrupt,
  // when the copy is no better; in_use; io.
  [[nodiscard]] static result<bool> repair_header(const std::string& path);

  // Room for a pool of `size` bytes, on the device and in memory; what header() says stays.
  // Addresses stay. No transaction may run. Errors: full, io; unsupported when the addresses after
  // the pool are taken.
  [[nodiscard]] result<> extend(std::uint64_t size);
  // From here on header() speaks of the grown pool. extend() has made room.
  void apply_growth(const format::growth& g) noexcept;

  pool_file(pool_file&& other) noexcept;
  pool_file& operator=(pool_file&& other) noexcept;
  ~pool_file();

  const format::pool_header& header() const noexcept { return header_; }
  std::byte* base() const noexcept { return mapping_.base; }
  // What an address in the pool counts from. home_kind::log: its home is reserved addresses with
  // nothing behind them.
  std::byte* address() const noexcept {
    return home_reservation_ != nullptr ? home_reservation_ - header_.home_offset : mapping_.base;
  }
  // Where the byte at a pool offset is kept (elsewhere: not where its address is).
  std::byte* at(std::uint64_t offset) const noexcept {
    return mapping_.base + offset + (offset >= header_.home_offset ? home_delta_ : 0);
  }
  // From base() on: those that the pool is mapped at, and may grow into.
  std::size_t reserved_bytes() const noexcept { return reserved_; }
  std::ptrdiff_t home_delta() const noexcept { return home_delta_; }
  const media::pool_mapping& mapping() const noexcept { return mapping_; }
  const std::string& path() const noexcept { return mapping_.path; }
  // Has the pages of a range at hand, so that the first store to each does not stop. A hint.
  void populate(std::uint64_t offset, std::size_t bytes) const noexcept;
  // The file is as long as the pool. Errors: corrupt; io.
  [[nodiscard]] result<> check_not_truncated() const;
  // Gives the file up to others; the mapping stays until the end.
  void unlock() noexcept;
  // A shared mapping of memory that survives power loss without a sync (MAP_SYNC holds)?
  bool direct_access() const noexcept { return direct_access_; }

 private:
  pool_file() = default;
  [[nodiscard]] result<> map(map_kind kind, std::uintptr_t address);
  [[nodiscard]] result<std::byte*> map_memory(std::uintptr_t address, std::size_t size,
                                              int protection, int flags, int fd) const;
  [[nodiscard]] result<> reserve_home_addresses(std::uintptr_t address = 0);
  [[nodiscard]] result<> write_owner();
  void release() noexcept;

  format::pool_header header_{};
  media::pool_mapping mapping_;
  std::ptrdiff_t home_delta_ = 0;
  std::byte* home_reservation_ = nullptr;
  std::size_t reserved_ = 0;  // addresses from base on that are the pool's to grow into
  bool mapped_ = false;
  bool direct_access_ = false;
  std::uint64_t owner_ = 0,
                previous_owner_ = 0;  // pids: the owner word while the file is held, and before
};

// An id for a pool: random, not 0. Errors: io.
[[nodiscard]] result<std::uint64_t> generate_pool_id();

// Does memory that keeps its content lie behind a path (DAX with MAP_SYNC)?
bool is_direct_access(const std::string& path);

// The header in force, checked against the size of what holds the pool, of which `front` are the
// first header_area_size bytes. Errors: not_a_pool, version, corrupt.
[[nodiscard]] result<format::pool_header> parse_header(const std::byte* front,
                                                       std::uint64_t file_size,
                                                       const std::string& path);

// What a pool is that has grown as told. Errors: corrupt, when it cannot have.
[[nodiscard]] result<format::pool_header> grown_header(format::pool_header h,
                                                       const format::growth& g,
                                                       const std::string& path);
// The chunks that the table and sums of a grown pool take.
std::uint64_t table_chunk_count(const format::pool_header& h, std::uint64_t chunk_count) noexcept;

}  // namespace stele::storage
