// Writing and reading tapes.
#include <base/check.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <lab_media/tape.h>
#include <media/cpu.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace stele::media {

using base::fail;
using base::fail_errno;

namespace {

constexpr std::size_t buffer_size = std::size_t{1} << 20;
constexpr std::uint32_t plain_version = 1, pointer_version = 2;
constexpr std::size_t max_payload = std::size_t{1} << 16;

// Whether an event of a run may have this range. It is no longer than the pool, so that a reader's
// time and memory are bounded. It may lie beyond the pool's first size, since a pool may grow.
bool is_valid_range(const tape_header& h, const tape_record& r) noexcept {
  const auto op = static_cast<tape_op>(r.op & ~tape_bytes_follow);
  if (op != tape_op::load && op != tape_op::store && op != tape_op::stream &&
      op != tape_op::flush && op != tape_op::bulk && op != tape_op::image)
    return true;
  return r.length <= std::max<std::uint64_t>(h.pool_size, max_payload) &&
         r.address <= ~std::uint64_t{0} - r.length;
}

constexpr std::size_t padded(std::size_t n) noexcept {
  return (n + 7) / 8 * 8;
}

}  // namespace

const char* name_of(tape_op op) noexcept {
  constexpr const char* names[] = {"?",       "load",     "store",   "stream", "flush",
                                   "fence",   "bulk",     "begin",   "commit", "abort",
                                   "invoked", "returned", "compute", "image",  "end"};
  return static_cast<std::size_t>(op) < std::size(names) ? names[static_cast<std::size_t>(op)]
                                                         : "?";
}

const char* name_of(tape_tag tag) noexcept {
  constexpr const char* names[] = {"-", "data", "log", "commit", "meta", "volatile"};
  return static_cast<std::size_t>(tag) < std::size(names) ? names[static_cast<std::size_t>(tag)]
                                                          : "?";
}

tape_writer::tape_writer(const tape_options& shape) : options_(shape) {
  buffer_.reserve(buffer_size + max_payload);
  tape_header h{{'S', 'T', 'E', 'L', 'E', 'T', 'A', 'P'},
                shape.mark_pointers ? pointer_version : plain_version,
                shape.record_bytes ? 1u : 0u,
                shape.pool_size,
                shape.home_offset,
                shape.log_offset,
                shape.log_size,
                shape.commit_offset,
                shape.commit_size,
                0};
  append(&h, sizeof h);
}

result<std::unique_ptr<tape_writer>> tape_writer::to_file(const std::string& path,
                                                          const tape_options& shape) {
  std::unique_ptr<tape_writer> tape(new tape_writer(shape));
  if (const int number = tape->file_.open(path, 0600); number != 0)
    return fail_errno(number == ENOENT ? errc::not_found : errc::permission,
                      fmt::format("cannot write the tape {}", path), number);
  return tape;
}

std::unique_ptr<tape_writer> tape_writer::to_memory(const tape_options& shape) {
  return std::unique_ptr<tape_writer>(new tape_writer(shape));
}

tape_writer::scoped_lock::scoped_lock(tape_writer& w) noexcept : writer_(w) {
  while (writer_.busy_.test_and_set(std::memory_order_acquire)) cpu::relax();
}
tape_writer::scoped_lock::~scoped_lock() {
  writer_.busy_.clear(std::memory_order_release);
}

tape_tag tape_writer::tag_of(std::uint64_t address) const noexcept {
  if (address >= tape_volatile_at) return tape_tag::volatile_memory;
  if (address >= options_.home_offset) return tape_tag::data;
  if (address < options_.log_offset || options_.log_size == 0) return tape_tag::metadata;
  const std::uint64_t in_log = (address - options_.log_offset) % options_.log_size;
  if (in_log < line_size) return tape_tag::metadata;
  return in_log - options_.commit_offset < options_.commit_size ? tape_tag::commit_record
                                                                : tape_tag::log_record;
}

void tape_writer::event(tape_op op, unsigned thread, std::uint64_t address, std::uint32_t length,
                        const void* bytes) {
  const bool memory_op = op <= tape_op::flush || op == tape_op::bulk || op == tape_op::image;
  const bool follow = bytes != nullptr && (options_.record_bytes || op == tape_op::image);
  const tape_record r{
      static_cast<std::uint8_t>(static_cast<std::uint8_t>(op) | (follow ? tape_bytes_follow : 0)),
      static_cast<std::uint8_t>(memory_op ? tag_of(address) : tape_tag::none),
      static_cast<std::uint16_t>(thread), length, address};
  append(&r, sizeof r);
  if (follow) {
    append(bytes, length);
    constexpr std::uint64_t zero = 0;
    append(&zero, padded(length) - length);
  }
  count_event(thread);
}

void tape_writer::pointer_load(unsigned thread, std::uint64_t address, std::uint32_t length) {
  const tape_record r{
      static_cast<std::uint8_t>(tape_op::load),
      static_cast<std::uint8_t>(static_cast<std::uint8_t>(tag_of(address)) | tape_pointer_flag),
      static_cast<std::uint16_t>(thread), length, address};
  append(&r, sizeof r);
  count_event(thread);
}

void tape_writer::count_event(unsigned thread) {
  ++events_;
  threads_ = std::max<std::uint64_t>(threads_, thread + 1);
  if (file_.fd() >= 0 && buffer_.size() >= buffer_size) write_out();
}

void tape_writer::image(const std::byte* base, std::size_t size) {
  static constexpr std::byte zeroes[4096]{};
  const scoped_lock lock(*this);
  for (std::size_t at = 0; at < size; at += sizeof zeroes) {
    const std::size_t n = std::min(sizeof zeroes, size - at);
    if (std::memcmp(base + at, zeroes, n) != 0)
      event(tape_op::image, 0, at, static_cast<std::uint32_t>(n), base + at);
  }
}

void tape_writer::append(const void* bytes, std::size_t size) {
  const auto* from = static_cast<const std::byte*>(bytes);
  buffer_.insert(buffer_.end(), from, from + size);
}

void tape_writer::write_out() {
  for (std::size_t done = 0; done < buffer_.size() && failed_ == 0;) {
    const ssize_t n = ::write(file_.fd(), buffer_.data() + done, buffer_.size() - done);
    if (n < 0 && errno != EINTR) failed_ = errno;
    if (n > 0) done += static_cast<std::size_t>(n);
  }
  buffer_.clear();
}

// The header has the count of threads, which is known only at the end. A device has no place of it.
void tape_writer::write_threads() {
  constexpr std::size_t at = offsetof(tape_header, threads);
  if (file_.fd() < 0) {
    std::memcpy(buffer_.data() + at, &threads_, sizeof threads_);
  } else if (failed_ == 0 && file_.leaves_nothing() &&
             ::pwrite(file_.fd(), &threads_, sizeof threads_, at) != sizeof threads_) {
    failed_ = errno;
  }
}

result<> tape_writer::finish() {
  if (!finished_) {
    const scoped_lock lock(*this);
    const tape_record end{static_cast<std::uint8_t>(tape_op::end),
                          static_cast<std::uint8_t>(tape_tag::none), 0, 0, events_};
    append(&end, sizeof end);
    finished_ = true;
    const bool on_file = file_.fd() >= 0;
    if (on_file) write_out();
    write_threads();
    if (on_file && failed_ == 0) failed_ = file_.keep(false);
    file_.discard();
  }
  if (failed_ != 0)
    return fail_errno(failed_ == ENOSPC ? errc::full : errc::io, "the tape could not be written",
                      failed_);
  return {};
}

tape_reader::tape_reader(tape_reader&& o) noexcept
    : fd_(std::exchange(o.fd_, -1)),
      name_(std::move(o.name_)),
      header_(o.header_),
      buffer_(std::move(o.buffer_)),
      window_(o.window_),
      memory_(o.memory_),
      consumed_(o.consumed_),
      number_(o.number_),
      ended_(o.ended_) {}

tape_reader::~tape_reader() {
  if (fd_ >= 0) ::close(fd_);
}

result<tape_reader> tape_reader::open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return fail_errno(errno == ENOENT ? errc::not_found : errc::permission,
                      fmt::format("cannot read the tape {}", path));
  tape_reader reader(fd);
  if (auto started = reader.start(path); !started) return std::unexpected(started.error());
  return reader;
}

result<tape_reader> tape_reader::from_memory(std::span<const std::byte> tape) {
  tape_reader reader(-1);
  reader.window_ = reader.memory_ = tape;
  if (auto started = reader.start("tape"); !started) return std::unexpected(started.error());
  return reader;
}

result<> tape_reader::start(const std::string& name) {
  name_ = name;
  const auto available = fill_window(sizeof header_);
  if (!available) return std::unexpected(available.error());
  if (*available) std::memcpy(&header_, window_.data(), sizeof header_);
  if (!*available || std::memcmp(header_.magic, "STELETAP", 8) != 0)
    return fail(errc::not_a_pool,
                fmt::format("{} is not a tape (its first bytes are not a tape's)", name));
  if (header_.version < plain_version || header_.version > pointer_version)
    return fail(errc::version,
                fmt::format("{} is a tape of version {}; this program reads versions {} and {}",
                            name, header_.version, plain_version, pointer_version));
  window_ = window_.subspan(sizeof header_);
  consumed_ = sizeof header_;
  return {};
}

result<bool> tape_reader::fill_window(std::size_t size) {
  if (window_.size() >= size) return true;
  if (fd_ < 0) return false;
  std::vector<std::byte> next(window_.begin(), window_.end());
  next.resize(std::max(buffer_size, size));
  std::size_t have = window_.size();
  while (have < size) {
    const ssize_t n = ::read(fd_, next.data() + have, next.size() - have);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_errno(errc::io, fmt::format("cannot read the tape {}", name_));
    if (n == 0) break;
    have += static_cast<std::size_t>(n);
  }
  buffer_ = std::move(next);
  window_ = std::span(buffer_).first(have);
  return have >= size;
}

result<> tape_reader::seek(const position& p) {
  if (fd_ < 0) {
    if (p.byte > memory_.size())
      return fail(errc::corrupt, "the tape ends before the place that is to be read");
    window_ = memory_.subspan(p.byte);
  } else {
    if (::lseek(fd_, static_cast<off_t>(p.byte), SEEK_SET) < 0)
      return fail_errno(errc::io, fmt::format("cannot read the tape {}", name_));
    window_ = {};
  }
  consumed_ = p.byte;
  number_ = p.event;
  ended_ = false;
  return {};
}

// Stops before a record that is not valid; next() reports it.
std::size_t tape_reader::next_batch(tape_record* into, std::size_t max_records) noexcept {
  if (ended_) return 0;
  const unsigned pointer_flag = header_.version >= pointer_version ? tape_pointer_flag : 0;
  std::size_t n = 0;
  for (const std::size_t available = std::min(max_records, window_.size() / sizeof(tape_record));
       n < available; ++n) {
    tape_record& r = into[n];
    std::memcpy(&r, window_.data() + n * sizeof r, sizeof r);
    const bool is_load = static_cast<tape_op>(r.op) == tape_op::load;
    const unsigned tag = is_load ? r.tag & ~pointer_flag : r.tag;
    if (r.op < static_cast<unsigned>(tape_op::load) ||
        r.op >= static_cast<unsigned>(tape_op::image) ||
        tag > static_cast<unsigned>(tape_tag::volatile_memory))
      break;
    // Nearly all are short, and far from the end of the addresses.
    const bool is_usual = r.length <= max_payload && r.address <= ~std::uint64_t{0} - max_payload;
    if (!is_usual && !is_valid_range(header_, r)) break;
  }
  window_ = window_.subspan(n * sizeof(tape_record));
  consumed_ += n * sizeof(tape_record);
  number_ += n;
  return n;
}

result<std::optional<tape_event>> tape_reader::next() {
  auto damaged = [&](const char* what) {
    return fail(errc::corrupt,
                fmt::format("{}: event {} at byte {}: {}", name_, number_, consumed_, what));
  };
  if (ended_) return std::nullopt;
  const auto available = fill_window(sizeof(tape_record));
  if (!available) return std::unexpected(available.error());
  if (!*available) return damaged("the tape ends in the middle; the run that wrote it was cut off");
  tape_record r;
  std::memcpy(&r, window_.data(), sizeof r);
  const auto op = static_cast<tape_op>(r.op & ~tape_bytes_follow);
  const bool loads_pointer =
      header_.version >= pointer_version && op == tape_op::load && (r.tag & tape_pointer_flag) != 0;
  const auto tag = static_cast<tape_tag>(loads_pointer ? r.tag & ~tape_pointer_flag : r.tag);
  if (op < tape_op::load || op > tape_op::end || tag > tape_tag::volatile_memory)
    return damaged("no such event");
  const bool follow = (r.op & tape_bytes_follow) != 0;
  if (!is_valid_range(header_, r)) return damaged("its range is longer than the pool");
  if (follow && r.length > max_payload)
    return damaged("it claims more bytes than an event may have");
  const std::size_t whole = sizeof r + (follow ? padded(r.length) : 0);
  const auto rest = fill_window(whole);
  if (!rest) return std::unexpected(rest.error());
  if (!*rest) return damaged("the tape ends in the middle; the run that wrote it was cut off");
  tape_event e{op, tag, r.thread, r.length, r.address, {}, loads_pointer};
  if (follow) e.bytes = window_.subspan(sizeof r, r.length);
  window_ = window_.subspan(whole);
  consumed_ += whole;
  if (op == tape_op::end) {
    ended_ = true;
    if (r.address != number_) return damaged("the end mark counts other events than there are");
    return std::nullopt;
  }
  ++number_;
  return e;
}

}  // namespace stele::media
