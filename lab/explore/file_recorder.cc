// Records system calls and stores as events of a tape.
#include <explore/file_recorder.h>
#include <explore/trap.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace stele::explore {

using media::tape_op;
using request = media::os::request;
using call = media::os::call;

namespace {

// Whether everything that the call writes is durable when it returns.
bool waits_for_device(const request& r) noexcept {
  return (r.what == call::sync && !is_directory(r.fd)) ||
         (r.what == call::write && is_synchronous(r.fd));
}

}  // namespace

file_recorder::file_recorder(media::tape_writer& tape, std::span<const std::byte> at_start,
                             std::uint64_t length_offset, file_faults faults)
    : tape_(tape),
      kernel_view_(at_start.begin(), at_start.end()),
      length_offset_(length_offset),
      faults_(std::move(faults)) {
  media::os::install_hook(this);
}

void file_recorder::lock() noexcept {
  mutex_.lock();
}
void file_recorder::unlock() noexcept {
  mutex_.unlock();
}

unsigned file_recorder::this_thread() {
  const auto known = std::ranges::find(threads_, std::this_thread::get_id());
  const auto number = static_cast<unsigned>(known - threads_.begin());
  if (known == threads_.end()) threads_.push_back(std::this_thread::get_id());
  return number;
}

std::size_t file_recorder::bytes_to_write(const request& r) noexcept {
  const turn guard(*this);
  return is_of_another_file(r) ? r.size : faults_.bytes_to_write(r);
}

bool file_recorder::is_of_another_file(const request& r) const noexcept {
  struct stat of = {};
  return pool_inode_ != 0 && r.fd >= 0 && !is_directory(r.fd) && ::fstat(r.fd, &of) == 0 &&
         of.st_ino != pool_inode_;
}

int file_recorder::before(const request& r) noexcept {
  reset_watchdog();
  const turn guard(*this);
  if (is_of_another_file(r)) return 0;
  switch (r.what) {
    case call::write:
      return write(r);
    case call::write_back:
      return write_back(r);
    case call::sync:
      return is_directory(r.fd) ? 0 : sync(r);
    case call::link:
      return mark_recorded(this_thread(), media::tape_mark::invoked, 0), 0;
    case call::fallocate:
      return r.offset + r.size > length_offset_ ? ENOSPC : 0;  // the image has no more room
    default:
      return 0;
  }
}

void file_recorder::after(const request& r) noexcept {
  const turn guard(*this);
  if (is_of_another_file(r)) return;
  if (r.what == call::open) faults_.opened(r.fd);
  if (r.what == call::fallocate) extend(r.offset + r.size);
  if (struct stat of = {}; r.what == call::map && r.fd >= 0 && ::fstat(r.fd, &of) == 0) {
    const auto length = static_cast<std::uint64_t>(of.st_size);
    mapped_ = std::max(mapped_, std::min(r.offset + r.size, length));  // not what is past its end
    pool_inode_ = of.st_ino;
  }
  if (waits_for_device(r)) tape_.event(tape_op::fence, this_thread(), 0, 0);
}

int file_recorder::write(const request& r) {
  find_unreported_stores();
  const int number = faults_.inject(r).number;
  if (number == EINTR) return number;  // nothing is written
  if (!is_synchronous(r.fd)) return change(r.offset, r.bytes, r.size), number;
  std::memcpy(kernel_view_.data() + r.offset, r.bytes, r.size);
  put(tape_op::stream, number != 0 ? unfenced_thread : this_thread(), r.offset, r.bytes, r.size);
  return number;
}

int file_recorder::write_back(const request& r) {
  find_unreported_stores();
  const auto [number, lost_pages] = faults_.inject(r);
  if (lost_pages) dirty_.clear();
  return number;
}

int file_recorder::sync(const request& r) {
  const int number = write_back(r);
  if (number != 0) return number;
  for (const std::uint64_t page : dirty_)
    tape_.event(tape_op::flush, this_thread(), page * page_size, page_size);
  dirty_.clear();
  return 0;
}

// The length becomes durable with the next sync, like the stores there.
void file_recorder::extend(std::uint64_t length) {
  if (length <= kernel_view_.size()) return;
  kernel_view_.resize(length);
  put(tape_op::store, this_thread(), length_offset_, reinterpret_cast<const std::byte*>(&length),
      sizeof length);
  dirty(length_offset_, sizeof length);
}

// A store that bypassed the medium is a store too.
void file_recorder::find_unreported_stores() {
  if (base_ == nullptr) return;
  for (std::uint64_t at = home_offset_; at < mapped_; at += media::line_size)
    if (std::memcmp(kernel_view_.data() + at, base_ + at, media::line_size) != 0)
      change(at, base_ + at, media::line_size);
}

void file_recorder::store_recorded(const std::byte* base, std::uint64_t home_offset,
                                   std::uint64_t offset, std::size_t size) {
  base_ = base;
  home_offset_ = home_offset;
  change(offset, base + offset, size);
}

void file_recorder::mark_recorded(unsigned thread, media::tape_mark m, std::uint64_t argument) {
  tape_.event(
      static_cast<tape_op>(static_cast<unsigned>(tape_op::tx_begin) + static_cast<unsigned>(m)),
      thread, argument, 0);
}

// A store to a page of the kernel's cache.
void file_recorder::change(std::uint64_t offset, const std::byte* bytes, std::size_t size) {
  std::memcpy(kernel_view_.data() + offset, bytes, size);
  put(tape_op::store, this_thread(), offset, bytes, size);
  dirty(offset, size);
}

void file_recorder::put(tape_op op, unsigned thread, std::uint64_t offset, const std::byte* bytes,
                        std::size_t size) {
  for (std::size_t done = 0; done < size;) {
    const std::size_t take =
        std::min<std::size_t>(page_size - (offset + done) % page_size, size - done);
    tape_.event(op, thread, offset + done, static_cast<std::uint32_t>(take), bytes + done);
    done += take;
  }
}

void file_recorder::dirty(std::uint64_t offset, std::size_t size) {
  for (std::uint64_t page = offset / page_size; page <= (offset + size - 1) / page_size; ++page)
    dirty_.insert(page);
}

}  // namespace stele::explore
