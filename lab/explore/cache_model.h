// What a crash leaves of memory behind one given write-back cache. The result is one of the states
// that crash_model allows.
//
// Ordinary stores dirty lines of the cache; an evicted line is written back with its content at
// that moment. A flush starts a write of the line's content, and a stream starts a write of its
// words around the cache. These writes are in flight until their thread's fence. A crash before the
// fence loses a random part of them: a flushed line as a whole, each streamed word on its own.
// Loads are not modelled, so only stores evict lines.
#pragma once

#include <explore/cache_sets.h>
#include <explore/hashed_image.h>

#include <array>
#include <span>
#include <vector>

namespace stele::explore {

class cache_model {
 public:
  // Memory of `size` bytes. The caller has checked the geometry.
  cache_model(const cache_geometry& geometry, std::size_t size);

  // Begins with all of `media` durable and the cache empty. From now on `media` receives what is
  // written back.
  void start(hashed_image& media, std::uint64_t seed);

  void store(std::uint64_t offset, std::span<const std::byte> bytes);
  // `bytes` are whole words.
  void stream(unsigned thread, std::uint64_t offset, std::span<const std::byte> bytes);
  void flush(unsigned thread, std::uint64_t offset, std::uint64_t size);
  void fence(unsigned thread);
  void bulk(std::uint64_t offset, std::uint64_t size);

  // A random part of the in-flight writes reaches media. undo() reverts that, and the run can go
  // on.
  void crash(std::uint64_t seed);
  void undo();

  // Memory as the run sees it.
  const std::byte* visible(std::size_t line) const noexcept {
    return visible_.data() + line * line_size;
  }

 private:
  struct in_flight_write {
    std::array<std::byte, line_size> content;
    std::uint64_t number;  // events later in the run have larger ones
    std::uint32_t line;
    std::uint16_t thread;
    std::uint8_t words;  // bit w: word w of the content is part of the write
    bool streamed;
  };
  struct saved_line {
    std::uint32_t line;
    std::array<std::byte, line_size> content;
  };

  // part(line, offset in it, bytes done before, bytes here) for each line of a range.
  template <class Part>
  static void for_each_line(std::uint64_t offset, std::uint64_t size, Part&& part);
  void set_visible(std::uint32_t line, std::size_t at, std::span<const std::byte> bytes) noexcept;
  void start_write(unsigned thread, std::uint32_t line, std::uint8_t words, bool streamed);
  void write_back(std::uint32_t line);
  bool newer(const in_flight_write& w, unsigned word) const noexcept {
    return persisted_number_[w.line * 8 + word] < w.number;
  }

  cache_sets sets_;
  hashed_image* media_ = nullptr;
  std::vector<std::byte> visible_;
  std::vector<std::uint64_t> persisted_number_;  // by word: the number of the write that media has
  std::vector<in_flight_write> in_flight_;       // sorted by number
  std::vector<saved_line> saved_lines_;
  std::uint64_t number_ = 0;
};

}  // namespace stele::explore
