// file: an ordinary file on a disk. The page cache plays the processor cache's part; a fence is a sync of what was flushed.
//
// Header and logs are private memory, written out by direct, synchronous writes of their blocks at a fence, so that a commit
// does not drag home's dirty pages along; home is a shared mapping that only fdatasync makes durable. The file has its
// full size from the start, so no sync changes metadata. Threads that fence at once share one round of writes: a leader writes what
// all have flushed (group commit). A write or sync that fails is not tried again: failed() from then on.
#pragma once

#include <media/media.h>

#include <condition_variable>
#include <mutex>
#include <vector>

namespace stele::media {

class file_writer {
 public:
  explicit file_writer(const region& where);
  ~file_writer();
  file_writer(const file_writer&) = delete;
  file_writer& operator=(const file_writer&) = delete;

  // Makes the blocks (numbers) of header and logs durable, and all of home when asked; returns when they are. Thread-safe.
  void persist(std::vector<std::uint32_t>& blocks, bool home);
  bool failed() const noexcept { return failed_.load(std::memory_order_acquire); }
  const region& where() const noexcept { return where_; }

  static constexpr std::size_t block_size = 4096;

 private:
  bool write_blocks(std::vector<std::uint32_t>& blocks);

  region where_;
  int direct_ = -1;  // O_DIRECT where the file system has it, else the pool's own descriptor
  std::mutex mutex_;
  std::condition_variable done_;
  std::vector<std::uint32_t> queue_;
  bool queue_home_ = false;
  bool writing_ = false;
  std::uint64_t asked_ = 0, finished_ = 0;  // rounds
  std::atomic<bool> failed_{false};
};

class file {
 public:
  struct shared {
    explicit shared(const region& where) : writer(where) {}
    file_writer writer;
  };
  static constexpr bool explores = false;
  static constexpr auto whole_cache = media::whole_cache::best;

  file(shared& s, unsigned) : writer_(s.writer) {}

  void store(void* to, const void* from, std::size_t size) noexcept {
    store_units(to, from, size);
    count.stored_bytes += size;
  }
  void stream(void* to, const void* from, std::size_t size) {
    store_units(to, from, size);
    note_range(to, size);
    count.streamed_bytes += size;
  }
  void flush(const void* at, std::size_t size) {
    note_range(at, size);
    count.flushed_lines += lines_of(at, size);
  }
  void fence() {
    ++count.fences;
    if (blocks_.empty() && !home_) return;
    writer_.persist(blocks_, home_);
    blocks_.clear();
    home_ = false;
  }
  void bulk_persist(std::span<const range> ranges) {
    for (const range& r : ranges) note_range(r.begin, r.size);
    fence();
  }
  void note(mark, std::uint64_t) noexcept {}
  bool failed() const noexcept { return writer_.failed(); }

 private:
  void note_range(const void* at, std::size_t size) {
    const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(at) - writer_.where().base);
    if (offset >= writer_.where().home_offset) {
      home_ = true;
      return;
    }
    for (std::size_t b = offset / file_writer::block_size; b <= (offset + size - 1) / file_writer::block_size; ++b)
      if (blocks_.empty() || blocks_.back() != b) blocks_.push_back(static_cast<std::uint32_t>(b));
  }

  file_writer& writer_;
  std::vector<std::uint32_t> blocks_;
  bool home_ = false;

 public:
  counters count;
};
static_assert(medium<file>);

}  // namespace stele::media
