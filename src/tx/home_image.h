// What is left of a pool's home: reads of bytes that may be damaged, and that know which are.
//
// The image is a private copy; the file is only read. A pool that was not closed is recovered on
// the copy. If that is impossible, the image is home as it lies in the file, and a note says so.
// Where block checksums count, a block that does not match its checksum cannot be read. A block
// whose checksum alone is damaged can: one flipped bit of it, or a zeroed checksum of a block that
// is not zero. No address and no length in the pool is trusted. Not thread-safe.
#pragma once

#include <pool/heap.h>
#include <tx/engine.h>
#include <tx/pool_state.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace stele::detail {

class home_image {
 public:
  // Notes get a sentence for each part of the pool that was damaged or had to be guessed. Errors:
  // in_use; corrupt, if nothing can be read: header and copy are damaged, or home is in the logs
  // (log_structured) and these are; those of opening.
  [[nodiscard]] static result<home_image> open(const std::string& path,
                                               std::vector<std::string>& notes);

  const format::pool_header& header() const noexcept { return state_->file.header(); }
  const storage::heap& heap() const noexcept { return state_->heap; }
  const std::string& path() const noexcept { return state_->file.path(); }
  std::string layout() const;
  // Whether block checksums judge what load() returns; a log-structured pool has none of its own,
  // and its recovery has verified its logs.
  bool is_verified() const noexcept { return verified_; }

  // Whether a range lies among the chunks.
  bool has(std::uint64_t offset, std::uint64_t bytes) const noexcept {
    const auto& h = header();
    return offset >= h.chunks_offset && offset < h.offset_end() && bytes <= h.offset_end() - offset;
  }
  // Copies bytes of chunks. False: they are not all there, or damaged.
  [[nodiscard]] bool load(std::uint64_t offset, void* to, std::uint64_t bytes) const;
  [[nodiscard]] std::optional<std::uint64_t> word(std::uint64_t offset) const;
  // Calls each(offset, size) for the blocks that the heap has in use, as far as that can be read.
  void for_each_used_block(const storage::heap::block_visitor& each) const;
  // As the home header says, if that is readable.
  [[nodiscard]] std::optional<std::uint64_t> root() const;

  // The damaged ranges that loads have met, in order.
  [[nodiscard]] std::vector<std::pair<std::uint64_t, std::uint64_t>> damaged_ranges() const;
  // Blocks that loads have met, whose checksums a growth by an older program has left wrong. What
  // they hold counts as sound.
  std::uint64_t unverified_blocks() const noexcept { return unverified_blocks_; }

 private:
  enum class block_state : std::uint8_t { unread, sound, damaged };

  home_image(std::unique_ptr<pool_state> state, std::unique_ptr<engine> home_of);
  void judge_checksums(std::vector<std::string>& notes);
  void judge_root(std::vector<std::string>& notes) const;
  bool is_sound(std::uint64_t block) const;
  block_state judge(std::uint64_t block) const;
  void lose_page_of(std::uint64_t block) const;
  std::uint64_t block_of(std::uint64_t offset) const noexcept;

  std::unique_ptr<pool_state> state_;
  std::unique_ptr<engine> home_of_;  // has home, if that is not in place
  bool verified_ = false, legacy_ = false;
  mutable std::vector<block_state> blocks_;
  mutable std::uint64_t unverified_blocks_ = 0;
};

}  // namespace stele::detail
