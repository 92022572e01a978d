// The parts of archapt's recovery that run before anything changes: which matrices are covered,
// what in them must be restored, and which commits over undo are complete.
// docs/protocol/archapt.md, R2 and R4.
#pragma once

#include <base/assert.h>
#include <format/values_sum.h>
#include <pool/heap.h>
#include <published/archapt/parity_area.h>
#include <published/mutant.h>
#include <stele/error.h>
#include <tx/log/record.h>
#include <tx/pool_medium.h>

#include <algorithm>
#include <ranges>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace stele::detail {

// The old values of words in home, from the records of the logs, by matrix.
class old_values {
 public:
  explicit old_values(const parity_area& area) : area_(area) {}

  // Adds a record's old values; called in order of TxID. Errors: corrupt, for a run outside home.
  [[nodiscard]] result<> add(const storage::pool_file& file, std::span<const std::uint64_t> runs,
                             std::uint64_t epoch);
  // Adds those of records of kind undo_with_epoch; `words` has the payloads.
  template <class Records>
  [[nodiscard]] result<> add_records(const storage::pool_file& file, const Records& records,
                                     std::span<const std::uint64_t> words) {
    for (const auto& r : records)
      if (r.kind == format::record_kind::undo_with_epoch)
        if (auto added = add(file, words.subspan(r.first, r.words), r.front); !added) return added;
    return {};
  }
  // Rolls a matrix's content back to an epoch: each word gets its oldest value since then.
  void roll_back_to(std::uint64_t number, std::uint64_t epoch, matrix& content) const noexcept;

 private:
  struct old_word {
    std::uint8_t line, word, mask;
    std::uint64_t epoch, value;
  };
  const parity_area& area_;
  std::unordered_map<std::uint64_t, std::vector<old_word>> words_;
};

struct covered_home {
  struct line {
    std::uint64_t offset;
    format::line_words content;
  };
  std::vector<std::uint64_t> matrices;  // the covered ones
  std::vector<line> restored;  // lines that differ from what their block says, with what it says
  std::vector<std::uint64_t> lost;  // offsets of stale lines that cannot be restored
  // Lines that are not as their block says, even with the logs' old values restored.
  std::uint64_t stale = 0;
  std::uint64_t newest_epoch = 0;  // of any block
};

// Ignores blocks of epochs before `first`. Errors: corrupt, for an epoch that no program reaches.
[[nodiscard]] result<covered_home> find_covered(const parity_area& area, std::uint64_t first,
                                                const old_values& olds);

// The newest epoch of a block that counts; 0: there is none. Errors: as above.
[[nodiscard]] result<std::uint64_t> newest_epoch(const parity_area& area, std::uint64_t first);

// What a record of kind undo_with_sum has in its prefix word.
inline std::uint64_t sum_of_new_values(std::span<const written_line> lines, std::uint64_t pool_id,
                                       std::uint64_t txid) noexcept {
  format::values_sum sum(pool_id, txid);
  for (const written_line& line : lines)
    for (unsigned left = stored_words(line.mask); left != 0; left &= left - 1) {
      const auto w = static_cast<unsigned>(std::countr_zero(left));
      sum.add(line.offset + 8 * w, line.words[w] & expand_mask(line.word_mask(w)));
    }
  return sum.value();
}

// The commits of records of kind undo_with_sum of which home has only a part, by TxID. `records`
// are all above the watermark, in order of TxID; `words` has their payloads. Errors: corrupt, for a
// run outside home.
struct logged_record;
[[nodiscard]] result<std::unordered_set<std::uint64_t>> find_incomplete(
    const storage::pool_file& file, std::span<const logged_record> records,
    std::span<const std::uint64_t> words);

// R4 over redo.
template <class Recovery>
[[nodiscard]] result<> replay_new_values(Recovery& found) {
  for (const auto& r : found.records)
    if (r.kind != format::record_kind::undo_with_epoch)
      if (auto done = found.replay(r); !done) return done;
  return {};
}
// R4 over undo, newest first.
template <class Media, class Recovery>
[[nodiscard]] result<> roll_back(const storage::pool_file& file, Recovery& found) {
  const auto incomplete = find_incomplete(file, found.records, found.words);
  if (!incomplete) return std::unexpected(incomplete.error());
  if (planted<Media>(published::mutant::archapt_rolls_forward)) std::ranges::reverse(found.records);
  for (const auto& r : found.records | std::views::reverse)
    if (r.kind != format::record_kind::undo_with_sum || incomplete->contains(r.txid))
      if (auto done = found.replay(r); !done) return done;
  return {};
}

// An error that names the objects that the lost lines belong to.
std::unexpected<error> report_loss(const storage::pool_file& file, const storage::heap& heap,
                                   const covered_home& found);

// R2 and R3: every line of a covered matrix is durable, and no block counts. Errors: lost, and
// nothing has been written.
template <class Media, class Record>
[[nodiscard]] result<> restore_stale_lines(pool_medium<Media>& medium, const parity_area& area,
                                           std::span<const Record> records,
                                           std::span<const std::uint64_t> words) {
  if (!area.present()) return {};
  const storage::pool_file& file = area.file();
  const auto first = medium.read_word(format::parity_epoch_offset);
  if (!first) return std::unexpected(first.error());
  old_values olds(area);
  if (auto added = olds.add_records(file, records, words); !added) return added;
  const auto now = find_covered(area, *first, olds);
  if (!now) return std::unexpected(now.error());
  medium.state.stale_lines = now->stale, medium.state.lost_lines = now->lost.size();
  if (!now->lost.empty()) return report_loss(file, medium.state.heap, *now);
  // archapt.md, R3: the epoch rises above all blocks that count.
  STELE_ASSERT_ALWAYS(now->newest_epoch == 0 ||
                      (now->newest_epoch >= *first && now->newest_epoch < format::txid_limit));
  STELE_ASSERT_ALWAYS(now->restored.empty() || !now->matrices.empty());
  for (const covered_home::line& line : now->restored) {
    STELE_ASSERT_ALWAYS(area.in_home(line.offset));
    medium.control.store(file.at(line.offset), line.content.data(), line_size);
  }
  for (std::uint64_t m : now->matrices)
    area.for_each_line(m, area.lines_in_home(m),
                       [&](std::byte* at) { medium.control.flush(at, line_size); });
  medium.control.fence();  // all of a covered matrix is durable before its block stops counting
  if (now->newest_epoch != 0) medium.write_word(format::parity_epoch_offset, now->newest_epoch + 1);
  // R3: no block counts any more before home changes from what the block covers.
  medium.control.fence();
  return {};
}

}  // namespace stele::detail
