// file: an ordinary file on a disk. The page cache plays the processor cache's part; a fence is a write of what was flushed.
//
// Header and logs are private memory; a fence writes their blocks directly and synchronously, so that a commit neither drags
// home's dirty pages along nor waits for them. Home is a shared mapping that only a sync makes durable (persist_home). The
// file has its full size from the start, so no commit changes metadata. Threads that fence at once write at once: the kernel
// merges their device flushes, which is the group commit (docs/decisions/6-file-medium.md). Two writes of one block never overlap:
// the later one, which holds what both threads have stored, waits. A write or sync that fails is not tried again: failed()
// from then on. Nothing here allocates once a medium is made, so no commit fails half-way for want of memory.
#pragma once

#include <media/media.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <mutex>

namespace stele::media {

class file_writer {
 public:
  static constexpr std::size_t block_size = 4096;

  // Blocks of header and logs, in runs of neighbours. Holds few runs: who needs more writes those that are there.
  class block_runs {
   public:
    struct run {
      std::uint64_t first, end;  // block numbers
    };
    // False: full.
    bool add(std::uint64_t block) noexcept {
      for (std::size_t i = count_; i-- > 0;) {
        if (block >= runs_[i].first && block < runs_[i].end) return true;
        if (block == runs_[i].end) return ++runs_[i].end, true;
      }
      if (count_ == runs_.size()) return false;
      runs_[count_++] = {block, block + 1};
      return true;
    }
    bool empty() const noexcept { return count_ == 0; }
    void clear() noexcept { count_ = 0; }
    std::span<const run> all() const noexcept { return {runs_.data(), count_}; }

   private:
    std::array<run, 8> runs_{};
    std::size_t count_ = 0;
  };

  explicit file_writer(const region& where);
  ~file_writer();
  file_writer(const file_writer&) = delete;
  file_writer& operator=(const file_writer&) = delete;

  // These blocks, as they are now or later, are durable when it returns, unless failed(). Thread-safe.
  void persist(const block_runs& blocks) noexcept;
  // All that was stored to home is durable when it returns, unless failed(). Thread-safe; does not hold up persist().
  void persist_home() noexcept;
  bool failed() const noexcept { return failed_.load(std::memory_order_acquire); }
  const region& where() const noexcept { return where_; }

 private:
  // On the stack of the thread that writes.
  struct writing {
    std::span<const block_runs::run> runs;
    writing* next = nullptr;
  };
  bool in_the_way(const writing& mine) const noexcept;
  bool write(std::span<const block_runs::run> runs) noexcept;
  bool write_home_back(std::uint64_t at, std::uint64_t size) const noexcept;
  bool sync_home() const noexcept;

  region where_;
  int direct_ = -1;  // O_DIRECT where the file system has it
  std::mutex mutex_;
  std::condition_variable done_;
  writing* writing_ = nullptr;  // all that are going on
  std::mutex home_mutex_;
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
  void stream(void* to, const void* from, std::size_t size) noexcept {
    store_units(to, from, size);
    note_range(to, size);
    count.streamed_bytes += size;
  }
  void flush(const void* at, std::size_t size) noexcept {
    note_range(at, size);
    count.flushed_lines += lines_of(at, size);
  }
  void fence() noexcept {
    ++count.fences;
    if (!blocks_.empty()) writer_.persist(blocks_);
    blocks_.clear();
    if (home_) writer_.persist_home();
    home_ = false;
  }
  void bulk_persist(std::span<const range> ranges) noexcept {
    for (const range& r : ranges) note_range(r.begin, r.size);
    fence();
  }
  void note(mark, std::uint64_t) noexcept {}
  bool failed() const noexcept { return writer_.failed(); }

 private:
  void note_range(const void* at, std::size_t size) noexcept {
    const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(at) - writer_.where().base);
    if (offset >= writer_.where().home_offset) {
      home_ = true;
      return;
    }
    for (std::size_t b = offset / file_writer::block_size; b <= (offset + size - 1) / file_writer::block_size; ++b) {
      if (blocks_.add(b)) continue;
      writer_.persist(blocks_);  // early: as an eviction may at any time
      blocks_.clear();
      blocks_.add(b);
    }
  }

  file_writer& writer_;
  file_writer::block_runs blocks_;
  bool home_ = false;

 public:
  counters count;
};
static_assert(medium<file>);

}  // namespace stele::media
