// The heap of native runs, and recording of their accesses; see native_space.h.
#include <base/check.h>
#include <sys/mman.h>
#include <workloads/apart/native_space.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

namespace stele::workloads {

namespace {

constexpr std::size_t page = 4096;

// A multiple of 16 with the logarithm of the alignment in the low bits: blocks of one class are
// interchangeable.
std::uint64_t class_of(std::size_t size_bytes, std::size_t alignment) {
  const std::size_t unit = std::max<std::size_t>(alignment, 16);
  return (size_bytes + unit - 1) / unit * unit | static_cast<std::uint64_t>(std::countr_zero(unit));
}

}  // namespace

constinit thread_local native_space* native_space::current_ = nullptr;

result<std::unique_ptr<native_space>> native_space::make(std::size_t size_bytes,
                                                         bool whole_values) {
  void* at = ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED)
    return base::fail_errno(errc::io, "cannot reserve " + std::to_string(size_bytes) +
                                          " bytes of addresses for a native run");
  return std::unique_ptr<native_space>(
      new native_space(static_cast<std::byte*>(at), size_bytes, whole_values));
}

native_space::~native_space() {
  ::munmap(base_, size_);
}

// A free block of the class; if space is short, also one of another thread. 0: there is none.
std::uint64_t native_space::take_free(std::uint64_t size_class) {
  const std::uint64_t size_bytes = size_class & ~std::uint64_t{15};
  const bool short_of_space = top_ + size_bytes + page > size_;
  for (unsigned i = 0; i < (short_of_space ? threads_ : 1); ++i) {
    free_list& list = free_of((thread_ + i) % threads_, size_class);
    if (list.empty()) continue;
    const std::uint64_t address = list.back();
    list.pop_back();
    return address;
  }
  return 0;
}

void* native_space::allocate(std::size_t size_bytes, std::size_t alignment) {
  instructions_ += costs_.per_allocation;
  const std::uint64_t wanted = class_of(std::max<std::size_t>(size_bytes, 1), alignment);
  if (const std::uint64_t address = take_free(wanted); address != 0) return base_ + address;
  const std::uint64_t unit = std::uint64_t{1} << (wanted & 15), whole = wanted & ~std::uint64_t{15};
  const std::uint64_t address = (top_ + unit - 1) / unit * unit;
  if (whole > size_ || address > size_ - whole)
    throw failure({errc::full, "the structure outgrew the " + std::to_string(size_) +
                                   " bytes of addresses set apart for it"});
  top_ = address + whole;
  size_class_.emplace(address, wanted);
  return base_ + address;
}

void native_space::deallocate(void* block) {
  instructions_ += costs_.per_allocation;
  const auto address = static_cast<std::uint64_t>(static_cast<std::byte*>(block) - base_);
  free_of(thread_, size_class_.at(address)).push_back(address);
}

void native_space::fill_zero(void* to, std::size_t size_bytes) {
  auto* from = static_cast<std::byte*>(to);
  auto* const end = from + size_bytes;
  if (size_bytes > 64 * page) {  // the host takes whole pages back, and they read as zeroes again
    auto* const first =
        base_ + static_cast<std::size_t>(from - base_ + static_cast<std::ptrdiff_t>(page) - 1) /
                    page * page;
    auto* const last = base_ + static_cast<std::size_t>(end - base_) / page * page;
    std::memset(from, 0, static_cast<std::size_t>(first - from));
    base::check(::madvise(first, static_cast<std::size_t>(last - first), MADV_DONTNEED) == 0,
                "anonymous memory can be given back");
    from = last;
  }
  std::memset(from, 0, static_cast<std::size_t>(end - from));
  stored(to, size_bytes);
}

void native_space::start_recording(media::tape_writer& tape, unsigned thread,
                                   const native_costs& costs) {
  tape_ = &tape;
  thread_ = thread;
  threads_ = std::max(threads_, thread + 1);
  costs_ = costs;
  instructions_ = costs.per_operation;
}

void native_space::write_instructions() {
  if (instructions_ != 0) tape_->event(media::tape_op::compute, thread_, instructions_, 0);
  instructions_ = 0;
}

void native_space::loaded_pointer(const void* at, std::size_t size_bytes) {
  const auto address = static_cast<std::uint64_t>(static_cast<const std::byte*>(at) - base_);
  if (tape_ == nullptr || address >= size_) return;
  instructions_ += costs_.per_access;
  write_instructions();
  tape_->pointer_load(thread_, address, static_cast<std::uint32_t>(size_bytes));
}

void native_space::write(media::tape_op op, std::uint64_t address, std::size_t size_bytes) {
  instructions_ += costs_.per_access;
  for (const std::uint64_t end = address + size_bytes; address < end;) {
    const std::size_t n = std::min<std::size_t>(max_access_bytes, end - address);
    instructions_ += (n - 1) / 64 * costs_.per_line;
    write_instructions();
    tape_->event(op, thread_, address, static_cast<std::uint32_t>(n),
                 op == media::tape_op::store && whole_values_ ? base_ + address : nullptr);
    address += n;
  }
}

}  // namespace stele::workloads
