// recording: another medium, which writes every operation to a tape. It is under exploration:
// planted bugs are active.
#pragma once

#include <media/fence_sites.h>
#include <media/tape.h>

#include <utility>

namespace stele::media {

template <class Inner>
class recording {
 public:
  struct shared {
    tape_writer& tape;
    pool_mapping mapping;
    typename Inner::shared inner;

    template <class... Arguments>
    shared(tape_writer& t, const pool_mapping& r, Arguments&&... inner_arguments)
        : tape(t), mapping(r), inner{std::forward<Arguments>(inner_arguments)...} {}
  };
  static constexpr bool under_exploration = true;
  static constexpr auto whole_cache = media::whole_cache::supported;

  recording(shared& s, unsigned thread)
      : shared_(s), thread_(thread), inner_(s.inner, thread), count(inner_.count) {}

  void store(void* to, const void* from, std::size_t size) {
    const tape_writer::scoped_lock lock(shared_.tape);
    inner_.store(to, from, size);
    write(tape_op::store, to, size, from);
  }
  void stream(void* to, const void* from, std::size_t size) {
    const tape_writer::scoped_lock lock(shared_.tape);
    inner_.stream(to, from, size);
    write(tape_op::stream, to, size, from);
  }
  void flush(const void* at, std::size_t size) {
    const tape_writer::scoped_lock lock(shared_.tape);
    inner_.flush(at, size);
    write(tape_op::flush, at, size, nullptr);
  }
  // The event comes first, so that the tape has a crash point just before the fence.
  void fence(const std::source_location& at = std::source_location::current()) {
    if (fence_sites::is_omitted(at)) return;
    const tape_writer::scoped_lock lock(shared_.tape);
    shared_.tape.event(tape_op::fence, thread_, 0, 0);
    inner_.fence();
  }
  void bulk_persist(std::span<const range> ranges) {
    const tape_writer::scoped_lock lock(shared_.tape);
    for (const range& r : ranges) write(tape_op::bulk, r.begin, r.size, nullptr);
    inner_.bulk_persist(ranges);
  }
  void note(tape_mark m, std::uint64_t argument) {
    const tape_writer::scoped_lock lock(shared_.tape);
    const auto op =
        static_cast<tape_op>(static_cast<unsigned>(tape_op::tx_begin) + static_cast<unsigned>(m));
    shared_.tape.event(op, thread_, argument, 0);
  }
  bool failed() const noexcept { return inner_.failed(); }

 private:
  // The tape has pool offsets, also where home is mapped at another address.
  void write(tape_op op, const void* at, std::size_t size, const void* bytes) {
    const auto offset =
        static_cast<std::uint64_t>(static_cast<const std::byte*>(at) - shared_.mapping.base);
    shared_.tape.event(op, thread_, offset, static_cast<std::uint32_t>(size), bytes);
  }

  shared& shared_;
  unsigned thread_;
  Inner inner_;

 public:
  counters& count;
};

}  // namespace stele::media
