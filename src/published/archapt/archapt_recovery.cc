// Finds what covered matrices held at their blocks' epochs, and which of it media has lost.
#include <base/assert.h>
#include <base/check.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <published/archapt/archapt_recovery.h>
#include <published/mutant.h>
#include <tx/log/recovery.h>

#include <algorithm>
#include <cstring>

namespace stele::detail {

using published::mutant;

result<> old_values::add(const storage::pool_file& file, std::span<const std::uint64_t> runs,
                         std::uint64_t epoch) {
  return for_each_stored_run(file, runs, [&](format::run_header head, const std::uint64_t* values) {
    for (std::uint32_t i = 0; i < head.count; ++i) {
      const std::uint64_t offset = head.offset + 8 * i;
      STELE_ASSERT(area_.in_home(offset));  // the run has been validated
      words_[area_.matrix_of(offset)].push_back({static_cast<std::uint8_t>(area_.line_of(offset)),
                                                 static_cast<std::uint8_t>(offset % line_size / 8),
                                                 head.mask, epoch, values[i]});
    }
  });
}

void old_values::roll_back_to(std::uint64_t number, std::uint64_t epoch,
                              matrix& content) const noexcept {
  const auto found = words_.find(number);
  if (found == words_.end()) return;
  // The oldest value is applied last.
  for (auto w = found->second.rbegin(); w != found->second.rend(); ++w) {
    if (w->epoch < epoch) continue;  // older than the block
    STELE_ASSERT(w->line < format::matrix_lines && w->word < line_size / 8);
    std::uint64_t& to = content.lines[w->line][w->word];
    const std::uint64_t counting = expand_mask(w->mask);
    to = (to & ~counting) | (w->value & counting);
  }
}

namespace {

result<std::uint64_t> checked(std::uint64_t epoch, const parity_area& area) {
  if (epoch < format::txid_limit) return epoch;
  return base::fail(errc::corrupt,
                    fmt::format("{}: a block of checksums over home is of epoch {}, which no "
                                "program reaches; restore the pool from a copy",
                                area.file().path(), epoch));
}

}  // namespace

result<covered_home> find_covered(const parity_area& area, std::uint64_t first,
                                  const old_values& olds) {
  covered_home all;
  matrix media, content;
  for (std::uint64_t m = 0; m < area.matrices(); ++m) {
    const auto at = area.newest(m, first);
    if (!at) continue;
    all.newest_epoch = std::max(all.newest_epoch, at->block.epoch);
    if (at->block.kind != format::parity_kind::active) continue;
    all.matrices.push_back(m);
    area.read(m, media);
    content = media;
    olds.roll_back_to(m, at->block.epoch, content);
    const correction done = planted(mutant::archapt_no_detection)
                                ? correction{}
                                : correct(content, area.halves(), at->block);
    all.stale += static_cast<std::uint64_t>(std::popcount(done.stale));
    for (unsigned line = 0; line < format::matrix_lines; ++line) {
      const std::uint64_t offset = area.offset_of(m, line);
      if ((done.uncorrected >> line & 1) != 0) all.lost.push_back(offset);
      // Also lines that only the old values made right: their transaction may not have committed,
      // so no replay would restore them.
      const bool differs = planted(mutant::archapt_stale_only)
                               ? (done.stale >> line & 1) != 0
                               : content.lines[line] != media.lines[line];
      if (differs && area.in_home(offset)) all.restored.push_back({offset, content.lines[line]});
    }
  }
  STELE_ASSERT_ALWAYS(all.lost.size() <= all.stale);
  STELE_ASSERT_WHOLE(std::ranges::is_sorted(all.matrices));
  const auto possible = checked(all.newest_epoch, area);
  return possible ? result<covered_home>(std::move(all)) : std::unexpected(possible.error());
}

result<std::uint64_t> newest_epoch(const parity_area& area, std::uint64_t first) {
  std::uint64_t newest = 0;
  for (std::uint64_t m = 0; m < area.matrices(); ++m)
    if (const auto at = area.newest(m, first)) newest = std::max(newest, at->block.epoch);
  return checked(newest, area);
}

namespace {

// Words of home as they were before the records that were taken back: only those of commits in
// doubt, which are few.
class earlier_words {
 public:
  explicit earlier_words(const storage::pool_file& file) : file_(file) {}

  // Watches the words of these runs.
  [[nodiscard]] result<> add(std::span<const std::uint64_t> runs) {
    return for_each_stored_run(file_, runs, [&](format::run_header head, const std::uint64_t*) {
      for (std::uint32_t i = 0; i < head.count; ++i)
        words_.try_emplace(head.offset + 8 * i, home(head.offset + 8 * i));
    });
  }
  // The sum of the words of these runs as they are now.
  std::uint64_t sum(std::span<const std::uint64_t> runs, std::uint64_t txid) const {
    format::values_sum sum(file_.header().id, txid);
    (void)for_each_stored_run(file_, runs, [&](format::run_header head, const std::uint64_t*) {
      STELE_ASSERT(words_.contains(head.offset));  // add() had these runs
      for (std::uint32_t i = 0; i < head.count; ++i)
        sum.add(head.offset + 8 * i, words_.at(head.offset + 8 * i) & expand_mask(head.mask));
    });
    return sum.value();
  }
  // Takes a record back: these are its old values.
  [[nodiscard]] result<> take_back(std::span<const std::uint64_t> runs) {
    return for_each_stored_run(file_, runs, [&](format::run_header head, const std::uint64_t* old) {
      for (std::uint32_t i = 0; i < head.count; ++i) {
        const auto found = words_.find(head.offset + 8 * i);
        if (found == words_.end()) continue;
        const std::uint64_t counting = expand_mask(head.mask);
        found->second = (found->second & ~counting) | (old[i] & counting);
      }
    });
  }

 private:
  std::uint64_t home(std::uint64_t offset) const noexcept {
    std::uint64_t word;
    std::memcpy(&word, file_.at(offset), sizeof word);
    return word;
  }
  const storage::pool_file& file_;
  std::unordered_map<std::uint64_t, std::uint64_t> words_;
};

// The newest record of a log may be of a commit that was under way. A log goes on only after the
// commit before is durable.
bool is_in_doubt(const logged_record& r) noexcept {
  return r.kind == format::record_kind::undo_with_sum && r.newest_of_log;
}

}  // namespace

result<std::unordered_set<std::uint64_t>> find_incomplete(const storage::pool_file& file,
                                                          std::span<const logged_record> records,
                                                          std::span<const std::uint64_t> words) {
  const auto runs_of = [&](const logged_record& r) { return words.subspan(r.first, r.words); };
  std::unordered_set<std::uint64_t> incomplete;
  if (std::ranges::none_of(records, is_in_doubt)) return incomplete;
  // The newest is taken back first, so that each record meets the words that it left.
  STELE_ASSERT_WHOLE(std::ranges::is_sorted(records, {}, &logged_record::txid) ||
                     planted(base::mutant::recover_unsorted));
  earlier_words home(file);
  for (const logged_record& r : records)
    if (is_in_doubt(r))
      if (auto added = home.add(runs_of(r)); !added) return std::unexpected(added.error());
  for (auto r = records.rbegin(); r != records.rend(); ++r) {
    if (is_in_doubt(*r) && home.sum(runs_of(*r), r->txid) != r->front &&
        !planted(mutant::archapt_in_doubt_kept))
      incomplete.insert(r->txid);
    if (planted(mutant::archapt_later_ignored)) continue;
    if (auto back = home.take_back(runs_of(*r)); !back) return std::unexpected(back.error());
  }
  return incomplete;
}

namespace {

// Names what lies at a pool offset, as far as the heap's own lines still say so.
std::string object_at(const storage::pool_file& file, const storage::heap& heap,
                      std::uint64_t offset) {
  const auto& h = file.header();
  if (offset < h.chunks_offset) return fmt::format("the heap's table at offset {}", offset);
  const std::uint64_t chunk_size = std::uint64_t{1} << h.chunk_shift;
  std::uint64_t chunk = (offset - h.chunks_offset) >> h.chunk_shift;
  if (chunk >= h.chunk_count) return fmt::format("unused space at offset {}", offset);
  auto d = heap.descriptor(chunk);
  while (d && d->kind == format::chunk_kind::tail && chunk > 0) d = heap.descriptor(--chunk);
  const std::uint64_t begin = h.chunks_offset + chunk * chunk_size;
  if (d && d->kind == format::chunk_kind::extent)
    return fmt::format("the object of {} bytes at offset {}", d->length * chunk_size, begin);
  const auto blocks = d ? storage::blocks_of(chunk_size, *d) : storage::block_class{};
  if (blocks.block_size == 0) return fmt::format("unused space at offset {}", offset);
  if (offset - begin < blocks.first)
    return fmt::format("the states of the objects from offset {} on", begin + blocks.first);
  return fmt::format("the objects of {} bytes at offset {}", blocks.block_size,
                     begin + blocks.first +
                         (offset - begin - blocks.first) / blocks.block_size * blocks.block_size);
}

}  // namespace

std::unexpected<error> report_loss(const storage::pool_file& file, const storage::heap& heap,
                                   const covered_home& found) {
  STELE_ASSERT_ALWAYS(!found.lost.empty());
  constexpr std::size_t most = 8;
  std::vector<std::string> names;
  for (std::uint64_t offset : found.lost) {
    std::string name = object_at(file, heap, offset);
    if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
  }
  const std::size_t more = names.size() > most ? names.size() - most : 0;
  names.resize(names.size() - more);
  return base::fail(
      errc::lost,
      fmt::format(
          "{}: {} lines of committed data were in the cache when power failed, and their checksums "
          "cannot restore them: {}{}; nothing was changed. Restore the pool from a copy",
          file.path(), found.lost.size(), fmt::join(names, ", "),
          more != 0 ? fmt::format(" and {} more", more) : ""));
}

}  // namespace stele::detail
