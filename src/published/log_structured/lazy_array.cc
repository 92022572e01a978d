// Large arrays in mappings of their own.
#include <base/assert.h>
#include <published/log_structured/lazy_array.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <new>

namespace stele::storage {

// Arrays from this size in bytes on, a huge page, get a mapping of their own.
static constexpr std::size_t large = std::size_t{2} << 20;

lazy_memory::lazy_memory(std::size_t bytes, bool zeroed) : bytes_((bytes + 63) / 64 * 64) {
  if (bytes_ < large) {
    data_ = ::operator new(bytes_, std::align_val_t{64});
    STELE_ASSERT_ALWAYS(reinterpret_cast<std::uintptr_t>(data_) % 64 == 0);
    if (zeroed) std::memset(data_, 0, bytes_);
    return;
  }
  bytes_ = (bytes_ + large - 1) / large * large;
  data_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data_ == MAP_FAILED) throw std::bad_alloc();
  ::madvise(data_, bytes_, MADV_HUGEPAGE);  // accesses are random
}

lazy_memory::~lazy_memory() {
  if (bytes_ < large)
    ::operator delete(data_, std::align_val_t{64});
  else
    ::munmap(data_, bytes_);
}

}  // namespace stele::storage
