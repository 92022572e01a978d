// Stores into the cache, and the two ways from the cache to media: write-backs and in-flight
// writes. An older write never overwrites a newer one on media.
#include <explore/cache_model.h>

#include <algorithm>

namespace stele::explore {

cache_model::cache_model(const cache_geometry& geometry, std::size_t size)
    : sets_(geometry), visible_(size), persisted_number_(size / 8) {}

void cache_model::start(hashed_image& media, std::uint64_t seed) {
  media_ = &media;
  std::memcpy(visible_.data(), media.data(), visible_.size());
  sets_.reset(seed);
  in_flight_.clear();
  saved_lines_.clear();
}

template <class Part>
void cache_model::for_each_line(std::uint64_t offset, std::uint64_t size, Part&& part) {
  for (std::uint64_t done = 0; done < size;) {
    const std::uint64_t at = (offset + done) % line_size,
                        here = std::min(line_size - at, size - done);
    part(static_cast<std::uint32_t>((offset + done) / line_size), at, done, here);
    done += here;
  }
}

void cache_model::set_visible(std::uint32_t line, std::size_t at,
                              std::span<const std::byte> bytes) noexcept {
  std::memcpy(visible_.data() + line * line_size + at, bytes.data(), bytes.size());
}

void cache_model::write_back(std::uint32_t line) {
  ++number_;
  media_->put(line, visible(line));
  std::fill_n(persisted_number_.begin() + line * 8, 8, number_);
}

void cache_model::start_write(unsigned thread, std::uint32_t line, std::uint8_t words,
                              bool streamed) {
  in_flight_write& w = in_flight_.emplace_back();
  std::memcpy(w.content.data(), visible(line), line_size);
  w.number = ++number_;
  w.line = line;
  w.thread = static_cast<std::uint16_t>(thread);
  w.words = words;
  w.streamed = streamed;
}

void cache_model::store(std::uint64_t offset, std::span<const std::byte> bytes) {
  for_each_line(offset, bytes.size(),
                [&](std::uint32_t line, std::size_t at, std::size_t done, std::size_t here) {
                  const std::uint32_t victim = sets_.write(line);
                  if (victim != cache_sets::none) write_back(victim);
                  set_visible(line, at, bytes.subspan(done, here));
                });
}

// A cached line is evicted first.
void cache_model::stream(unsigned thread, std::uint64_t offset, std::span<const std::byte> bytes) {
  for_each_line(offset, bytes.size(),
                [&](std::uint32_t line, std::size_t at, std::size_t done, std::size_t here) {
                  if (sets_.invalidate(line)) write_back(line);
                  set_visible(line, at, bytes.subspan(done, here));
                  const unsigned first = static_cast<unsigned>(at / 8),
                                 last = static_cast<unsigned>((at + here - 1) / 8);
                  start_write(thread, line, static_cast<std::uint8_t>((2u << last) - (1u << first)),
                              true);
                });
}

// A clean line is flushed too: an earlier flush of it, by another thread or with another value, may
// still be in flight.
void cache_model::flush(unsigned thread, std::uint64_t offset, std::uint64_t size) {
  for_each_line(offset, size, [&](std::uint32_t line, std::size_t, std::size_t, std::size_t) {
    sets_.clean(line);
    start_write(thread, line, 0xFF, false);
  });
}

void cache_model::fence(unsigned thread) {
  for (const in_flight_write& w : in_flight_) {
    if (w.thread != thread) continue;
    std::array<std::byte, line_size> line;
    std::memcpy(line.data(), media_->line(w.line), line_size);
    for (unsigned word = 0; word < 8; ++word) {
      if ((w.words >> word & 1) == 0 || !newer(w, word)) continue;
      std::memcpy(line.data() + word * 8, w.content.data() + word * 8, 8);
      persisted_number_[w.line * 8 + word] = w.number;
    }
    media_->put(w.line, line.data());
  }
  std::erase_if(in_flight_, [&](const in_flight_write& w) { return w.thread == thread; });
}

void cache_model::bulk(std::uint64_t offset, std::uint64_t size) {
  for_each_line(offset, size, [&](std::uint32_t line, std::size_t, std::size_t, std::size_t) {
    sets_.clean(line);
    write_back(line);
  });
}

void cache_model::crash(std::uint64_t seed) {
  base::rng random(seed);
  // All in-flight writes are lost, all arrive, or some of them.
  const std::uint64_t way = random.below(4);
  for (const in_flight_write& w : in_flight_) {
    std::uint8_t chosen = way == 0 ? 0 : 0xFF;
    if (way > 1)
      chosen = w.streamed && way == 2 ? static_cast<std::uint8_t>(random())
               : random.below(2) != 0 ? 0xFF
                                      : 0;
    chosen &= w.words;
    if (chosen == 0) continue;
    saved_line& f = saved_lines_.emplace_back();
    f.line = w.line;
    std::memcpy(f.content.data(), media_->line(w.line), line_size);
    std::array<std::byte, line_size> line = f.content;
    for (unsigned word = 0; word < 8; ++word)
      if ((chosen >> word & 1) != 0 && newer(w, word))
        std::memcpy(line.data() + word * 8, w.content.data() + word * 8, 8);
    media_->put(w.line, line.data());
  }
}

void cache_model::undo() {
  for (; !saved_lines_.empty(); saved_lines_.pop_back())
    media_->put(saved_lines_.back().line, saved_lines_.back().content.data());
}

}  // namespace stele::explore
