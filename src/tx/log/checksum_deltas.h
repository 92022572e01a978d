// What log records change in the checksums of home's blocks: docs/protocol/sums.md.
//
// A record has the checksum terms that its words had before: one sum for each segment of words in
// one block, or one for each block. The terms after follow from the words themselves. So a block's
// new checksum is known without reading the block. If a record names a block without its old terms,
// the block's delta is unknown. No published source: this is the bookkeeping of a linear checksum.
#pragma once

#include <base/assert.h>
#include <format/block_checksums.h>
#include <tx/log/record.h>

#include <unordered_map>

namespace stele::detail {

class checksum_deltas {
 public:
  struct delta {
    std::uint64_t amount = 0;  // modulo 2^64
    bool known = true;
  };

  bool empty() const noexcept { return blocks_.empty(); }
  void clear() noexcept { blocks_.clear(); }

  // Adds a record, given its payload. Errors: corrupt. Throws std::bad_alloc with the record added
  // in part: no delta is known any more.
  [[nodiscard]] result<> add(const storage::pool_file& file,
                             std::span<const std::uint64_t> payload) {
    segments_.clear();
    old_by_block_.clear();
    std::size_t old_count = 0;
    const auto runs = for_each_logged_run(
        file, payload,
        [&](format::run_header head, const std::uint64_t* words) { add_run(head, words); },
        [&](std::uint64_t block, std::uint64_t before) {
          if (block != 0) return void(old_by_block_[block] += before);
          if (old_count < segments_.size()) segments_[old_count].amount -= before;
          ++old_count;
        });
    if (!runs) return runs;
    const bool known = old_count == segments_.size();
    for (const segment& s : segments_) {
      delta& c = blocks_[s.block];
      c.amount += s.amount;
      c.known = c.known && (known || old_by_block_.contains(s.block));
    }
    for (const auto& [block, before] : old_by_block_)
      if (const auto named = blocks_.find(block); named != blocks_.end())
        named->second.amount -= before;
    return {};
  }

  // Calls each(block, delta).
  template <class Each>
  void for_each(Each&& each) const {
    for (const auto& [block, c] : blocks_) each(block, c);
  }

 private:
  struct segment {
    std::uint64_t block, amount;
  };
  void add_run(format::run_header head, const std::uint64_t* words) {
    STELE_ASSERT(head.count != 0 && (head.count == 1 || head.mask == 0xFF));
    for (std::uint32_t i = 0; i < head.count; ++i) {
      const std::uint64_t offset = head.offset + 8 * i,
                          block =
                              offset / format::checksum_block_size * format::checksum_block_size;
      if (segments_.empty() || segments_.back().block != block) segments_.push_back({block, 0});
      segments_.back().amount += format::checksum_term(words[i] & expand_mask(head.mask), offset);
    }
  }

  std::unordered_map<std::uint64_t, delta> blocks_;
  std::vector<segment> segments_;  // used by add(), like the next
  std::unordered_map<std::uint64_t, std::uint64_t> old_by_block_;
};

}  // namespace stele::detail
