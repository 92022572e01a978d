// A file's memory for contenders that manage their own: created, mapped and touched; removed at the end.
#pragma once

#include <stele/error.h>

#include <cstddef>
#include <string>

namespace stele::bench {

class mapping {
 public:
  // Errors: io.
  [[nodiscard]] static result<mapping> create(std::string path, std::size_t size);
  mapping(mapping&& other) noexcept;
  mapping& operator=(mapping&& other) noexcept;
  ~mapping();

  std::byte* base() const noexcept { return base_; }
  std::size_t size() const noexcept { return size_; }

 private:
  mapping(std::string path, std::byte* base, std::size_t size) : path_(std::move(path)), base_(base), size_(size) {}
  std::string path_;
  std::byte* base_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace stele::bench
