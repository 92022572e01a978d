// What records change of the sums of home's blocks: docs/protocol/sums.md.
//
// A record says of each stretch of its words that lie in one block what they weighed before, or of each block; what they weigh since
// follows from the words themselves. So what a block's sum is to be after some records is known without a look at the block. A block that a record names which
// does not say so is unknown. Source of nothing: the bookkeeping of a linear checksum.
#pragma once

#include <format/block_sums.h>
#include <tx/log/record.h>

#include <unordered_map>

namespace stele::detail {

class sum_changes {
 public:
  struct change {
    std::uint64_t by = 0;  // modulo 2^64
    bool known = true;
  };

  bool empty() const noexcept { return blocks_.empty(); }
  void clear() noexcept { blocks_.clear(); }

  // Counts a record in, by its payload. Errors: corrupt. Throws std::bad_alloc with some of it counted in: nothing is known any more.
  [[nodiscard]] result<> add(const storage::pool_file& file, std::span<const std::uint64_t> payload) {
    stretches_.clear();
    of_blocks_.clear();
    std::size_t told = 0;
    const auto runs = for_each_logged_run(
        file, payload, [&](format::run_head head, const std::uint64_t* words) { add_run(head, words); },
        [&](std::uint64_t block, std::uint64_t before) {
          if (block != 0) return void(of_blocks_[block] += before);
          if (told < stretches_.size()) stretches_[told].by -= before;
          ++told;
        });
    if (!runs) return runs;
    const bool known = told == stretches_.size();
    for (const stretch& s : stretches_) {
      change& c = blocks_[s.block];
      c.by += s.by;
      c.known = c.known && (known || of_blocks_.contains(s.block));
    }
    for (const auto& [block, before] : of_blocks_)
      if (const auto named = blocks_.find(block); named != blocks_.end()) named->second.by -= before;
    return {};
  }

  // each(block, change)
  template <class Each>
  void for_each(Each&& each) const {
    for (const auto& [block, c] : blocks_) each(block, c);
  }

 private:
  struct stretch {
    std::uint64_t block, by;
  };
  void add_run(format::run_head head, const std::uint64_t* words) {
    for (std::uint32_t i = 0; i < head.count; ++i) {
      const std::uint64_t offset = head.offset + 8 * i, block = offset / format::sum_block_size * format::sum_block_size;
      if (stretches_.empty() || stretches_.back().block != block) stretches_.push_back({block, 0});
      stretches_.back().by += format::weigh(words[i] & spread(head.mask), offset);
    }
  }

  std::unordered_map<std::uint64_t, change> blocks_;
  std::vector<stretch> stretches_;                             // add()'s, like the next
  std::unordered_map<std::uint64_t, std::uint64_t> of_blocks_;
};

}  // namespace stele::detail
