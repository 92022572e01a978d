// A mutated input: bytes that may or may not be a pool. Words are read and written only inside
// them, at any requested offset, so code that follows the pool's own offsets needs no checks.
#pragma once

#include <format/pool_layout.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace stele::fuzz {

class image {
 public:
  explicit image(std::span<std::byte> bytes) noexcept : bytes_(bytes) {}

  std::uint64_t size() const noexcept { return bytes_.size(); }
  std::span<std::byte> bytes() const noexcept { return bytes_; }
  bool has(std::uint64_t offset, std::uint64_t count) const noexcept {
    return offset <= size() && count <= size() - offset;
  }

  // Beyond the end word() returns 0 and put() does nothing.
  std::uint64_t word(std::uint64_t offset) const noexcept {
    std::uint64_t w = 0;
    if (has(offset, sizeof w)) std::memcpy(&w, bytes_.data() + offset, sizeof w);
    return w;
  }
  void put(std::uint64_t offset, std::uint64_t w) const noexcept {
    if (has(offset, sizeof w)) std::memcpy(bytes_.data() + offset, &w, sizeof w);
  }

  // The header as the bytes have it, unchecked.
  format::pool_header header() const noexcept {
    format::pool_header h{};
    std::memcpy(&h, bytes_.data(), std::min<std::uint64_t>(size(), sizeof h));
    return h;
  }
  void put_header(std::uint64_t offset, const format::pool_header& h) const noexcept {
    if (has(offset, sizeof h)) std::memcpy(bytes_.data() + offset, &h, sizeof h);
  }

 private:
  std::span<std::byte> bytes_;
};

}  // namespace stele::fuzz
