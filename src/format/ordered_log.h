// A log of ordered writes (log kind 5): a control line, which is not used, and two slots.
//
// A slot is a commit line and room for records. Both commit lines come first, then the records of the one and of the
// other, so that a memory controller can tell commit lines from records by address. Page: docs/format/log.md.
#pragma once

#include <format/pool_layout.h>

namespace stele::format {

inline constexpr unsigned ordered_slots = 2;

struct ordered_commit {
  std::uint64_t txid;  // guarded by its own offset; 0: the slot is empty
  std::uint64_t offset, words, checksum;  // of the records: where, how many words, their checksum (seed id ^ TxID)
  std::uint64_t reserved[4];              // never stored
};
static_assert(sizeof(ordered_commit) == 64);

inline constexpr std::uint64_t ordered_commits_at = log_control_size;
inline constexpr std::uint64_t ordered_commits_size = ordered_slots * sizeof(ordered_commit);
inline constexpr std::uint64_t ordered_records_at = ordered_commits_at + ordered_commits_size;

// From the log's beginning.
constexpr std::uint64_t ordered_commit_at(unsigned slot) noexcept { return ordered_commits_at + slot * sizeof(ordered_commit); }
constexpr std::uint64_t ordered_slot_size(std::uint64_t log_size) noexcept {  // bytes of records, whole lines
  return (log_size - ordered_records_at) / ordered_slots / sizeof(ordered_commit) * sizeof(ordered_commit);
}
constexpr std::uint64_t ordered_records_of(unsigned slot, std::uint64_t log_size) noexcept {
  return ordered_records_at + slot * ordered_slot_size(log_size);
}
static_assert(ordered_slot_size(4096) == 1920);  // the smallest log

}  // namespace stele::format
