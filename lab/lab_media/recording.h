// recording: another medium, which writes every operation to a tape. It is under exploration:
// planted bugs are active. On a tape that records loads, it writes those of transactions too, which
// reach no medium: an access buffer has them until the next event of their log.
#pragma once

#include <base/check.h>
#include <lab_media/omitting.h>
#include <lab_media/tape.h>
#include <published/archapt/access_buffer.h>

#include <deque>
#include <utility>

namespace stele::media {

// The loads of one log's transactions, until they are on the tape.
class load_recorder {
 public:
  // Returns the buffer that gets the loads of the log's transactions.
  detail::load_observer* watch(detail::load_observer* of_mechanism) noexcept {
    of_mechanism_ = of_mechanism;
    return &loads_;
  }
  // Writes the loads made since the last call. Called under the tape's lock.
  void write_to(tape_writer& tape, unsigned log) {
    const std::uint64_t lost = loads_.drain([&](std::uint64_t offset, std::uint64_t size) {
      tape.event(tape_op::load, log, offset, static_cast<std::uint32_t>(size));
      if (is_sampled_) of_mechanism_->load(offset, 8);
    });
    base::check(lost == 0, "a transaction loads more between two events than its recorder keeps");
  }
  // A mechanism that asks for loads gets those of the operations that it would sample itself: each
  // operation is one transaction.
  void begin_operation() noexcept {
    is_sampled_ = of_mechanism_ != nullptr && of_mechanism_->begin_transaction();
  }

 private:
  detail::access_buffer loads_{detail::access_buffer::keeps::every_load};
  detail::load_observer* of_mechanism_ = nullptr;
  bool is_sampled_ = false;
};

template <class Inner>
class recording : public omitting<recording<Inner>> {
 public:
  struct shared {
    tape_writer& tape;
    pool_mapping mapping;
    typename Inner::shared inner;

    template <class... Arguments>
    shared(tape_writer& t, const pool_mapping& r, Arguments&&... inner_arguments)
        : tape(t), mapping(r), inner{std::forward<Arguments>(inner_arguments)...} {}

    // Who is told of the loads of a log's transactions; the mechanism's own if the tape records
    // none. Called by one thread at a time.
    detail::load_observer* record_loads(unsigned log, detail::load_observer* of_mechanism) {
      if (!tape.records_loads()) return of_mechanism;
      while (recorders.size() <= log) recorders.emplace_back();
      return recorders[log].watch(of_mechanism);
    }
    // Writes the loads of a log that came before its next event. Called under the tape's lock.
    void write_loads(unsigned log) {
      if (log < recorders.size()) recorders[log].write_to(tape, log);
    }

    std::deque<load_recorder> recorders;  // by log
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
  void bulk_persist(std::span<const range> ranges) {
    this->drop_held_line();
    const tape_writer::scoped_lock lock(shared_.tape);
    for (const range& r : ranges) write(tape_op::bulk, r.begin, r.size, nullptr);
    inner_.bulk_persist(ranges);
  }
  void note(tape_mark m, std::uint64_t argument) {
    const tape_writer::scoped_lock lock(shared_.tape);
    const auto op =
        static_cast<tape_op>(static_cast<unsigned>(tape_op::tx_begin) + static_cast<unsigned>(m));
    event(op, argument, 0);
    if (m == tape_mark::invoked && thread_ < shared_.recorders.size())
      shared_.recorders[thread_].begin_operation();
  }
  bool failed() const noexcept { return inner_.failed(); }

 private:
  friend omitting<recording>;
  void stream_now(void* to, const void* from, std::size_t size) {
    const tape_writer::scoped_lock lock(shared_.tape);
    inner_.stream(to, from, size);
    write(tape_op::stream, to, size, from);
  }
  void flush_now(const void* at, std::size_t size) {
    const tape_writer::scoped_lock lock(shared_.tape);
    inner_.flush(at, size);
    write(tape_op::flush, at, size, nullptr);
  }
  // The event comes first, so that the tape has a crash point just before the fence.
  void fence_now() {
    const tape_writer::scoped_lock lock(shared_.tape);
    event(tape_op::fence, 0, 0);
    inner_.fence();
  }
  // The tape has pool offsets, also where home is mapped at another address.
  void write(tape_op op, const void* at, std::size_t size, const void* bytes) {
    const auto offset =
        static_cast<std::uint64_t>(static_cast<const std::byte*>(at) - shared_.mapping.base);
    event(op, offset, static_cast<std::uint32_t>(size), bytes);
  }
  void event(tape_op op, std::uint64_t address, std::uint32_t size, const void* bytes = nullptr) {
    shared_.write_loads(thread_);
    shared_.tape.event(op, thread_, address, size, bytes);
  }

  shared& shared_;
  unsigned thread_;
  Inner inner_;

 public:
  counters& count;
};

}  // namespace stele::media
