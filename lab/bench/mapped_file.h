// A mapped file for contenders that manage their own memory: created, mapped, all pages touched;
// removed at the end.
#pragma once

#include <stele/error.h>

#include <cstddef>
#include <string>

namespace stele::bench {

class mapped_file {
 public:
  // Errors: io.
  [[nodiscard]] static result<mapped_file> create(std::string path, std::size_t size);
  mapped_file(mapped_file&& other) noexcept;
  mapped_file& operator=(mapped_file&& other) noexcept;
  ~mapped_file();

  std::byte* base() const noexcept { return base_; }
  std::size_t size() const noexcept { return size_; }

 private:
  mapped_file(std::string path, std::byte* base, std::size_t size)
      : path_(std::move(path)), base_(base), size_(size) {}
  std::string path_;
  std::byte* base_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace stele::bench
