// Recovery of logs with records: scan, order, replay, rebuild. Page: docs/protocol/recovery.md,
// steps R1 to R6. After a crash at any store it can run again: until R4 the logs are unchanged and
// replay gives the same home; from R4 on every record is at or below the watermark and is ignored.
#pragma once

#include <base/assert.h>
#include <base/mutant.h>
#include <fmt/format.h>
#include <tx/home_writer.h>
#include <tx/log/checksum_deltas.h>
#include <tx/log/lanes.h>
#include <tx/log/line_set.h>

#include <algorithm>
#include <vector>

namespace stele::detail {

// A record above the watermark. `first` and `words` place its payload in the words of all.
struct logged_record {
  std::uint64_t txid, front;
  std::size_t first, words;
  format::record_kind kind;
  bool newest_of_log;
};

template <class Media>
class log_recovery {
 public:
  using mutant = base::mutant;

  // form: as for read_record_by_head().
  log_recovery(pool_medium<Media>& medium, home_checksums<Media>& sums, log_lanes<Media>& logs,
               const record_form* form = nullptr)
      : medium_(medium),
        file_(medium.state.file),
        sums_(sums),
        logs_(logs),
        form_(form),
        home_(file_) {}

  // All of it, for mechanisms whose records hold new values, or old ones of one commit a log.
  [[nodiscard]] result<> run() {
    if (auto read = scan(); !read) return read;  // R1
    put_in_order();                              // R2
    discard_orphans();
    for (const logged_record& r : records)  // R3
      if (auto replayed = replay(r); !replayed) return replayed;
    return restart();  // R3 to R6
  }

  // R1: reads the whole records above the watermark from every log. Errors: corrupt.
  [[nodiscard]] result<> scan() {
    const auto mark = medium_.read_word(format::watermark_offset);
    if (!mark) return std::unexpected(mark.error());
    newest = watermark = *mark;
    for (auto& l : logs_) {
      const auto head = l.log.read_head();
      if (!head) return std::unexpected(head.error());
      if ((*head & format::log_void_bit) != 0) continue;  // recovery was emptying this ring
      if (auto read = scan_log(l, *head); !read) return read;
      if (planted<Media>(mutant::recover_first_log_only)) break;
    }
    STELE_ASSERT_ALWAYS(newest >= watermark && (newest == watermark || !records.empty()));
    if (planted<Media>(mutant::recover_truncate_first)) logs_.empty();
    return {};
  }

  // R2: by TxID.
  void put_in_order() {
    const bool sorted = planted<Media>(mutant::recover_unsorted) ||
                        std::ranges::is_sorted(records, {}, &logged_record::txid);  // one thread
    if (!sorted) std::ranges::stable_sort(records, {}, &logged_record::txid);
    STELE_ASSERT_WHOLE(base::holds(is_in_order()));  // recovery.md R2
  }

  // Drops each record that names a predecessor above the watermark which was not found or was
  // dropped.
  void discard_orphans() {
    STELE_ASSERT_WHOLE(base::holds(is_in_order()));
    if (planted<Media>(mutant::default_chain_ignored)) return;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < records.size(); ++i) {
      const auto end = records.begin() + static_cast<std::ptrdiff_t>(kept);
      const auto before = std::ranges::lower_bound(records.begin(), end, records[i].front, {},
                                                   &logged_record::txid);
      const bool found = before != end && before->txid == records[i].front;
      if (records[i].front <= watermark || found) records[kept++] = records[i];
    }
    records.resize(kept);
    STELE_ASSERT_WHOLE(base::holds(has_no_orphan()));  // recovery.md R2
  }

  // R3: stores the record's words home; not durable before restart(). Errors: corrupt.
  [[nodiscard]] result<> replay(const logged_record& r) {
    STELE_ASSERT_ALWAYS(r.first <= words.size() && r.words <= words.size() - r.first);
    STELE_ASSERT_ALWAYS(r.txid > watermark && r.txid <= newest);
    const auto payload = std::span(words).subspan(r.first, r.words);
    auto replayed =
        for_each_stored_run(file_, payload, [&](format::run_header head, const std::uint64_t* w) {
          for (std::uint32_t i = 0; i < head.count; ++i)
            home_.store_word(medium_.control, head.offset + 8 * i, w[i], head.mask);
          for_each_line(head, [&](std::uint64_t line) { lines_.add(line); });
        });
    return replayed ? deltas_.add(file_, payload) : replayed;
  }

  // R3 to R6: makes home durable, sets the clock to `newest` and empties the logs.
  [[nodiscard]] result<> restart() {
    using state = format::block_checksum_state;
    const auto sums = sums_.blocks().state();
    if (!sums) return std::unexpected(sums.error());
    const bool moves = *sums == state::valid && !deltas_.empty();
    for (std::uint64_t line : lines_.all()) medium_.control.flush(file_.at(line), line_size);
    if (moves)
      // A crash from here on must not make the next recovery add the deltas twice.
      sums_.mark_moving();
    if (medium_.control.failed()) return medium_.check();
    if (!planted<Media>(mutant::sums_not_recovered))
      moves ? sums_.apply(deltas_, true) : sums_.recompute(lines_.all(), *sums);
    medium_.control.fence();  // R3: home is durable before the logs are truncated
    // recovery.md R4: discarded records count too, and no TxID is drawn again
    STELE_ASSERT_ALWAYS(newest >= watermark);
    medium_.state.clock.store(newest);
    medium_.write_word(format::watermark_offset, newest);
    medium_.control.fence();  // R4: the watermark is durable before rings are emptied
    logs_.empty();            // R5, R6
    if (moves || *sums == state::updating) {
      sums_.write_state(state::valid);
      medium_.control.fence();  // the state word is durable before a commit changes home
    }
    return medium_.check();
  }

  std::vector<logged_record> records;
  std::vector<std::uint64_t> words;
  // The newest TxID that was found. Orphans count: their TxIDs must not be drawn again.
  std::uint64_t watermark = 0, newest = 0;

 private:
  // For assertions.
  [[maybe_unused]] bool is_in_order() const noexcept {
    return std::ranges::is_sorted(records, {}, &logged_record::txid);
  }
  [[maybe_unused]] bool has_no_orphan() const noexcept {
    return std::ranges::all_of(records, [this](const logged_record& r) {
      return r.front <= watermark ||
             std::ranges::binary_search(records, r.front, {}, &logged_record::txid);
    });
  }

  [[nodiscard]] result<> scan_log(typename log_lanes<Media>::lane& l, std::uint64_t head) {
    log_record record;
    const std::size_t before = records.size();
    for (std::uint64_t position = head & format::log_position_mask;;) {
      const auto whole = read_record_by_head(file_, l.log.view(), head, form_, position, record);
      if (!whole) return std::unexpected(whole.error());
      if (!*whole) {
        if (records.size() != before) records.back().newest_of_log = true;
        return {};
      }
      if (record.txid <= watermark) continue;
      if (record.txid >= format::txid_limit ||
          words.size() + record.payload.size() > file_.header().size / 8)
        return base::fail(
            errc::corrupt,
            fmt::format("{}: the log at offset {} has a record with a TxID that no program draws, "
                        "or more of them than the pool has room for; restore the pool from a copy",
                        file_.path(), logs_.log_offset(l)));
      records.push_back(
          {record.txid, record.front, words.size(), record.payload.size(), record.kind, false});
      words.insert(words.end(), record.payload.begin(), record.payload.end());
      newest = std::max(newest, record.txid);
    }
  }

  pool_medium<Media>& medium_;
  const storage::pool_file& file_;
  home_checksums<Media>& sums_;
  log_lanes<Media>& logs_;
  const record_form* const form_;
  home_writer<Media> home_;
  line_set lines_;  // a set, so that each line is flushed once
  checksum_deltas deltas_;
};

}  // namespace stele::detail
