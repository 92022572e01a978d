// Operations on the block checksums of a pool (format/block_checksums.h): compute, update, verify.
//
// Invariant while a mechanism maintains them (docs/protocol/sums.md): on media the checksum of a
// block matches its content, unless a record above the watermark names a line of the block. Thread
// safety: one thread at a time updates checksums; other threads may store home meanwhile.
#pragma once

#include <base/assert.h>
#include <format/block_checksums.h>
#include <pool/heap.h>
#include <pool/pool_file.h>
#include <stele/progress.h>

#include <functional>

namespace stele::storage {

class block_checksums {
 public:
  explicit block_checksums(const pool_file& file) noexcept : file_(file) {}

  bool present() const noexcept { return file_.header().block_checksums_offset != 0; }
  // Of a pool without block checksums: none. Errors: corrupt.
  [[nodiscard]] result<format::block_checksum_state> state() const;
  // Whether block checksums count: no session changed home without updating them. Errors: corrupt.
  [[nodiscard]] result<bool> valid() const {
    const auto now = state();
    if (!now) return std::unexpected(now.error());
    return *now != format::block_checksum_state::none;
  }

  std::uint64_t block_of(std::uint64_t offset) const noexcept {
    STELE_ASSERT(offset >= file_.header().home_offset);
    return offset - (offset - file_.header().home_offset) % format::checksum_block_size;
  }
  // The blocks that hold the checksums have none.
  bool has_checksum(std::uint64_t block) const noexcept {
    const auto& h = file_.header();
    STELE_ASSERT(present() && is_block(block));
    return block + format::checksum_block_size <= h.block_checksums_offset ||
           block >=
               h.block_checksums_offset + 8 * format::block_checksum_count(h.size - h.home_offset);
  }
  std::uint64_t compute(std::uint64_t block) const noexcept {
    STELE_ASSERT(is_block(block));
    return format::compute_block_checksum(file_.at(block), file_.header().id, block);
  }
  std::byte* slot(std::uint64_t block) const noexcept {
    const auto& h = file_.header();
    STELE_ASSERT(present() && is_block(block) && block < h.size);
    return file_.at(h.block_checksums_offset +
                    8 * ((block - h.home_offset) / format::checksum_block_size));
  }
  std::uint64_t stored(std::uint64_t block) const noexcept {
    std::uint64_t sum;
    std::memcpy(&sum, slot(block), 8);
    return sum;
  }

  // Stores the checksum of the block's present content through a medium; durable after its next
  // fence.
  template <class Media>
  void recompute(Media& m, std::uint64_t block) const {
    if (has_checksum(block)) write(m, block, compute(block));
  }
  // Adds `by` to a block's checksum. A checksum that is unknown stays unknown.
  template <class Media>
  void apply_delta(Media& m, std::uint64_t block, std::uint64_t by) const {
    const std::uint64_t before = stored(block);
    if (!has_checksum(block) || before == format::block_checksum_unknown) return;
    write(m, block,
          (before == format::block_checksum_never_written
               ? format::zero_block_checksum(file_.header().id, block)
               : before) +
              by);
  }
  template <class Media>
  void set(Media& m, std::uint64_t block, std::uint64_t sum) const {
    if (has_checksum(block)) write(m, block, sum);
  }
  // Stores a checksum in the format of an earlier program.
  template <class Media>
  void recompute_legacy(Media& m, std::uint64_t block) const {
    if (has_checksum(block))
      write(m, block,
            format::compute_legacy_block_checksum(file_.at(block), file_.header().id, block));
  }
  // Makes the checksums of a range unknown; durable after the medium's next fence.
  template <class Media>
  void invalidate(Media& m, std::uint64_t offset, std::uint64_t bytes) const {
    // sums.md S6, S1: of free chunks, which hold no checksums.
    STELE_ASSERT(bytes != 0 && is_block(offset));
    for (std::uint64_t block = block_of(offset); block < offset + bytes;
         block += format::checksum_block_size) {
      STELE_ASSERT(has_checksum(block) && !is_table(block));
      write(m, block, format::block_checksum_unknown);
    }
  }
  // Recomputes the checksums of everything in use. Those of free chunks become unknown, or are
  // kept.
  template <class Media>
  [[nodiscard]] result<> recompute_all(Media& m, const heap& heap, bool keep_free) const {
    STELE_ASSERT(present());
    if (!keep_free)
      if (auto walked = heap.for_each_free_run(
              [&](std::uint64_t from, std::uint64_t bytes) { invalidate(m, from, bytes); });
          !walked)
        return walked;
    return for_each_block(heap, [&](std::uint64_t block) { recompute(m, block); });
  }

  // Verifies every block in use. Errors: corrupt, naming a damaged range and the number of other
  // damaged blocks; cancelled.
  [[nodiscard]] result<> verify(const heap& heap, const progress& on_progress = {}) const;
  // Calls each(block) for every block in use that is not what its checksum says. Precondition:
  // checksums count. Errors: corrupt, if the chunk table is; cancelled.
  [[nodiscard]] result<> for_each_mismatch(const heap& heap, const progress& on_progress,
                                           const std::function<void(std::uint64_t)>& each) const;

  // The blocks behind the chunks of a grown pool as it was created, at most as many as a chunk has;
  // none of another pool. Programs older than 2026-11-28 left wrong checksums here when a pool grew
  // again (docs/protocol/repair.md).
  struct block_range {
    std::uint64_t first = 0, end = 0;
    bool contains(std::uint64_t block) const noexcept { return block >= first && block < end; }
  };
  block_range first_tail() const noexcept;
  // A block of it whose checksum may be wrong: the chunk table always has its own.
  bool may_lack_checksum(std::uint64_t block) const noexcept {
    return first_tail().contains(block) && !is_table(block);
  }

  // Calls each(block) for every block of home header, chunk table and chunks in use. Errors:
  // corrupt, if the chunk table is.
  template <class Each>
  [[nodiscard]] result<> for_each_block(const heap& heap, Each&& each) const {
    const auto& h = file_.header();
    const auto range = [&](std::uint64_t from, std::uint64_t bytes) {
      for (std::uint64_t block = block_of(from); block < from + bytes;
           block += format::checksum_block_size)
        each(block);
    };
    // The table lies behind the home header, at first in the same block; of a grown pool, in
    // chunks.
    const std::uint64_t end = h.table_offset < h.chunks_offset
                                  ? h.table_offset + 8 * h.chunk_count
                                  : h.home_offset + sizeof(format::home_header);
    STELE_ASSERT(end > h.home_offset && end <= h.chunks_offset);
    range(h.home_offset, end - h.home_offset);
    return heap.for_each_used_run(range);
  }

 private:
  // Home header and chunk table. They are stored before any checksum counts, so they always have
  // one.
  bool is_table(std::uint64_t block) const noexcept {
    const auto& h = file_.header();
    return block < h.chunks_offset || (block + format::checksum_block_size > h.table_offset &&
                                       block < h.table_offset + 8 * h.chunk_count);
  }
  // A predicate of assertions.
  bool is_block(std::uint64_t offset) const noexcept {
    const std::uint64_t home = file_.header().home_offset;
    return offset >= home && (offset - home) % format::checksum_block_size == 0;
  }
  bool matches(std::uint64_t block) const noexcept;
  bool matches_legacy(std::uint64_t block) const noexcept;

  template <class Media>
  void write(Media& m, std::uint64_t block, std::uint64_t sum) const {
    if (stored(block) == sum) return;
    STELE_ASSERT(reinterpret_cast<std::uintptr_t>(slot(block)) % 8 == 0);  // atomic unit: the word
    m.store(slot(block), &sum, 8);
    m.flush(slot(block), 8);
  }

  const pool_file& file_;
};

}  // namespace stele::storage
