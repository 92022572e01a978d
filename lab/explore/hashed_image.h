// A pool image whose hash is kept up to date while lines change. A known crash state is recognised
// without reading it.
//
// The hash is a sum over lines of a hash of place and content, so a changed line costs one line.
// Two sums are kept: one over everything, one without the logs.
#pragma once

#include <base/rng.h>
#include <media/media.h>

#include <bit>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

namespace stele::explore {

using media::line_size;

struct image_hash {
  std::uint64_t all = 0, without_logs = 0;
};

inline std::uint64_t fold(std::uint64_t a, std::uint64_t b) noexcept {
  __extension__ using wide = unsigned __int128;
  const wide product = static_cast<wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

// Four independent products let the processor overlap them: a few nanoseconds.
inline std::uint64_t hash_line(const std::byte* line, std::uint64_t number) noexcept {
  std::uint64_t w[8];
  std::memcpy(w, line, sizeof w);
  const std::uint64_t place = base::mix(number);
  const std::uint64_t a = fold(w[0] ^ 0xA0761D6478BD642Fu ^ place, w[1] ^ 0xE7037ED1A0B428DBu);
  const std::uint64_t b = fold(w[2] ^ 0x8EBC6AF09C88C6E3u ^ place, w[3] ^ 0x589965CC75374CC3u);
  const std::uint64_t c = fold(w[4] ^ 0x1D8E4E27C47D124Fu ^ place, w[5] ^ 0xEB44ACCAB455D165u);
  const std::uint64_t d = fold(w[6] ^ 0x9FB21C651E98DF25u ^ place, w[7] ^ 0x2D358DCCAA6C78A5u);
  return fold(a ^ std::rotl(b, 17) ^ 0xD6E8FEB86659FD93u, c ^ std::rotl(d, 43) ^ place);
}

class hashed_image {
 public:
  // Bytes [logs_begin, logs_end) count only in image_hash::all.
  hashed_image(std::size_t size, std::size_t logs_begin, std::size_t logs_end)
      : size_(size),
        first_log_line_(logs_begin / line_size),
        end_log_line_(logs_end / line_size),
        bytes_(allocate(size)),
        hashes_(size / line_size) {}

  std::byte* data() const noexcept { return bytes_.get(); }
  std::byte* line(std::size_t number) const noexcept { return bytes_.get() + number * line_size; }
  std::size_t size() const noexcept { return size_; }
  const image_hash& hash() const noexcept { return hash_; }

  void assign(const hashed_image& other) noexcept {
    std::memcpy(data(), other.data(), size_);
    hashes_ = other.hashes_;
    hash_ = other.hash_;
  }
  void rehash() noexcept {
    hash_ = {};
    for (std::size_t i = 0; i < hashes_.size(); ++i)
      add(hash_, i, hashes_[i] = hash_line(line(i), i));
  }
  void put(std::size_t number, const void* content) noexcept {
    std::memcpy(line(number), content, line_size);
    const std::uint64_t now = hash_line(line(number), number);
    add(hash_, number, now - hashes_[number]);
    hashes_[number] = now;
  }
  // Whether every line is as put(), assign() or rehash() left it. Linear in the size.
  bool is_as_put() const noexcept {
    for (std::size_t i = 0; i < hashes_.size(); ++i)
      if (hash_line(line(i), i) != hashes_[i]) return false;
    return true;
  }
  // The image_hash of memory as it is now. `changed` are the lines that were changed without put().
  template <class Lines>
  image_hash hash_with(const Lines& changed) const noexcept {
    image_hash s = hash_;
    for (std::size_t number : changed)
      add(s, number, hash_line(line(number), number) - hashes_[number]);
    return s;
  }

 private:
  struct release {
    void operator()(std::byte* bytes) const noexcept { std::free(bytes); }
  };
  static std::byte* allocate(std::size_t size) {
    auto* const bytes = static_cast<std::byte*>(std::aligned_alloc(4096, size));
    if (bytes == nullptr) throw std::bad_alloc();
    std::memset(bytes, 0, size);
    return bytes;
  }
  void add(image_hash& s, std::size_t number, std::uint64_t hash) const noexcept {
    s.all += hash;
    if (number < first_log_line_ || number >= end_log_line_) s.without_logs += hash;
  }

  std::size_t size_, first_log_line_, end_log_line_;
  std::unique_ptr<std::byte, release> bytes_;
  std::vector<std::uint64_t> hashes_;
  image_hash hash_;
};

}  // namespace stele::explore
