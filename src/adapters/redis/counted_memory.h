// Makes the server count the pool's bytes as used memory, so that `maxmemory`, its policies and OOM
// hold for them. Redis counts what its allocator has given out, so this allocates blocks of as many
// bytes and does not touch them: they take address space, but no memory. Main thread only.
#pragma once

#include <cstddef>
#include <vector>

namespace stele::redis {

class counted_memory {
 public:
  counted_memory() = default;
  counted_memory(const counted_memory&) = delete;
  counted_memory& operator=(const counted_memory&) = delete;

  // Whether the server has a limit. Without one nothing is counted.
  bool is_on() const noexcept { return is_on_; }
  void turn(bool on);
  // This many bytes count, within `small`; fewer if the allocator has no more address space.
  void set(std::size_t bytes);
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  static constexpr std::size_t small = std::size_t{4} << 10, large = std::size_t{1} << 20;

  bool grow_by(std::vector<void*>& blocks, std::size_t size);
  void shrink_by(std::vector<void*>& blocks, std::size_t size);

  std::vector<void*> small_, large_;
  std::size_t bytes_ = 0, held_ = 0;  // to be counted; in the blocks
  bool is_on_ = false;
};

}  // namespace stele::redis
