// image: a pool image in ordinary memory, for the explorer. Nothing is persistent. The original
// content of each written line is kept, so undoing a trial takes time proportional to what it
// wrote.
#pragma once

#include <media/media.h>

#include <vector>

namespace stele::media {

struct image_view {
  std::byte* base = nullptr;
  std::size_t size = 0;
  std::vector<std::uint32_t> written;    // lines, in the order they were first written
  std::vector<std::byte> before_images;  // their content before that, one line each
  std::vector<std::uint8_t> is_written;  // by line

  image_view(std::byte* b, std::size_t n) : base(b), size(n), is_written(n / line_size, 0) {}

  void save_before_image(const void* to, std::size_t n) {
    const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(to) - base);
    for (std::size_t line = offset / line_size; line <= (offset + n - 1) / line_size; ++line) {
      if (is_written[line] != 0) continue;
      is_written[line] = 1;
      written.push_back(static_cast<std::uint32_t>(line));
      before_images.insert(before_images.end(), base + line * line_size,
                           base + (line + 1) * line_size);
    }
  }
  void undo() noexcept {
    for (std::size_t i = 0; i < written.size(); ++i) {
      std::memcpy(base + written[i] * line_size, before_images.data() + i * line_size, line_size);
      is_written[written[i]] = 0;
    }
    written.clear();
    before_images.clear();
  }
};

class image {
 public:
  struct shared {
    image_view& view;
  };
  static constexpr bool under_exploration = true;
  static constexpr auto whole_cache = media::whole_cache::supported;

  image(shared& s, unsigned) : view_(s.view) {}

  void store(void* to, const void* from, std::size_t size) {
    view_.save_before_image(to, size);
    store_untorn(to, from, size);
    count.stored_bytes += size;
  }
  void stream(void* to, const void* from, std::size_t size) {
    view_.save_before_image(to, size);
    std::memcpy(to, from, size);
    count.streamed_bytes += size;
  }
  void flush(const void* at, std::size_t size) noexcept {
    count.flushed_lines += line_count(at, size);
  }
  void fence() noexcept { ++count.fences; }
  void bulk_persist(std::span<const range>) noexcept { fence(); }
  void note(tape_mark, std::uint64_t) noexcept {}
  bool failed() const noexcept { return false; }

 private:
  image_view& view_;

 public:
  counters count;
};
static_assert(medium<image>);

}  // namespace stele::media
