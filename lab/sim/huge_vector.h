// Arrays of a size that the host should map with pages of 2 MiB: states of a large cache are read
// at random, and with pages of 4 KiB most reads also miss the host's translation buffer.
#pragma once

#include <sys/mman.h>

#include <cstdlib>
#include <new>
#include <vector>

namespace stele::sim {

template <class T>
struct huge_pages {
  using value_type = T;
  static constexpr std::size_t page = std::size_t{2} << 20;
  huge_pages() = default;
  template <class U>
  huge_pages(const huge_pages<U>&) noexcept {}

  T* allocate(std::size_t n) {
    const std::size_t bytes = n * sizeof(T);
    if (bytes < page) return static_cast<T*>(::operator new(bytes));
    const std::size_t whole = (bytes + page - 1) / page * page;
    void* const at = std::aligned_alloc(page, whole);
    if (at == nullptr) throw std::bad_alloc();
    (void)madvise(at, whole, MADV_HUGEPAGE);  // a wish
    return static_cast<T*>(at);
  }
  void deallocate(T* at, std::size_t n) noexcept {
    n * sizeof(T) < page ? ::operator delete(at) : std::free(at);
  }
  bool operator==(const huge_pages&) const = default;
};

template <class T>
using huge_vector = std::vector<T, huge_pages<T>>;

}  // namespace stele::sim
