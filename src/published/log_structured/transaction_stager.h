// Stages a transaction in a lane's chunk log: which entries it appends, and to which of the three
// logs. Nothing is written yet.
#pragma once

#include <base/assert.h>
#include <pool/heap.h>
#include <published/log_structured/chunk_log.h>
#include <published/log_structured/log_space.h>
#include <tx/transaction.h>

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

namespace stele::detail {

template <class Media>
class transaction_stager {
 public:
  transaction_stager(mapped_home& home, storage::log_space& space, storage::heap& heap,
                     chunk_log<Media>& log)
      : home_(home), space_(space), heap_(heap), log_(log) {}

  // Stages t's stores in order of home, then what it freed. Group update: adjacent words, and
  // adjacent blocks, make one entry.
  void stage(transaction& t) {
    log_.clear();
    order_.clear();
    bool sorted = true;
    for (const written_line& line : t.lines()) {
      sorted = sorted && (order_.empty() || order_.back()->offset < line.offset);
      order_.push_back(&line);
    }
    if (!sorted) std::ranges::sort(order_, {}, &written_line::offset);
    collect_allocated(t);
    // The write set has each line once.
    STELE_ASSERT_WHOLE(std::ranges::adjacent_find(order_, std::ranges::greater_equal(),
                                                  &written_line::offset) == order_.end());
    for (const written_line* line : order_) stage_line(*line);
    STELE_ASSERT_WHOLE(is_in_order());
    const auto& changes = t.allocations();
    stage_freed_blocks(changes.freed);
    for (const auto& r : changes.runs_freed)
      if (!r.slab) stage_free(heap_.range_of(r), !changes.runs_allocated.empty());
  }

 private:
  using entry = typename chunk_log<Media>::entry;
  // Indexes of the logs of a lane.
  enum : std::uint8_t { updates, allocations, frees };

  // Whether the staged entries are in order of home, without overlap, and have all words that were
  // appended. Before the frees; only for assertions.
  [[maybe_unused]] bool is_in_order() const noexcept {
    std::uint64_t end = 0, words = 0;
    for (const entry& e : log_.staged) {
      if (e.home < end || e.words == 0 || e.from != words) return false;
      end = e.home + e.words;
      words += e.words;
    }
    return words == log_.words_appended();
  }
  void collect_allocated(const transaction& t) {
    taken_.clear();
    if (!space_.options.separate_logs) return;
    auto add = [&](std::pair<std::uint64_t, std::size_t> range) {
      taken_.push_back({space_.home_of(range.first), space_.home_of(range.first + range.second)});
    };
    for (const auto& b : t.allocations().allocated) add(heap_.range_of(b));
    for (const auto& r : t.allocations().runs_allocated)
      if (!r.slab) add(heap_.range_of(r));
    std::ranges::sort(taken_);
  }
  std::uint8_t log_of(std::uint64_t home) const noexcept {
    if (taken_.empty()) return updates;
    const auto after =
        std::ranges::upper_bound(taken_, home, {}, &std::pair<std::uint64_t, std::uint64_t>::first);
    return after != taken_.begin() && home < std::prev(after)->second ? allocations : updates;
  }

  void stage_line(const written_line& line) {
    STELE_ASSERT(line.offset % line_size == 0);
    const std::uint64_t first = space_.home_of(line.offset);
    for (unsigned left = stored_words(line.mask); left != 0;) {
      const auto w = static_cast<unsigned>(std::countr_zero(left)),
                 words = space_.options.group_update
                             ? static_cast<unsigned>(std::countr_one(left >> w))
                             : 1;
      left &= ~0u << (w + words);
      const std::uint64_t home = first + w;
      STELE_ASSERT(words != 0 && w + words <= line_size / 8);
      if (extends_last_entry(home, words, false))
        log_.staged.back().words += words;
      else
        log_.staged.push_back(
            {.home = home, .words = words, .from = log_.words_appended(), .log = log_of(home)});
      std::uint64_t* const to = log_.append_words(&line.words[w], words);
      // An entry has whole words. The line is this transaction's, so its other bytes do not change.
      for (unsigned i = 0; i < words; ++i)
        if (const std::uint8_t mask = line.word_mask(w + i); mask != 0xFF) [[unlikely]]
          to[i] = (to[i] & expand_mask(mask)) |
                  (home_.word(line.offset + 8 * (w + i)) & ~expand_mask(mask));
    }
  }
  // Whether these words follow the last staged entry, which is of the same kind, in its region.
  bool extends_last_entry(std::uint64_t home, std::uint64_t words, bool tombstone) const noexcept {
    if (log_.staged.empty() || !space_.options.group_update || home % format::region_words == 0)
      return false;
    const entry& last = log_.staged.back();
    return last.tombstone == tombstone && last.home + last.words == home &&
           last.words + words <= format::max_entry_words;
  }

  // In order of home, so that adjacent blocks make one tombstone: a transaction that frees all
  // there is must find room in a full pool.
  void stage_freed_blocks(const auto& blocks) {
    freed_.clear();
    for (const auto& b : blocks) freed_.push_back(heap_.range_of(b));
    std::ranges::sort(freed_);
    for (const auto& range : freed_) stage_free(range, true);
  }

  // Stages tombstones, each in one region. Unless `everywhere`, only regions with data get one.
  void stage_free(std::pair<std::uint64_t, std::size_t> range, bool everywhere) {
    const std::uint8_t log = space_.options.separate_logs ? frees : updates;
    // A freed block has whole words.
    STELE_ASSERT(range.first % 8 == 0 && range.second % 8 == 0 && range.second != 0);
    std::uint64_t home = space_.home_of(range.first);
    for (const std::uint64_t end = home + range.second / 8; home < end;) {
      const std::uint64_t stop =
          std::min(end, (home / format::region_words + 1) * format::region_words);
      if (extends_last_entry(home, stop - home, true))
        log_.staged.back().words += static_cast<std::uint32_t>(stop - home);
      else if (everywhere || space_.map.any_data(home, stop - home))
        log_.staged.push_back({.home = home,
                               .words = static_cast<std::uint32_t>(stop - home),
                               .from = 0,
                               .log = log,
                               .tombstone = true});
      home = stop;
    }
  }

  mapped_home& home_;
  storage::log_space& space_;
  storage::heap& heap_;
  chunk_log<Media>& log_;
  std::vector<const written_line*> order_;
  std::vector<std::pair<std::uint64_t, std::size_t>> freed_;  // offsets and sizes in bytes
  // Blocks that the transaction allocated: home words [first, second).
  std::vector<std::pair<std::uint64_t, std::uint64_t>> taken_;
};

}  // namespace stele::detail
