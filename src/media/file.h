// file: an ordinary file on a disk. The page cache takes the place of the processor cache. A fence
// writes what was flushed.
//
// Header and logs are private memory; a fence writes their blocks directly and synchronously. So a
// commit neither writes home's dirty pages nor waits for them. Home is a shared mapping that only a
// sync makes durable (persist_home). The file has its full size from the start, so no commit
// changes metadata. Threads may fence at the same time: the kernel merges their device flushes,
// which is the group commit (docs/decisions/6-file-medium.md). Two writes of one block never
// overlap: the later one waits; it holds what both threads have stored. A write or sync that fails
// is not retried, and failed() is true from then on. A medium allocates nothing after its
// construction, so no commit fails half-way for lack of memory.
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

  // Blocks of header and logs, in runs of neighbours. Holds 8 runs; a thread that needs more writes
  // those that it has first.
  class block_runs {
   public:
    struct run {
      std::uint64_t first, end;  // block numbers
    };
    // False if there is no room for another run.
    bool add(std::uint64_t block) noexcept {
      for (std::size_t i = count_; i-- > 0;) {
        STELE_ASSERT(runs_[i].first < runs_[i].end);
        if (block >= runs_[i].first && block < runs_[i].end) return true;
        if (block == runs_[i].end) return ++runs_[i].end, true;
      }
      STELE_ASSERT(count_ <= runs_.size());
      if (count_ == runs_.size()) return false;
      runs_[count_++] = {block, block + 1};
      return true;
    }
    bool empty() const noexcept { return count_ == 0; }
    void clear() noexcept { count_ = 0; }
    std::span<const run> all() const noexcept { return {runs_.data(), count_}; }
    bool holds(std::uint64_t block) const noexcept {
      for (const run& r : all())
        if (block >= r.first && block < r.end) return true;
      return false;
    }

   private:
    std::array<run, 8> runs_{};
    std::size_t count_ = 0;
  };

  explicit file_writer(const pool_mapping& mapping);
  ~file_writer();
  // Closes what it has open of the file. It writes no more.
  void close() noexcept;
  file_writer(const file_writer&) = delete;
  file_writer& operator=(const file_writer&) = delete;

  // Unless failed(), these blocks are durable on return, with at least the content that they had at
  // the call. Thread-safe.
  void persist(const block_runs& blocks) noexcept;
  // Unless failed(), everything stored to home before the call is durable on return. Thread-safe;
  // does not delay persist().
  void persist_home() noexcept;
  bool failed() const noexcept { return failed_.load(std::memory_order_acquire); }
  // The errno of the first failure; 0: there is none, or the file was too short.
  int error_number() const noexcept { return error_number_.load(std::memory_order_relaxed); }
  const pool_mapping& mapping() const noexcept { return mapping_; }

 private:
  // Lies on the stack of the thread that writes.
  struct write_in_flight {
    std::span<const block_runs::run> runs;
    write_in_flight* next = nullptr;
  };
  bool overlaps_write_in_flight(const write_in_flight& request) const noexcept;
  std::uint64_t length() const noexcept;
  bool write(std::span<const block_runs::run> runs) noexcept;
  bool write_back_home(std::uint64_t at, std::uint64_t size) const noexcept;
  bool sync_home() const noexcept;
  void fail(int error_number) noexcept;

  pool_mapping mapping_;
  int direct_fd_ = -1;  // O_DIRECT if the file system supports it
  std::mutex mutex_;
  std::condition_variable write_done_;
  write_in_flight* writes_in_flight_ = nullptr;  // writes that have not returned
  std::mutex home_mutex_;
  std::atomic<bool> failed_{false};
  std::atomic<int> error_number_{0};
};

class file {
 public:
  struct shared {
    explicit shared(const pool_mapping& mapping) : writer(mapping) {}
    void leave_to_parent() noexcept { writer.close(); }
    file_writer writer;
  };
  static constexpr bool under_exploration = false;
  static constexpr auto whole_cache = media::whole_cache::preferred;

  file(shared& s, unsigned) : writer_(s.writer) {}

  void store(void* to, const void* from, std::size_t size) noexcept {
    store_untorn(to, from, size);
    count.stored_bytes += size;
  }
  void stream(void* to, const void* from, std::size_t size) noexcept {
    STELE_ASSERT(can_stream(to, from, size));
    store_untorn(to, from, size);
    mark_dirty(to, size);
    count.streamed_bytes += size;
  }
  void flush(const void* at, std::size_t size) noexcept {
    mark_dirty(at, size);
    count.flushed_lines += line_count(at, size);
  }
  void fence() noexcept {
    ++count.fences;
    if (!dirty_blocks_.empty()) writer_.persist(dirty_blocks_);
    dirty_blocks_.clear();
    if (home_dirty_) writer_.persist_home();
    home_dirty_ = false;
  }
  void bulk_persist(std::span<const range> ranges) noexcept {
    for (const range& r : ranges) mark_dirty(r.begin, r.size);
    fence();
  }
  void note(tape_mark, std::uint64_t) noexcept {}
  bool failed() const noexcept { return writer_.failed(); }
  int error_number() const noexcept { return writer_.error_number(); }

 private:
  void mark_dirty(const void* at, std::size_t size) noexcept {
    STELE_ASSERT(static_cast<const std::byte*>(at) >= writer_.mapping().base);
    const auto offset =
        static_cast<std::size_t>(static_cast<const std::byte*>(at) - writer_.mapping().base);
    // Header and logs are private memory, home is a shared mapping: a range lies in one of them.
    STELE_ASSERT(offset >= writer_.mapping().home_offset ||
                 size <= writer_.mapping().home_offset - offset);
    if (offset >= writer_.mapping().home_offset) {
      home_dirty_ = true;
      return;
    }
    for (std::size_t b = offset / file_writer::block_size;
         b <= (offset + size - 1) / file_writer::block_size; ++b) {
      if (dirty_blocks_.add(b)) {
        STELE_ASSERT_WHOLE(dirty_blocks_.holds(b));
        continue;
      }
      writer_.persist(dirty_blocks_);  // early, as a cache may evict a line at any time
      dirty_blocks_.clear();
      dirty_blocks_.add(b);
      STELE_ASSERT_WHOLE(dirty_blocks_.holds(b));
    }
  }

  file_writer& writer_;
  file_writer::block_runs dirty_blocks_;
  bool home_dirty_ = false;

 public:
  counters count;
};
static_assert(medium<file>);

}  // namespace stele::media
