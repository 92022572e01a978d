// What records change of the sums of home's blocks: docs/protocol/sums.md.
//
// A record says of each segment of its words that lie in one block what they weighed before, or of
// each block; what they weigh since follows from the words themselves. So what a block's sum is to
// be after some records is known without a look at the block. A block that a record names which
// does not say so is unknown. Source of nothing: the bookkeeping of a linear checksum.
#pragma once

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

  // Counts a record in, by its payload. Errors: corrupt. Throws std::bad_alloc with some of it
  // counted in: nothing is known any more.
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

  // each(block, delta)
  template <class Each>
  void for_each(Each&& each) const {
    for (const auto& [block, c] : blocks_) each(block, c);
  }

 private:
  struct segment {
    std::uint64_t block, amount;
  };
  void add_run(format::run_header head, const std::uint64_t* words) {
    for (std::uint32_t i = 0; i < head.count; ++i) {
      const std::uint64_t offset = head.offset + 8 * i,
                          block =
                              offset / format::checksum_block_size * format::checksum_block_size;
      if (segments_.empty() || segments_.back().block != block) segments_.push_back({block, 0});
      segments_.back().amount += format::checksum_term(words[i] & expand_mask(head.mask), offset);
    }
  }

  std::unordered_map<std::uint64_t, delta> blocks_;
  std::vector<segment> segments_;  // add()'s, like the next
  std::unordered_map<std::uint64_t, std::uint64_t> old_by_block_;
};

}  // namespace stele::detail
