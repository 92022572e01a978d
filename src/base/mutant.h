// Planted bugs. The explorer must find every one of them; that is how we know that it can find ours.
//
// A mechanism asks `planted<Media>(mutant::x)` at the place that the bug would be; on a medium that does not explore
// the answer is a compile-time no. The heap, which knows no medium, asks `planted(mutant::x)`: one relaxed load on paths
// that are not hot. `stele crash mutants` plants them one at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace stele::base {

enum class mutant : std::uint16_t {
  none,
  // torn-bit log, shared by redo, redo-async and undo
  log_torn_sense,        // the torn sense does not turn at wrap-around
  log_last_line,         // the last line of a record is not streamed before the fence
  log_no_checksum_seed,  // reserved head position is not part of what is checked
  // base
  base_no_log_fence,     // no fence between records and commit record
  base_no_commit_fence,  // home is written before the commit record is durable
  base_no_data_fence,    // the log is truncated before home is durable
  base_no_truncate_fence,
  base_commit_first,     // the commit record is written before the records
  // redo, sync
  redo_no_log_fence,     // home is written before the log is durable
  redo_no_data_fence,    // the log is truncated before home is durable
  redo_no_truncate_fence,// locks go and the commit is acknowledged before the head is durable
  redo_last_home_line,   // the last home line is not flushed
  redo_truncate_first,   // the head moves before home is written back
  // redo, async
  async_no_log_fence,
  async_no_data_fence,   // the watermark moves before home is durable
  async_no_mark_fence,   // heads move before the watermark is durable
  async_last_home_line,
  async_own_log_only,    // truncation flushes one log's lines, and moves the mark for all
  async_reuse_early,     // space is reused before the heads are durable
  // undo
  undo_no_log_fence,     // home is written before the old values are durable
  undo_no_data_fence,    // the log is truncated before home is durable
  undo_no_truncate_fence,// acknowledged before the log is truncated
  undo_new_values,       // the log holds the new values
  undo_last_home_line,
  // recovery, shared
  recover_truncate_first,  // logs are emptied before home is durable
  recover_unsorted,        // committed transactions are replayed in log order
  recover_first_log_only,
  recover_no_scrub,        // what a torn commit left behind stays in the log
  // heap
  heap_free_early,       // a freed block may be taken again before its transaction has committed
  heap_lost_abort,       // an aborted allocation keeps its block
  heap_untracked_free,   // freeing is not part of the transaction: the block's state is stored home at once
  heap_no_descriptor,    // a new superblock's descriptor is not part of the transaction
  heap_stale_states,     // a chunk turned superblock keeps the block states of its former use
  heap_short_extent,     // freeing an extent forgets its last chunk
};

// By number: mutants[i].what is i. `of` is the mechanism that it breaks, or the part that several share: log, recovery, heap.
struct mutant_entry {
  mutant what;
  std::string_view name, of;
};
inline constexpr mutant_entry mutants[] = {
    {mutant::none, "none", ""},
    {mutant::log_torn_sense, "log_torn_sense", "log"},
    {mutant::log_last_line, "log_last_line", "log"},
    {mutant::log_no_checksum_seed, "log_no_checksum_seed", "log"},
    {mutant::base_no_log_fence, "base_no_log_fence", "base"},
    {mutant::base_no_commit_fence, "base_no_commit_fence", "base"},
    {mutant::base_no_data_fence, "base_no_data_fence", "base"},
    {mutant::base_no_truncate_fence, "base_no_truncate_fence", "base"},
    {mutant::base_commit_first, "base_commit_first", "base"},
    {mutant::redo_no_log_fence, "redo_no_log_fence", "redo"},
    {mutant::redo_no_data_fence, "redo_no_data_fence", "redo"},
    {mutant::redo_no_truncate_fence, "redo_no_truncate_fence", "redo"},
    {mutant::redo_last_home_line, "redo_last_home_line", "redo"},
    {mutant::redo_truncate_first, "redo_truncate_first", "redo"},
    {mutant::async_no_log_fence, "async_no_log_fence", "redo-async"},
    {mutant::async_no_data_fence, "async_no_data_fence", "redo-async"},
    {mutant::async_no_mark_fence, "async_no_mark_fence", "redo-async"},
    {mutant::async_last_home_line, "async_last_home_line", "redo-async"},
    {mutant::async_own_log_only, "async_own_log_only", "redo-async"},
    {mutant::async_reuse_early, "async_reuse_early", "redo-async"},
    {mutant::undo_no_log_fence, "undo_no_log_fence", "undo"},
    {mutant::undo_no_data_fence, "undo_no_data_fence", "undo"},
    {mutant::undo_no_truncate_fence, "undo_no_truncate_fence", "undo"},
    {mutant::undo_new_values, "undo_new_values", "undo"},
    {mutant::undo_last_home_line, "undo_last_home_line", "undo"},
    {mutant::recover_truncate_first, "recover_truncate_first", "recovery"},
    {mutant::recover_unsorted, "recover_unsorted", "recovery"},
    {mutant::recover_first_log_only, "recover_first_log_only", "recovery"},
    {mutant::recover_no_scrub, "recover_no_scrub", "recovery"},
    {mutant::heap_free_early, "heap_free_early", "heap"},
    {mutant::heap_lost_abort, "heap_lost_abort", "heap"},
    {mutant::heap_untracked_free, "heap_untracked_free", "heap"},
    {mutant::heap_no_descriptor, "heap_no_descriptor", "heap"},
    {mutant::heap_stale_states, "heap_stale_states", "heap"},
    {mutant::heap_short_extent, "heap_short_extent", "heap"},
};

constexpr std::string_view name_of(mutant m) noexcept { return mutants[static_cast<std::size_t>(m)].name; }

constexpr std::optional<mutant> mutant_named(std::string_view name) noexcept {
  for (const mutant_entry& e : mutants)
    if (e.name == name) return e.what;
  return std::nullopt;
}

inline constinit std::atomic<mutant> planted_mutant{mutant::none};

[[gnu::always_inline]] inline bool planted(mutant m) noexcept {
  return planted_mutant.load(std::memory_order_relaxed) == m;
}

template <class Media>
[[gnu::always_inline]] inline bool planted(mutant m) noexcept {
  if constexpr (Media::explores)
    return planted(m);
  else
    return false;
}

}  // namespace stele::base
