// Reads records back from logs, for recovery, truncation and `stele pool check`. Trusts nothing
// that it reads.
#pragma once

#include <base/assert.h>
#include <format/log_line.h>
#include <format/pool_layout.h>
#include <pool/pool_file.h>
#include <stele/error.h>
#include <tx/write_set.h>

#include <cstdint>
#include <vector>

namespace stele::detail {

struct log_record {
  format::record_kind kind = format::record_kind::none;
  std::uint64_t txid = 0;
  std::uint64_t position = 0;          // of its first line
  std::vector<std::uint64_t> payload;  // runs, without the TxID
  std::uint64_t spill_offset = 0, spill_bytes = 0;
  // The prefix word of kinds that have one: the TxID of the ordered commit that a redo_dependent
  // names, or an epoch.
  std::uint64_t front = 0;
};

struct ring_view {
  const std::byte* bytes;
  std::uint64_t lines;
  std::uint64_t log_offset;
};

// The head word of the log at `log_offset`, with its flags. Errors: corrupt.
[[nodiscard]] result<std::uint64_t> read_log_head(const storage::pool_file& file,
                                                  std::uint64_t log_offset);

// Reads the record that starts at `position` and moves `position` past it. False: the lines there
// were not all written in this lap. Errors: corrupt.
[[nodiscard]] result<bool> read_record(const storage::pool_file& file, const ring_view& ring,
                                       std::uint64_t& position, log_record& record);

// Another form of records than read_record() reads, which a kind of log may have. The head word of
// a log says which form its records have (log_blocks_bit).
struct record_form {
  // Reads the next committed record from `position` on, as read_record() does, up to the line
  // `end`. Skips what was aborted.
  result<bool> (*read)(const storage::pool_file& file, const ring_view& ring,
                       std::uint64_t& position, std::uint64_t end, log_record& record);
  // Whether a line has anything of a lap with these torn bits.
  bool (*is_written)(const std::byte* line, bool sense);
};

// Reads a record of the form that the log's head word names, not beyond a lap after the head.
// other: the form that this kind of log has besides; null: none. Errors: corrupt.
[[nodiscard]] result<bool> read_record_by_head(const storage::pool_file& file,
                                               const ring_view& ring, std::uint64_t head,
                                               const record_form* other, std::uint64_t& position,
                                               log_record& record);

// Where the payload of a spilled record lies.
struct spilled_payload {
  std::uint64_t offset, words, checksum;
};
// Reads the payload into the record. False: it is outside the heap, or fails its checksum.
bool read_spilled_payload(const storage::pool_file& file, const spilled_payload& where,
                          log_record& record);

// Calls run(head, words) for each run of a payload. Errors: corrupt, for a run outside home.
template <class Run>
[[nodiscard]] result<> for_each_stored_run(const storage::pool_file& file,
                                           std::span<const std::uint64_t> payload, Run&& run);
// Also calls before(block, sum) for each checksum delta: the checksum terms that the runs' words in
// one block of home had before. block 0: those of the next stretch of runs in one block.
template <class Run, class Before>
[[nodiscard]] result<> for_each_logged_run(const storage::pool_file& file,
                                           std::span<const std::uint64_t> payload, Run&& run,
                                           Before&& before);

// Calls line(offset) for each line of home that a run stores to.
template <class Line>
void for_each_line(const format::run_header& run, Line&& line) {
  STELE_ASSERT(run.count != 0 && run.offset % 8 == 0);
  for (std::uint64_t at = run.offset & ~std::uint64_t{line_size - 1};
       at < run.offset + run.count * std::uint64_t{8}; at += line_size)
    line(at);
}

// Calls line(offset) for each line of home that a payload stores to. What it does not understand it
// leaves out.
template <class Line>
void for_each_stored_line(const storage::pool_file& file, std::span<const std::uint64_t> payload,
                          Line&& line) {
  (void)for_each_stored_run(file, payload, [&](format::run_header head, const std::uint64_t*) {
    for_each_line(head, line);
  });
}

// payload_words: how many words these lines take in a record. max_checksum_delta_words: the most
// that their checksum deltas take. lines_for_words: how many log lines that many words need.
std::uint64_t payload_words(std::span<const written_line> lines);
constexpr std::uint64_t max_checksum_delta_words(std::uint64_t lines) noexcept {
  return lines + lines / format::max_run_words + 1;
}
constexpr std::uint64_t lines_for_words(std::uint64_t words) noexcept {
  return (words + format::payload_words - 1) / format::payload_words;
}

// An error for a run that does not lie in home.
std::unexpected<error> bad_run(const storage::pool_file& file, std::uint64_t offset);

template <class Run>
[[nodiscard]] result<> for_each_stored_run(const storage::pool_file& file,
                                           std::span<const std::uint64_t> payload, Run&& run) {
  return for_each_logged_run(file, payload, run, [](std::uint64_t, std::uint64_t) {});
}

template <class Run, class Before>
[[nodiscard]] result<> for_each_logged_run(const storage::pool_file& file,
                                           std::span<const std::uint64_t> payload, Run&& run,
                                           Before&& before) {
  const auto& h = file.header();
  for (std::size_t at = 0; at < payload.size();) {
    const auto head = format::run_header::unpack(payload[at]);
    if (head.offset == 0 && head.mask == 0 && head.count < payload.size() - at) {
      for (std::uint32_t i = 1; i <= head.count; ++i) before(0, payload[at + i]);
      at += 1 + head.count;
      continue;
    }
    if (head.mask == 0 && head.count == 1 && payload.size() - at > 1) {
      before(head.offset, payload[at + 1]);
      at += 2;
      continue;
    }
    const bool inside = head.offset >= h.home_offset && head.offset < h.size &&
                        head.count * 8 <= h.size - head.offset;
    if (!inside || head.count == 0 || head.count >= payload.size() - at ||
        (head.mask != 0xFF && head.count != 1))
      return bad_run(file, head.offset);
    run(head, payload.data() + at + 1);
    at += 1 + head.count;
  }
  return {};
}

}  // namespace stele::detail
