// What a crash leaves of memory behind one particular write-back cache: one of the states that
// crash_model allows.
//
// Ordinary stores dirty lines of the cache, and a line that has to leave is written back as it is
// then. A flush takes the line's content along and a stream its words, past the cache; both are on
// their way to media until their thread's fence, and a crash before that loses a random part of
// them: flushed lines whole, streamed words each by itself. Loads are not modelled, so only stores
// displace lines.
#pragma once

#include <explore/cache_sets.h>
#include <explore/hashed_image.h>

#include <array>
#include <span>
#include <vector>

namespace stele::explore {

class cache_model {
 public:
  // Memory of `size` bytes; geometry has been checked.
  cache_model(const cache_geometry& geometry, std::size_t size);

  // `media` holds everything so far, the cache is empty. From now on `media` is what has been
  // written back.
  void start(hashed_image& media, std::uint64_t seed);

  void store(std::uint64_t offset, std::span<const std::byte> bytes);
  // Whole words.
  void stream(unsigned thread, std::uint64_t offset, std::span<const std::byte> bytes);
  void flush(unsigned thread, std::uint64_t offset, std::uint64_t size);
  void fence(unsigned thread);
  void bulk(std::uint64_t offset, std::uint64_t size);

  // A random part of what is on its way reaches media; undo() makes that undone, after which the
  // run goes on.
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
    std::uint8_t words;  // of the content that count: bit w is word w
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
  std::vector<std::uint64_t> persisted_number_;  // by word: the number of what media has
  std::vector<in_flight_write> in_flight_;       // in the order of their numbers
  std::vector<saved_line> saved_lines_;
  std::uint64_t number_ = 0;
};

}  // namespace stele::explore
