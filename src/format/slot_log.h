// A log of ordered writes (log kind 5): a control line, which is not used, and two slots.
//
// A slot is a commit line and an area for records. Both commit lines come first, then the records
// of slot 0, then those of slot 1, so that a memory controller can tell commit lines from records
// by address. Page: docs/format/log.md.
#pragma once

#include <format/pool_layout.h>

namespace stele::format {

inline constexpr unsigned slot_count = 2;

struct slot_commit_record {
  std::uint64_t txid;  // guarded by its own offset; 0: the slot is empty
  // Of the slot's records: offset, number of words, checksum (seed: pool id ^ TxID).
  std::uint64_t offset, words, checksum;
  std::uint64_t reserved[4];  // never stored
};
static_assert(sizeof(slot_commit_record) == 64);

inline constexpr std::uint64_t slot_commits_offset = log_control_size;
inline constexpr std::uint64_t slot_commits_size = slot_count * sizeof(slot_commit_record);
inline constexpr std::uint64_t slot_records_begin = slot_commits_offset + slot_commits_size;

// From the log's beginning.
constexpr std::uint64_t slot_commit_offset(unsigned slot) noexcept {
  return slot_commits_offset + slot * sizeof(slot_commit_record);
}
// Bytes for records, in whole lines.
constexpr std::uint64_t slot_size(std::uint64_t log_size) noexcept {
  return (log_size - slot_records_begin) / slot_count / sizeof(slot_commit_record) *
         sizeof(slot_commit_record);
}
constexpr std::uint64_t slot_records_offset(unsigned slot, std::uint64_t log_size) noexcept {
  return slot_records_begin + slot * slot_size(log_size);
}
static_assert(slot_size(4096) == 1920);  // the smallest log

static_assert(offsetof(slot_commit_record, offset) == 8 &&
              offsetof(slot_commit_record, words) == 16 &&
              offsetof(slot_commit_record, checksum) == 24);
static_assert(slot_commits_offset == 64 && slot_commit_offset(1) == 128 &&
              slot_records_begin == slot_commit_offset(slot_count));
static_assert(
    [] {
      for (const std::uint64_t log : {4096u, 8192u, 1u << 20}) {
        if (slot_size(log) % 64 != 0 || slot_records_offset(0, log) != slot_records_begin ||
            slot_records_offset(1, log) != slot_records_offset(0, log) + slot_size(log) ||
            slot_records_offset(1, log) + slot_size(log) > log)
          return false;
      }
      return true;
    }(),
    "the slots' records do not overlap, and end within the log");

}  // namespace stele::format
