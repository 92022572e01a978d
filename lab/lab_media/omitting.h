// The flushes, streams and fences of a medium that explores, without those that event_sites leaves
// out. `Medium` derives from this class and makes the others: flush_now(), stream_now(),
// fence_now(), and store().
//
// Whether a line is the last one before a fence is known at the fence. Until then it is held back:
// a line that is streamed is stored at once, and the place's next flush or stream, if it comes
// first, is preceded by the flush of the held line.
#pragma once

#include <lab_media/event_sites.h>
#include <media/media.h>

#include <utility>

namespace stele::media {

template <class Medium>
class omitting {
 public:
  void flush(const void* at, std::size_t size,
             const std::source_location& where = std::source_location::current()) {
    const auto part = event_sites::omitted_of(event_sites::event::flush, where);
    if (part == event_sites::omitted::nothing) return self().flush_now(at, size);
    if (part == event_sites::omitted::all) return;
    const std::size_t front = bytes_before_last_line(at, size);
    if (part == event_sites::omitted::last_line_before_fence) hold(at, front, size);
    if (front != 0) self().flush_now(at, front);
  }
  void stream(void* to, const void* from, std::size_t size,
              const std::source_location& where = std::source_location::current()) {
    const auto part = event_sites::omitted_of(event_sites::event::stream, where);
    if (part == event_sites::omitted::nothing) return self().stream_now(to, from, size);
    if (part == event_sites::omitted::all) return;
    const std::size_t front = bytes_before_last_line(to, size);
    if (front != 0) self().stream_now(to, from, front);
    if (part != event_sites::omitted::last_line_before_fence) return;
    self().store(static_cast<std::byte*>(to) + front, static_cast<const std::byte*>(from) + front,
                 size - front);
    hold(to, front, size);
  }
  void fence(const std::source_location& where = std::source_location::current()) {
    const auto part = event_sites::omitted_of(event_sites::event::fence, where);
    if (part == event_sites::omitted::all) return;
    drop_held_line();
    self().fence_now();
  }

 protected:
  // What comes is, or ends with, a fence.
  void drop_held_line() noexcept { held_ = {}; }

 private:
  Medium& self() noexcept { return static_cast<Medium&>(*this); }
  static std::size_t bytes_before_last_line(const void* at, std::size_t size) noexcept {
    const auto begin = reinterpret_cast<std::uintptr_t>(at);
    const std::uintptr_t last = (begin + size - 1) / line_size * line_size;
    return last > begin ? last - begin : 0;
  }
  void hold(const void* at, std::size_t front, std::size_t size) {
    const range before = std::exchange(
        held_, {const_cast<std::byte*>(static_cast<const std::byte*>(at)) + front, size - front});
    if (before.size != 0) self().flush_now(before.begin, before.size);
  }

  range held_{};
};

}  // namespace stele::media
