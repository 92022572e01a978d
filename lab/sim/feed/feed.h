// Reads the events of a tape for each hardware thread, in their order, in bounded memory.
//
// The tape is read in chunks; each is sorted by thread once. Threads advance at their own pace. A
// chunk is kept until all threads have passed it, but at most `max_chunks` are kept; a dropped
// chunk is read again for a thread that lags behind. The image of memory at the beginning belongs
// to no thread and is passed to on_image.
//
// What belongs to no log of a pool (truncations, control words) has a thread number of its own on
// the tape. The thread whose operation was last invoked does it, so its feed gets it; before the
// first operation, a thread of that number or thread 0. Events are checked as they are read
// (tape_order.h).
#pragma once

#include <lab_media/tape.h>
#include <sim/feed/tape_order.h>

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace stele::sim {

struct tape_item {
  media::tape_record record;
  const std::byte* bytes = nullptr;  // of a store, if the tape has them
};

// The bytes of a machine's memories that a tape may access.
struct address_space {
  std::uint64_t nonvolatile_bytes = ~std::uint64_t{0}, volatile_bytes = nonvolatile_bytes;

  bool holds(const media::tape_record& r) const noexcept;
};

class feed {
 public:
  static constexpr std::size_t chunk_events = 1 << 14, max_chunks = 96;

  // An event of a thread number at or above `max_threads` is an error (invalid_argument; corrupt,
  // when it is at or above the number of threads that the tape says it has). Errors:
  // those of tape_reader; corrupt, when the tape does not say how many threads it has.
  [[nodiscard]] static result<feed> open(const std::string& path, unsigned max_threads);
  // `tape` must outlive the feed.
  [[nodiscard]] static result<feed> over(std::span<const std::byte> tape, unsigned max_threads);

  // Accesses beyond `space` are errors from now on (invalid_argument). A tape whose header does not
  // say that all accesses are within it, and that there are threads enough, is read once to the
  // end, so that the error comes before a run. Call before next().
  [[nodiscard]] result<> set_space(const address_space& space);

  const media::tape_header& header() const { return reader_.header(); }
  unsigned threads() const noexcept { return static_cast<unsigned>(cursors_.size()); }

  // The next events of a thread, several at once; valid until the next call for this thread. Empty
  // at the end, or after an error, which status() returns.
  std::span<const tape_item> next(unsigned thread);
  const result<>& status() const noexcept { return status_; }
  // What next() returned last for this thread.
  std::span<const tape_item> current(unsigned thread) const noexcept {
    const auto& c = cursors_[thread].current;
    return c == nullptr ? std::span<const tape_item>() : c->of[thread];
  }
  // Whether an event may be on this tape, for this machine.
  bool may_have(const media::tape_record& r) const noexcept { return space_.holds(r); }

  // Reading, the chunks in use are read from the tape again; an error of that is in status().
  void visit_state(archive& a);  // feed_state.cc
  // Called for each image, in order: (offset, bytes).
  std::function<void(std::uint64_t offset, std::span<const std::byte> bytes)> on_image;
  // Events and bytes of the tape read so far.
  std::uint64_t events() const noexcept { return events_; }
  std::uint64_t bytes() const noexcept { return end_.place.byte; }

 private:
  struct chunk {
    std::vector<std::vector<tape_item>> of;  // by thread
    std::vector<std::unique_ptr<std::byte[]>> payloads;
    unsigned readers_left = 0;  // threads that have not passed the chunk
  };
  struct cursor {
    std::size_t number = 0;  // of the next chunk
    std::shared_ptr<const chunk> current;
  };

  feed(media::tape_reader reader, unsigned threads);
  [[nodiscard]] static result<feed> make(media::tape_reader reader, unsigned max_threads);
  std::shared_ptr<const chunk> get(std::size_t number);
  std::shared_ptr<chunk> read_chunk(bool first_time);
  std::shared_ptr<chunk> new_chunk();
  std::size_t read_plain_events(chunk& c, std::size_t most, bool first_time);
  unsigned thread_of(const media::tape_record& r) noexcept;
  void append(chunk& c, const tape_item& item, std::uint64_t event, bool first_time);
  void append_event(chunk& c, const media::tape_event& e, std::uint64_t event, bool first_time);
  void release_chunk(std::size_t number);
  std::shared_ptr<chunk> read_again(std::size_t number);
  void read_chunks_in_use(archive& a, const std::vector<bool>& kept, const std::vector<bool>& has);

  [[nodiscard]] std::unexpected<error> beyond_space(const media::tape_record& r) const;
  [[nodiscard]] std::unexpected<error> beyond_threads(unsigned thread, std::uint64_t event) const;
  [[nodiscard]] result<> check(const media::tape_record& r, tape_order& order, std::uint64_t event);
  bool admit(const media::tape_record& r);

  media::tape_reader reader_;
  address_space space_;
  tape_order order_;
  std::vector<cursor> cursors_;
  std::deque<std::shared_ptr<chunk>> chunks_;  // numbers from first_ on; null: dropped
  std::shared_ptr<chunk> free_chunk_;          // the last dropped one, reused for its grown vectors
  struct chunk_start {
    media::tape_reader::position place;
    unsigned operation_thread = no_thread;
    void visit_state(archive& a);
  };
  static constexpr unsigned no_thread = ~0u;

  std::vector<chunk_start> chunk_starts_;
  chunk_start end_;  // the end of the part read so far
  std::size_t first_ = 0;
  const unsigned thread_without_log_;      // on the tape; no_thread: each has a log
  unsigned operation_thread_ = no_thread;  // whose operation was last invoked
  std::uint64_t events_ = 0;
  bool ended_ = false;
  result<> status_;
};

}  // namespace stele::sim
