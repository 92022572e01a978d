// What the process that has a pool open does for readers in other processes: step A2, and the long
// reads whose pages it keeps in shared memory, of docs/protocol/readers.md. By what way the readers
// ask is another's: the sockets of reader_server.
//
// Used by one thread, which runs no transaction.
#pragma once

#include <base/assert.h>
#include <tx/page_snapshot.h>
#include <tx/readers/shared_memory.h>
#include <tx/transaction/snapshot.h>

#include <memory>

namespace stele::storage {
class pool_file;
}

namespace stele::detail {

class runtime;

// Where the kept pages of a moment are: a byte for each page of the pool, then the pages.
struct kept_layout {
  enum mark : std::uint8_t { in_home, kept, lost };  // lost: there was no memory to keep it
  std::uint64_t pages;
  // Else bytes() overflows.
  bool is_possible() const noexcept { return pages < std::uint64_t{1} << 50; }
  std::uint64_t pages_offset() const noexcept {
    STELE_ASSERT(is_possible());
    return (pages + page_snapshot::page_size - 1) / page_snapshot::page_size *
           page_snapshot::page_size;
  }
  std::uint64_t bytes() const noexcept { return pages_offset() + pages * page_snapshot::page_size; }
};

// The pages of home that were stored to since the moment, as they were then.
class kept_pages final : public home_snapshot {
 public:
  // Of no pages before keep_home().
  kept_pages(const storage::pool_file& file, std::uint64_t its_number) noexcept;

  result<> keep_home(std::uint64_t bytes) override;
  const kept_layout& layout() const noexcept { return layout_; }
  int fd() const noexcept { return memory_.fd(); }

  const std::uint64_t number;

 private:
  void copy_before_store(std::uint64_t offset) noexcept override;

  const std::byte* const home_;
  const std::uint64_t home_offset_;
  std::uint64_t pool_bytes_ = 0;
  kept_layout layout_{};
  shared_memory memory_;
};

class reader_service {
 public:
  explicit reader_service(runtime& r) noexcept : runtime_(r) {}

  // A2 for the first reader. Errors: unsupported, of a pool without locks; full.
  [[nodiscard]] result<> add_reader();
  // After the last one, transactions use their own locks again.
  void remove_reader() noexcept;
  const shared_memory& locks() const noexcept { return locks_; }
  // Makes deferred commits durable, and releases the locks of idle threads.
  void settle() noexcept;
  // L1 and L2. Errors: full; in_use, when there are too many long reads.
  [[nodiscard]] result<std::unique_ptr<kept_pages>> begin_moment();
  void end_moment(kept_pages& m) noexcept;  // L5

 private:
  runtime& runtime_;
  shared_memory locks_;  // made for the first reader
  unsigned readers_ = 0;
  std::uint64_t next_moment_ = 0;
};

}  // namespace stele::detail
