// Creates, locks and maps pool files.
#include <base/assert.h>
#include <base/check.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <media/os.h>
#include <pool/header_version.h>
#include <pool/new_file.h>
#include <pool/pool_file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace stele::storage {

using base::fail;
using base::fail_errno;
using format::pool_header;
namespace os = media::os;

namespace {

// Writes what earlier users of the file left unwritten. A write error of theirs that was never
// reported is reported here, once, and all cached pages are dropped, since the device may lack
// them. The pages of header and logs are always dropped: recovery then reads what a power failure
// would leave.
result<> sync_previous_writes(int fd, std::uint64_t home_offset, const std::string& path) {
  const bool written = os::sync_data(fd) == 0;
  const int number = errno;
  (void)::posix_fadvise(fd, 0, written ? static_cast<off_t>(home_offset) : 0,
                        POSIX_FADV_DONTNEED);  // length 0: the whole file
  if (written) return {};
  return fail_errno(
      errc::io,
      fmt::format("the device did not take what was written to {} before it was opened; see what "
                  "the kernel's log "
                  "says of the device, then open it again: recovery decides from what reached it",
                  path),
      number);
}

result<pool_header> read_header(int fd, const std::string& path) {
  struct stat status = {};
  if (os::fstat(fd, status) != 0) return path_error("examine", path);
  if (!S_ISREG(status.st_mode))
    return fail(errc::not_a_pool,
                fmt::format("{} is not an ordinary file, so it is no pool", path));
  std::array<std::byte, format::front_size> front{};
  const auto length = static_cast<std::size_t>(status.st_size);
  if (length < sizeof(pool_header))
    return fail(errc::not_a_pool,
                fmt::format("{} is {} bytes long, too short for a pool; if it was one, it has been "
                            "truncated: restore it from a copy",
                            path, status.st_size));
  if (!os::read_all(fd, front.data(), std::min(length, front.size()), 0))
    return path_error("read", path);
  // Another process may have grown the pool before the header was read: the file was longer first.
  if (os::fstat(fd, status) != 0) return path_error("examine", path);
  return parse_header(front.data(), static_cast<std::uint64_t>(status.st_size), path);
}

// Addresses for a pool that may grow; they cost nothing until they are mapped.
constexpr std::size_t usual_max_size = std::size_t{1} << 40;

// Bytes that are mapped past the end of the file: an object to which a damaged pointer leads may
// reach past it, and touching that raises SIGBUS, which media/sigbus_guard.h makes an error. Not of
// a pool with plain pointers: another one may lie right behind it.
constexpr std::size_t mapped_past_end = std::size_t{64} << 10;

constexpr std::size_t growth_reservation(std::size_t size) {
  return std::clamp<std::size_t>(size * 64, std::size_t{1} << 30,
                                 std::max<std::size_t>(usual_max_size, size * 2));
}
static_assert(growth_reservation(file_page) >= std::size_t{1} << 30 &&
              growth_reservation(max_pool_size) >= max_pool_size);

// Writes everything but the name: header, session word, zeroes. Logs that commits write
// synchronously are written once now: the first write to space that is only reserved changes the
// file's metadata.
result<> write_initial_content(new_file& file, const pool_header& h) {
  const std::size_t logs = h.home == format::home_kind::in_place ? h.log_count * h.log_size : 0;
  STELE_ASSERT_ALWAYS(h.log_offset + logs <= h.home_offset);
  std::vector<std::byte> zeroes(
      std::clamp<std::size_t>(logs, format::front_size, std::size_t{1} << 20));
  for (std::size_t at = 0; at < logs; at += zeroes.size())
    if (auto written = file.write(std::span(zeroes).first(std::min(zeroes.size(), logs - at)),
                                  h.log_offset + at);
        !written)
      return written;
  STELE_ASSERT_ALWAYS(h.log_offset <= zeroes.size());
  pool_file::write_header(zeroes.data(), h);
  return file.write(std::span(zeroes).first(h.log_offset), 0);
}

bool supports_map_sync(int fd) {
  void* const sync = ::mmap(nullptr, file_page, PROT_READ, MAP_SHARED_VALIDATE | MAP_SYNC, fd, 0);
  if (sync == MAP_FAILED) return false;
  ::munmap(sync, file_page);
  return true;
}

}  // namespace

bool is_direct_access(const std::string& path) {
  descriptor file(open_named(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  return file.fd >= 0 && supports_map_sync(file.fd);
}

result<> pool_file::create(const std::string& path, const pool_geometry& s) {
  auto h = make_header(s);
  if (!h) return std::unexpected(h.error());
  STELE_ASSERT_ALWAYS(h->version == format::pool_version && h->size <= s.size);
  auto file = new_file::make(path, h->size);
  if (!file) return std::unexpected(file.error());
  if (auto space = file->reserve(h->size); !space) return space;
  if (auto fresh = write_initial_content(*file, *h); !fresh) return fresh;
  return file->publish();
}

result<pool_header> pool_file::peek(const std::string& path) {
  descriptor file(open_named(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.fd < 0) return path_error("open", path);
  return read_header(file.fd, path);
}

result<pool_file> pool_file::open(const std::string& path, map_kind kind, std::uintptr_t address,
                                  std::size_t max_size) {
  descriptor file(open_named(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (file.fd < 0) {
    if (errno == ELOOP)
      return fail(errc::permission,
                  fmt::format("{} is a symbolic link; name the pool file itself", path));
    if (errno == EISDIR)
      return fail(errc::not_a_pool, fmt::format("{} is a directory, not a pool", path));
    if (errno == EACCES || errno == EROFS) {
      const int number = errno;
      const char* const advice = number == EROFS ? "remount its file system for writing"
                                                 : "give this user the right to write it";
      return fail_errno(
          errc_from_errno(number),
          fmt::format(
              "cannot open {} for writing (a pool is recovered and marked when opened): {}, or "
              "look at it with `stele pool info`, `check` or `dump`, which only read",
              path, advice),
          number);
    }
    return path_error("open", path);
  }
  auto header = read_header(file.fd, path);
  if (!header) return std::unexpected(header.error());
  if (auto locked = lock_pool_file(file.fd, path); !locked) return std::unexpected(locked.error());
  if (kind == map_kind::private_log)
    if (auto synced = sync_previous_writes(file.fd, header->home_offset, path); !synced)
      return std::unexpected(synced.error());
  header = read_header(file.fd, path);  // read again now that the file is locked
  if (!header) return std::unexpected(header.error());
  if (auto space = allocate_space(file.fd, header->size, path); !space)
    return std::unexpected(space.error());
  pool_file opened;
  opened.header_ = *header;
  opened.mapping_ = {nullptr, header->size, header->home_offset, -1, path};
  opened.name_ = file_name(file.fd, path);
  // Last: a descriptor that is locked must not be lost if copying the path throws.
  opened.mapping_.fd = file.release();
  if (auto mapped = opened.map(kind, address, max_size); !mapped)
    return std::unexpected(mapped.error());
  if (auto owner_written = opened.write_owner(); !owner_written)
    return std::unexpected(owner_written.error());
  return opened;
}

result<pool_file> pool_file::map_for_reading(int fd, const std::string& path) {
  auto header = read_header(fd, path);
  if (!header) return std::unexpected(header.error());
  pool_file opened;
  opened.header_ = *header;
  opened.mapping_ = {nullptr, header->size, header->home_offset, -1, path};
  if (header->home == format::home_kind::log) return opened;
  // The process that has the pool open may have reserved more than the pool's size tells, and the
  // addresses cannot become more later.
  const std::size_t least = growth_reservation(header->size);
  std::size_t room = std::max(least, usual_max_size);
  void* at = os::map(nullptr, room, PROT_READ, MAP_SHARED | MAP_NORESERVE, fd);
  if (at == MAP_FAILED)
    at = os::map(nullptr, room = least, PROT_READ, MAP_SHARED | MAP_NORESERVE, fd);
  if (at == MAP_FAILED) return path_error("map", path);
  STELE_ASSERT_ALWAYS(room >= header->size);
  opened.mapping_.base = static_cast<std::byte*>(at);
  opened.mapping_.size = opened.header_.size = opened.reserved_ = room;
  opened.mapped_ = true;
  return opened;
}

void pool_file::populate(std::uint64_t offset, std::size_t bytes) const noexcept {
  if (mapping_.fd < 0) return;
  STELE_ASSERT(offset + bytes >= offset);
  const std::uint64_t from = offset / file_page * file_page,
                      to = std::min<std::uint64_t>(round_up(offset + bytes, file_page),
                                                   mapping_.size);
  if (from < to) ::madvise(mapping_.base + from, to - from, MADV_POPULATE_WRITE);
}

result<> pool_file::check_not_truncated() const {
  if (mapping_.fd < 0) return {};
  // Before the file's: another thread may grow the pool, and lengthens the file first.
  const std::uint64_t size = __atomic_load_n(&header_.size, __ATOMIC_ACQUIRE);
  STELE_ASSERT_ALWAYS(size <= reserved_);  // it has grown only within its addresses
  struct stat status = {};
  if (os::fstat(mapping_.fd, status) != 0) return path_error("examine", mapping_.path);
  if (static_cast<std::uint64_t>(status.st_size) >= size) return {};
  return fail(
      errc::corrupt,
      fmt::format(
          "{} has been truncated while it was open: it has {} of its {} bytes, and what was "
          "in the others is lost; restore it from a copy",
          mapping_.path, status.st_size, size));
}

bool pool_file::holds_this_pool() const noexcept {
  std::uint64_t id = 0;
  return mapping_.fd < 0 ||
         ::pread(mapping_.fd, &id, sizeof id, offsetof(pool_header, id)) != ssize_t{sizeof id} ||
         id == header_.id;
}

int pool_file::space_error() const noexcept {
  const auto bytes = static_cast<off_t>(header_.size);
  if (mapping_.fd < 0 || ::fallocate(mapping_.fd, FALLOC_FL_KEEP_SIZE, 0, bytes) == 0) return 0;
  return errno == EOPNOTSUPP ? 0 : errno;
}

void pool_file::unlock() noexcept {
  if (mapping_.fd < 0) return;
  STELE_ASSERT_ALWAYS(owner_ != 0 || !serves_readers_);
  // A child of fork shares the lock but must not release it.
  if (owner_ != 0 && !mark_.is_of_parent()) {
    if (const std::uint64_t none = 0; serves_readers_)
      (void)os::write_all(mapping_.fd, &none, sizeof none, format::reader_socket_offset);
    (void)os::write_all(mapping_.fd, &previous_owner_, sizeof previous_owner_,
                        format::owner_offset);
    struct flock whole = {};
    whole.l_type = F_UNLCK;
    whole.l_whence = SEEK_SET;
    (void)os::lock(mapping_.fd, F_OFD_SETLK, whole);  // else the mapping would keep the lock
  }
  ::close(mapping_.fd);
  mapping_.fd = -1;
}

result<pool_file> pool_file::open_copy(const std::string& path) {
  descriptor file(open_named(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.fd < 0) return path_error("open", path);
  auto header = read_header(file.fd, path);
  if (!header) return std::unexpected(header.error());
  pool_file opened;
  opened.header_ = *header;
  opened.mapping_ = {nullptr, header->size, header->home_offset, -1, path};
  void* const copy =
      os::map(nullptr, header->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, file.fd);
  if (copy == MAP_FAILED) return path_error("map", path);
  opened.mapping_.base = static_cast<std::byte*>(copy);
  opened.reserved_ = header->size;
  opened.mapped_ = true;
  if (auto reserved = opened.reserve_home_addresses(); !reserved)
    return std::unexpected(reserved.error());
  return opened;
}

// The growth of a pool whose words about it may be damaged: that of the slot in force, or, if it is
// not known which that is, the longer one that fits the file.
static format::growth find_growth(const std::byte* front, const pool_header& h, std::uint64_t bytes,
                                  std::vector<std::string>& notes) {
  const auto growth = format::read_growth(front, h.id);
  if (growth && (growth->chunk_count == 0 || grown_header(h, *growth, ""))) return *growth;
  notes.emplace_back("the words that say how it has grown are damaged");
  format::growth longest;
  for (const std::uint64_t slot : {1, 2}) {
    const std::uint64_t at = format::growth_slot_offset(slot);
    const auto count = format::read_control_word(front, h.id, at),
               table = format::read_control_word(front, h.id, at + 8);
    if (!count || !table || *count <= longest.chunk_count) continue;
    const auto grown = grown_header(h, {*count, *table}, "");
    if (grown && grown->size <= bytes) longest = {*count, *table};
  }
  return longest;
}

result<pool_file> pool_file::open_damaged_copy(const std::string& path,
                                               std::vector<std::string>& notes) {
  descriptor file(open_named(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.fd < 0) return path_error("open", path);
  struct stat status = {};
  if (os::fstat(file.fd, status) != 0) return path_error("examine", path);
  const auto bytes = static_cast<std::uint64_t>(status.st_size);
  std::array<std::byte, format::front_size> front{};
  if (!S_ISREG(status.st_mode))
    return fail(errc::not_a_pool,
                fmt::format("{} is not an ordinary file, so it is no pool", path));
  if (!os::read_all(file.fd, front.data(), std::min<std::uint64_t>(bytes, front.size()), 0))
    return path_error("read", path);
  pool_header h = read_header(front.data());
  const auto copy = find_header_copy(front.data());
  if (!is_whole(h) && copy) {
    notes.emplace_back("its header is damaged; the copy of it was used");
    h = *copy;
  }
  if (auto sane = check_header(h, false, h.size, path); !sane) return std::unexpected(sane.error());
  pool_file opened;
  opened.header_ = h;
  if (const auto growth = find_growth(front.data(), h, bytes, notes); growth.chunk_count != 0) {
    const auto grown = grown_header(h, growth, path);
    STELE_ASSERT_ALWAYS(grown.has_value());  // find_growth returns none that is impossible
    opened.header_ = *grown;
  }
  const std::uint64_t size = opened.header_.size, there = std::min(size, bytes);
  if (there < size)
    notes.push_back(fmt::format("it has been truncated to {} of its {} bytes", bytes, size));
  STELE_ASSERT_ALWAYS(there >= sizeof h && opened.header_.home_offset == h.home_offset);
  opened.mapping_ = {nullptr, size, h.home_offset, -1, path};
  void* const memory = os::map(nullptr, size, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
  if (memory == MAP_FAILED) return path_error("map", path);
  opened.mapping_.base = static_cast<std::byte*>(memory);
  opened.reserved_ = size;
  opened.mapped_ = true;
  if (os::map(memory, there, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE | MAP_FIXED,
              file.fd) == MAP_FAILED)
    return path_error("map", path);
  if (auto reserved = opened.reserve_home_addresses(); !reserved)
    return std::unexpected(reserved.error());
  return opened;
}

result<pool_file> pool_file::adopt(std::byte* image, std::size_t size) {
  // Control words are loaded as words.
  STELE_ASSERT_ALWAYS(reinterpret_cast<std::uintptr_t>(image) % sizeof(std::uint64_t) == 0);
  pool_file opened;
  if (size < format::front_size) return fail(errc::not_a_pool, "the image is too short for a pool");
  const auto header = parse_header(image, size, "image");
  if (!header) return std::unexpected(header.error());
  STELE_ASSERT_ALWAYS(header->size <= size);
  opened.header_ = *header;
  opened.reserved_ = size;
  opened.mapping_ = {image, opened.header_.size, opened.header_.home_offset, -1, "image"};
  if (auto reserved = opened.reserve_home_addresses(); !reserved)
    return std::unexpected(reserved.error());
  return opened;
}

// Maps memory at `address`, or anywhere if it is 0; never replaces an existing mapping.
result<std::byte*> pool_file::map_memory(std::uintptr_t address, std::size_t size, int protection,
                                         int flags, int fd) const {
  STELE_ASSERT_ALWAYS(size != 0 && (flags & MAP_FIXED) == 0);
  void* const memory = os::map(reinterpret_cast<void*>(address), size, protection,
                               flags | (address != 0 ? MAP_FIXED_NOREPLACE : 0), fd);
  if (address != 0 && reinterpret_cast<std::uintptr_t>(memory) != address) {
    if (memory != MAP_FAILED)
      ::munmap(memory, size);  // a kernel before 4.17 takes the address as a hint
    return fail(errc::unsupported,
                fmt::format("{} holds plain pointers, so it has to be mapped at {:#x} ({} bytes), "
                            "where this process has something "
                            "else or no address space; open it before what lies there",
                            mapping_.path, address, size));
  }
  if (memory == MAP_FAILED) return path_error("map", mapping_.path);
  return static_cast<std::byte*>(memory);
}

// Reserves addresses without memory: an access that bypasses the home map faults.
result<> pool_file::reserve_home_addresses(std::uintptr_t address) {
  if (header_.home != format::home_kind::log) return {};
  STELE_ASSERT_ALWAYS(home_reservation_ == nullptr && header_.home_size != 0);
  const auto addresses =
      map_memory(address != 0 ? address + header_.home_offset : 0, header_.home_size, PROT_NONE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
  if (!addresses) return std::unexpected(addresses.error());
  home_reservation_ = *addresses;
  // Plain pointers lead to these addresses.
  STELE_ASSERT_ALWAYS(address == 0 || home_reservation_ - header_.home_offset ==
                                          reinterpret_cast<std::byte*>(address));
  return {};
}

result<> pool_file::extend(std::uint64_t size) {
  STELE_ASSERT_ALWAYS(size % file_page == 0 && mapping_.size == header_.size);
  if (size > reserved_)
    return fail(errc::unsupported,
                fmt::format("{} cannot grow to {} bytes while it is open: the addresses after it "
                            "are taken; close it and use `stele pool resize`",
                            mapping_.path, size));
  if (mapping_.fd < 0 || size <= mapping_.size) return {};
  if (auto space = allocate_space(mapping_.fd, size, mapping_.path); !space) return space;
  const std::size_t from = mapping_.size / file_page * file_page;
  if (os::map(mapping_.base + from, size - from + past_end_, PROT_READ | PROT_WRITE,
              MAP_SHARED | MAP_FIXED, mapping_.fd, from) == MAP_FAILED)
    return path_error("map", mapping_.path);
  return {};
}

void pool_file::apply_growth(const format::growth& g) noexcept {
  const auto grown = grown_header(header_, g, mapping_.path);
  base::check(grown.has_value(), "a pool grows as its header does not allow");
  // grow.md: the file has the new size, the new table lies behind the former chunks, and what lies
  // before stays where it is.
  STELE_ASSERT_ALWAYS(grown->size > header_.size && grown->size <= reserved_);
  STELE_ASSERT_ALWAYS(grown->table_offset >= header_.chunks_end());
  STELE_ASSERT_ALWAYS(grown->home_offset == header_.home_offset &&
                      grown->chunks_offset == header_.chunks_offset);
  // Nothing else changes: other threads may read it meanwhile.
  header_.chunk_count = grown->chunk_count;
  header_.table_offset = grown->table_offset;
  header_.block_checksums_offset = grown->block_checksums_offset;
  mapping_.size = header_.size = grown->size;
  STELE_ASSERT_ALWAYS(mapping_.home_offset == header_.home_offset);
}

result<> pool_file::map(map_kind kind, std::uintptr_t address, std::size_t max_size) {
  const bool in_place = header_.home == format::home_kind::in_place;
  STELE_ASSERT_ALWAYS(!mapped_ && mapping_.fd >= 0 && mapping_.size == header_.size);
  STELE_ASSERT_ALWAYS(header_.home_offset % file_page == 0);
  std::size_t room = mapping_.size;
  if (in_place && kind != map_kind::relocated_home) {
    room = std::max(address == 0 ? growth_reservation(room) : room, max_size);
    if (address == 0) past_end_ = mapped_past_end;
  }
  auto whole = map_memory(in_place ? address : 0, room + past_end_, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
  if (!whole && room != mapping_.size)
    whole = map_memory(address, (room = mapping_.size) + past_end_, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
  if (!whole) return std::unexpected(whole.error());
  // Plain pointers lead to the address asked for; elsewhere the pool would be damaged by its use.
  STELE_ASSERT_ALWAYS(!in_place || address == 0 ||
                      reinterpret_cast<std::uintptr_t>(*whole) == address);
  STELE_ASSERT_ALWAYS(room >= mapping_.size);
  mapping_.base = *whole;
  reserved_ = room;
  mapped_ = true;
  if (os::map(*whole, mapping_.size + past_end_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
              mapping_.fd) == MAP_FAILED)
    return path_error("map", mapping_.path);
  direct_access_ = supports_map_sync(mapping_.fd);
  if (auto reserved = reserve_home_addresses(address); !reserved) return reserved;
  const std::size_t home = header_.home_offset;
  if (kind == map_kind::private_log) {
    if (os::map(*whole, home, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
                -1) == MAP_FAILED)
      return path_error("map", mapping_.path);
    if (!os::read_all(mapping_.fd, mapping_.base, home, 0))
      return path_error("read", mapping_.path);
  } else if (kind == map_kind::relocated_home && header_.home == format::home_kind::in_place) {
    void* const home_at = os::map(nullptr, mapping_.size - home, PROT_READ | PROT_WRITE, MAP_SHARED,
                                  mapping_.fd, home);
    if (home_at == MAP_FAILED || os::map(mapping_.base + home, mapping_.size - home, PROT_NONE,
                                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1) == MAP_FAILED)
      return path_error("map", mapping_.path);
    home_delta_ = static_cast<std::byte*>(home_at) - (mapping_.base + home);
  }
  return {};
}

pool_file::pool_file(pool_file&& other) noexcept {
  *this = std::move(other);
}

pool_file& pool_file::operator=(pool_file&& other) noexcept {
  if (this != &other) {
    release();
    header_ = other.header_;
    mapping_ = std::exchange(other.mapping_, {});
    name_ = std::move(other.name_);
    gave_name_up_.store(other.gave_name_up_.load());
    home_delta_ = std::exchange(other.home_delta_, 0);
    home_reservation_ = std::exchange(other.home_reservation_, nullptr);
    reserved_ = other.reserved_;
    past_end_ = other.past_end_;
    mapped_ = std::exchange(other.mapped_, false);
    direct_access_ = other.direct_access_;
    owner_ = std::exchange(other.owner_, 0);
    previous_owner_ = other.previous_owner_;
    serves_readers_ = other.serves_readers_;
  }
  return *this;
}

pool_file::~pool_file() {
  release();
}

void pool_file::remove_name() noexcept {
  gave_name_up_.store(true);
  ::unlink(path().c_str());
}

void pool_file::release() noexcept {
  unlock();
  STELE_ASSERT_ALWAYS(!mapped_ || (mapping_.base != nullptr && reserved_ >= mapping_.size));
  if (mapped_) {
    if (home_delta_ != 0)
      ::munmap(mapping_.base + header_.home_offset + home_delta_,
               mapping_.size - header_.home_offset);
    ::munmap(mapping_.base, reserved_ + past_end_);
  }
  mapped_ = false;
  if (home_reservation_ != nullptr)
    ::munmap(std::exchange(home_reservation_, nullptr), header_.home_size);
}

}  // namespace stele::storage
