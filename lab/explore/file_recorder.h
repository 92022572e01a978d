// A run on a real pool file, put on a tape by its system calls: what each write and sync makes
// durable, and when.
//
// On the tape a store is one to a page that the kernel has: of the mapped home (told by the medium;
// what nobody told is found by looking at each sync and write), or a write that does not wait. A
// stream and its fence are a write that waits for the device (O_DSYNC), asked for and returned; a
// flush and its fence are a sync. Reserving space is a store to the word behind the image, which
// holds the file's length. Writing back promises nothing and is not there. A call that fails has no
// fence, and what was dirty when a sync or write-back failed is no later sync's: the kernel takes
// those pages for clean. A run has one such fault at most (file_faults.h). The mark `invoked`
// stands also where a file without a name is about to get one. Media that read the tape:
// sector_model.h.
//
// It watches all calls of the process while it lives: one pool file at a time.
#pragma once

#include <explore/file_faults.h>
#include <media/observed.h>
#include <media/os.h>
#include <media/tape.h>

#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace stele::explore {

class file_recorder final : public media::os::syscall_hook, public media::store_observer {
 public:
  // `at_start` is the file's content, durable.
  file_recorder(media::tape_writer& tape, std::span<const std::byte> at_start,
                std::uint64_t length_offset, file_faults faults);
  ~file_recorder() override { media::os::install_hook(nullptr); }

  int before(const media::os::request& r) noexcept override;
  void after(const media::os::request& r) noexcept override;
  std::size_t bytes_to_write(const media::os::request& r) noexcept override;

  void lock() noexcept override;
  void unlock() noexcept override;
  void store_recorded(const std::byte* base, std::uint64_t home_offset, std::uint64_t offset,
                      std::size_t size) override;
  void mark_recorded(unsigned thread, media::tape_mark m, std::uint64_t argument) override;

  // The fault has struck.
  bool has_failed() const noexcept { return faults_.has_triggered(); }

 private:
  class turn {
   public:
    explicit turn(file_recorder& r) : recorder_(r) { recorder_.lock(); }
    ~turn() { recorder_.unlock(); }
    turn(const turn&) = delete;
    turn& operator=(const turn&) = delete;

   private:
    file_recorder& recorder_;
  };
  static constexpr std::uint64_t page_size = 4096;

  static constexpr unsigned unfenced_thread = 999;  // a thread that has no fence

  unsigned this_thread();
  void find_unreported_stores();
  int write(const media::os::request& r);
  int write_back(const media::os::request& r);
  int sync(const media::os::request& r);
  void extend(std::uint64_t length);
  void change(std::uint64_t offset, const std::byte* bytes, std::size_t size);
  void put(media::tape_op op, unsigned thread, std::uint64_t offset, const std::byte* bytes,
           std::size_t size);
  void dirty(std::uint64_t offset, std::size_t size);

  media::tape_writer& tape_;
  std::mutex mutex_;
  std::vector<std::byte> kernel_view_;  // what the kernel would show of the file
  const std::byte* base_ = nullptr;
  std::uint64_t home_offset_ = 0, mapped_ = 0;  // home is in memory from there to there
  const std::uint64_t length_offset_;
  file_faults faults_;
  std::set<std::uint64_t> dirty_;  // pages, since a sync was last asked for
  std::vector<std::thread::id> threads_;
};

}  // namespace stele::explore
