// Direct, synchronous block writes for logs, fdatasync for home, and group commit among threads.
#include <fcntl.h>
#include <media/file.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>

namespace stele::media {

file_writer::file_writer(const region& where) : where_(where) {
  direct_ = ::open(where.path.c_str(), O_RDWR | O_DIRECT | O_DSYNC | O_CLOEXEC | O_NOFOLLOW);
  if (direct_ < 0) direct_ = ::open(where.path.c_str(), O_RDWR | O_DSYNC | O_CLOEXEC | O_NOFOLLOW);
  if (direct_ < 0) failed_.store(true);
}

file_writer::~file_writer() {
  if (direct_ >= 0) ::close(direct_);
}

// Neighbouring blocks go out together.
bool file_writer::write_blocks(std::vector<std::uint32_t>& blocks) {
  std::ranges::sort(blocks);
  blocks.erase(std::unique(blocks.begin(), blocks.end()), blocks.end());
  for (std::size_t i = 0; i < blocks.size();) {
    std::size_t end = i + 1;
    while (end < blocks.size() && blocks[end] == blocks[end - 1] + 1) ++end;
    const std::size_t from = blocks[i] * block_size, size = (end - i) * block_size;
    for (std::size_t done = 0; done < size;) {
      const ssize_t n = ::pwrite(direct_, where_.base + from + done, size - done, static_cast<off_t>(from + done));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      done += static_cast<std::size_t>(n);
    }
    i = end;
  }
  return true;
}

void file_writer::persist(std::vector<std::uint32_t>& blocks, bool home) {
  std::unique_lock hold(mutex_);
  queue_.insert(queue_.end(), blocks.begin(), blocks.end());
  queue_home_ = queue_home_ || home;
  const std::uint64_t mine = asked_ + 1;  // the round that will carry these
  while (finished_ < mine && !failed()) {
    if (writing_) {
      done_.wait(hold);
      continue;
    }
    writing_ = true;
    const std::uint64_t round = ++asked_;
    std::vector<std::uint32_t> batch = std::move(queue_);
    queue_.clear();
    const bool with_home = std::exchange(queue_home_, false);
    hold.unlock();
    const bool written = write_blocks(batch) && (!with_home || ::fdatasync(where_.fd) == 0);
    hold.lock();
    if (!written) failed_.store(true, std::memory_order_release);  // what reached the device is unknown; never retried
    finished_ = round;
    writing_ = false;
    done_.notify_all();
  }
}

}  // namespace stele::media
