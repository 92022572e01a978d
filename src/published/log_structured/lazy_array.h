// Large arrays whose pages are allocated at the first access.
#pragma once

#include <cstddef>
#include <utility>

namespace stele::storage {

// Line-aligned memory whose pages are allocated at the first access. Zeroed, except small arrays
// that are not requested zeroed.
class lazy_memory {
 public:
  lazy_memory(std::size_t bytes, bool zeroed);
  lazy_memory(lazy_memory&& o) noexcept
      : data_(std::exchange(o.data_, nullptr)), bytes_(std::exchange(o.bytes_, 0)) {}
  lazy_memory& operator=(lazy_memory&& o) noexcept {
    std::swap(data_, o.data_), std::swap(bytes_, o.bytes_);
    return *this;
  }
  ~lazy_memory();
  void* data() const noexcept { return data_; }

 private:
  void* data_;
  std::size_t bytes_;
};
template <class T>
class lazy_array {
 public:
  explicit lazy_array(std::size_t count, bool zeroed = true) : memory_(count * sizeof(T), zeroed) {}
  T& operator[](std::size_t i) const noexcept { return static_cast<T*>(memory_.data())[i]; }

 private:
  lazy_memory memory_;
};

}  // namespace stele::storage
