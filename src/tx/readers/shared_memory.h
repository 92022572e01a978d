// Anonymous memory that other processes can map for reading, by its descriptor.
//
// Its maker stores to it. Sealed: whoever gets the descriptor can neither map
// it writable nor change its size. It ends with the last mapping and
// descriptor; a process that is killed leaves nothing.
#pragma once

#include <stele/error.h>

#include <cstddef>
#include <memory>

namespace stele::detail {

class shared_memory {
 public:
  shared_memory() noexcept = default;
  shared_memory(shared_memory&& other) noexcept;
  shared_memory& operator=(shared_memory&& other) noexcept;
  ~shared_memory();

  // Zeroed. reserved: every page exists, so that no store can fail. Errors:
  // full; unsupported.
  [[nodiscard]] static result<shared_memory> make(std::size_t bytes, bool reserved);
  // Another process's, read-only; takes over the descriptor. Errors: io;
  // corrupt, when it is shorter than `bytes`.
  [[nodiscard]] static result<shared_memory> map(int fd, std::size_t bytes);

  std::byte* at() const noexcept { return at_; }
  std::size_t size() const noexcept { return size_; }
  int fd() const noexcept { return fd_; }
  // Of memory that is not reserved: makes a range exist, so that stores to it
  // cannot fail. False: there is no memory.
  bool reserve(std::size_t offset, std::size_t bytes) const noexcept;

 private:
  int fd_ = -1;
  std::byte* at_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace stele::detail
