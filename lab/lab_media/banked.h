// banked: another medium, as slow as phase-change memory behind a controller that orders writes by
// persist barriers (pcm_banks.h). Reads and evictions cost nothing extra.
//
// Unless the model waits, a fence only orders and returns. A commit that has returned is then
// ordered after all earlier ones, and durable as soon as the emulated queues have drained. This is
// emulated only; the medium below makes data durable as always.
#pragma once

#include <lab_media/pcm_banks.h>
#include <media/media.h>

#include <utility>

namespace stele::media {

template <class Inner>
class banked {
 public:
  struct shared {
    const std::byte* base;  // of the pool
    pcm_banks banks;
    typename Inner::shared inner;

    template <class... Arguments>
    shared(const std::byte* b, const pcm_model& model, const pcm_layout& layout, unsigned threads,
           Arguments&&... inner_arguments)
        : base(b),
          banks(model, layout, threads),
          inner{std::forward<Arguments>(inner_arguments)...} {}
  };
  static constexpr bool under_exploration = Inner::under_exploration;
  static constexpr auto whole_cache = Inner::whole_cache;

  banked(shared& s, unsigned thread)
      : shared_(s), thread_(thread), inner_(s.inner, thread), count(inner_.count) {}

  void store(void* to, const void* from, std::size_t size) { inner_.store(to, from, size); }
  void stream(void* to, const void* from, std::size_t size) {
    inner_.stream(to, from, size);
    write(to, size);
  }
  void flush(const void* at, std::size_t size) {
    inner_.flush(at, size);
    write(at, size);
  }
  void fence() {
    inner_.fence();
    shared_.banks.fence(thread_);
  }
  void bulk_persist(std::span<const range> ranges) {
    inner_.bulk_persist(ranges);
    for (const range& r : ranges) write(r.begin, r.size);
    shared_.banks.fence(thread_);
  }
  void note(tape_mark m, std::uint64_t argument) { inner_.note(m, argument); }
  bool failed() const noexcept { return inner_.failed(); }

 private:
  void write(const void* at, std::size_t size) {
    const auto first =
        static_cast<std::uint64_t>(static_cast<const std::byte*>(at) - shared_.base) / line_size;
    for (std::size_t i = 0, lines = line_count(at, size); i < lines; ++i)
      shared_.banks.write(thread_, first + i);
  }

  shared& shared_;
  unsigned thread_;
  Inner inner_;

 public:
  counters& count;
};

}  // namespace stele::media
