// Records a run on a real pool file as a tape, by its system calls: what each write and sync makes
// durable, and when.
//
// A store on the tape goes to a page of the kernel's cache. It is a store to the mapped home, or a
// write that does not wait. The medium reports stores to home; at each sync and write the recorder
// searches the home for unreported ones. A write that waits for the device (O_DSYNC) is a stream,
// and a fence when it returns. A sync is a flush, and a fence when it returns. Reserving space is a
// store to the word behind the image, which holds the file's length. A write-back promises nothing
// and is not on the tape. A failed call has no fence. Pages that were dirty when a sync or
// write-back failed are in no later sync: the kernel takes them for clean. A run has at most one
// such fault (file_faults.h). The mark `invoked` also stands where a nameless file is about to get
// its name. sector_model.h reads the tape.
//
// The recorder hooks all calls of the process while it lives, so there is one pool at a time. Once
// its file is mapped, calls on other files, such as a backup's, are made and not recorded.
#pragma once

#include <explore/file_faults.h>
#include <lab_media/observed.h>
#include <lab_media/tape.h>
#include <media/os.h>

#include <sys/types.h>

#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace stele::explore {

class file_recorder final : public media::os::syscall_hook, public media::store_observer {
 public:
  // `at_start` is the file's content; all of it is durable.
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

  // The pool has been closed; another session of it may follow.
  void forget_mapping() noexcept { base_ = nullptr, mapped_ = 0; }

  // Whether the fault has happened.
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

  static constexpr unsigned unfenced_thread = 999;  // gets the writes that failed; it has no fence

  unsigned this_thread();
  bool is_of_another_file(const media::os::request& r) const noexcept;
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
  std::vector<std::byte> kernel_view_;  // the file's content as the kernel would show it
  const std::byte* base_ = nullptr;
  std::uint64_t home_offset_ = 0, mapped_ = 0;  // home is mapped from home_offset_ to mapped_
  ino_t pool_inode_ = 0;                        // of the file that was mapped
  const std::uint64_t length_offset_;
  file_faults faults_;
  std::set<std::uint64_t> dirty_;  // pages changed since the last sync began
  std::vector<std::thread::id> threads_;
};

}  // namespace stele::explore
