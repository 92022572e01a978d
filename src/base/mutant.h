// Mutants: bugs planted on purpose. The explorer must find every one of them; this shows that it
// can find bugs of ours.
//
// The place of a bug asks `planted<Media>(mutant::x)`. On a medium that is not explored the answer
// is a compile-time false. The heap, which knows no medium, and the file medium itself ask
// `planted(mutant::x)`: one relaxed load on paths that are not hot. These are the mutants of the
// library; published/mutant.h has those of the published mechanisms. A bug that only leaves out a
// fence, a flush or a stream has no place here: the explored medium makes it. So has one that
// leaves out a step which asks `planted_at` for its caller's place. `stele crash mutants` plants
// all of them, one at a time; their names are in lab/explore/mutant_table.h.
#pragma once

#include <base/assert.h>

#include <atomic>
#include <cstdint>
#include <source_location>

namespace stele::base {

enum class mutant : std::uint16_t {
  none,
  log_torn_sense,    // the torn bit is not inverted at wrap-around
  log_one_torn_bit,  // reading checks the torn bit of a line's header word only
  log_first_stored,  // the first line of a record is stored and not flushed, instead of streamed
  log_top_bits,      // the top bits of the payload words are not kept
  bulk_home_first,   // home is stored before the log is durable
  // bulk persistence flushes one log's lines, and raises the watermark for all logs
  bulk_first_log_only,
  bulk_mark_ahead,     // the watermark is one commit too high
  bulk_own_flushed,    // the owner's write-back takes the running commit's lines
  bulk_flushed_early,  // lines count as written back before the owner's fence
  bulk_spill_flushed,  // a spilled record before `flushed` counts as written back
  sums_not_renewed,    // truncation and recovery do not update block checksums
  sums_last_block,     // the checksum of the last block is not updated
  sums_after_mark,     // block checksums are updated after the watermark has moved
  sums_not_recovered,  // recovery does not update the checksums of the blocks that it replays
  sums_said_early,     // the state becomes `valid` before the watermark has moved
  sums_not_counted,    // a commit that stores home does not update the block checksums
  sums_spill_kept,     // a spilled record overwrites blocks and leaves their checksums as they were
  sums_free_stay,      // a full recomputation leaves the checksums of free chunks as they were
  // a block checksum of 0 is not checked, and a zeroed home is taken for a fresh one
  sums_zero_unjudged,
  grow_same_slot,        // the growth slot in force is overwritten
  grow_sums_kept,        // the blocks that a growth changes keep the checksums that they had
  file_home_unsynced,    // home is written back but not synced
  file_last_run,         // a fence does not write the last run of blocks
  file_not_synchronous,  // blocks are written without waiting for the device
  file_failure_ignored,  // a write or sync that fails counts as done
  file_sync_retried,     // a sync that fails is retried, and counts if the retry succeeds
  // a failed write-back is ignored, although the sync after it does not report the error
  file_write_back_ignored,
  file_named_first,  // a new file gets its name before its content is durable
  // a commit in the shared log makes only its own last line durable, not the lines before it
  default_shared_alone,
  recover_truncate_first,  // logs are truncated before home is durable
  recover_unsorted,        // committed transactions are replayed in log order
  recover_first_log_only,  // only the first log is read
  recover_heads_first,     // heads are reset before the rings are zeroed
  heap_free_early,      // a freed block may be allocated again before its transaction has committed
  heap_freed_twice,     // a freed block enters the free list twice
  heap_untracked_free,  // the free is not part of the transaction: a crash loses it
  heap_untracked_take,  // the allocation is not part of the transaction: a crash loses it
  heap_no_descriptor,   // the descriptor of a new slab is not part of the transaction
  heap_stale_states,    // a chunk that becomes a slab keeps the block states of its former use
  heap_short_extent,    // freeing an extent leaves out its last chunk
  // the blocks of an earlier session's slab are listed as free without reading their states
  heap_stale_list,
  heap_abort_keeps,  // blocks of a slab whose allocation was rolled back stay in the free list
  heap_large_stale,  // a run that becomes a large slab keeps the block states of its former use
  // a new large slab leaves the descriptors of its further chunks as they were
  heap_large_no_tail,
  heap_large_short_free,  // freeing a large slab leaves out its last chunk
  // the state of a block in a further chunk of a large slab is written to that chunk
  heap_large_own_chunk,
  version_copy_left,  // a raised version is not written to the header's copy
  version_late,       // what only the present version has is made before the version is raised
  default_ordered_home_first,  // an ordered commit stores home itself
  default_no_chain,            // a record does not name the ordered commit before it
  // recovery does not check whether the ordered commit before a record is there
  default_chain_ignored,
  default_no_wait,  // a durable commit returns before the ordered commits before it are durable
  // a commit in the shared log draws its TxID before it takes its place in the log
  default_txid_before_place,
  // paused threads are taken for idle: ordered commits of running threads are retired
  retire_paused,
  stm_stale_allocation,  // a block is allocated that was freed after the snapshot
  backup_spill_unkept,   // a spilled record overwrites pages that a backup has yet to copy
  stm_no_validation,     // a commit does not validate its read set
  stm_extend_unchecked,  // a snapshot is extended without validating the read set
  stm_one_look,          // a load does not read the lock again after the value
  stm_old_version,       // locks are released with their old version
  stm_unlock_first,      // locks are released before the commit is durable and home is stored
  stm_announce_late,     // a commit draws its TxID before it announces itself
  bulk_runs_ignored,  // a truncation takes the newest TxID, even if a thread is still in a commit
  bulk_mark_back,     // a truncation lowers the watermark to a commit that was announced late
  batch_pending_ignored,  // a truncation ignores deferred commits
  batch_own_alone,        // making deferred commits durable stores home for the first log only
  // the next TxID may be drawn before an ordered commit is registered as deferred
  batch_joined_early,
  batch_home_early,          // commits are stored home that came while a flush waited for its fence
  batch_ends_late,           // records that came during a flush count as flushed
  batch_told_late,           // commits that came during a flush are told to be durable
  told_early,                // callbacks are chosen by what was durable before they were added
  batch_no_prefix,           // a flush takes one batch after the other while commits go on
  group_appended_meanwhile,  // records appended during a write count as written
  group_not_awaited,         // a commit does not wait for the thread that writes its record
  group_from_appended,       // the writer begins at its own record, not after the last durable one
  heap_run_early,  // a freed run of chunks may be allocated before its transaction has committed
  heap_claimless,  // a spilled record takes chunks that other threads may be reading
  backup_stores_first,    // a commit stores home before the backup has copied the pages
  bias_unawaited,         // the bias is revoked while its thread is in a transaction without locks
  bias_beside_others,     // a thread gets the bias while others are in transactions
  empty_not_waited,       // a durable update that stores nothing leaves ordered commits as they are
  bias_over_overlay,      // a transaction without locks beside locks of deferred commits
  long_read_one_look,     // a long read does not look again whether a page is kept
  readers_lone_unlocked,  // a thread that runs alone takes no locks for other processes
  readers_lone_late,      // it takes them after its TxID
  readers_own_locks,      // a reader takes a lock that a writer holds for its own
  kept_marked_first,      // a page counts as kept for another process before it is copied
  kept_one_look,          // another process does not look again whether a page is kept
  kv_cleared_first,       // an item of a dropped store goes before its name does
  kv_drop_unlisted,       // the name goes, and nothing leads to the store that is to be cleared
  redis_unit_apart,       // each change of a unit of Redis' keys is committed by itself
  redis_acknowledged_early,  // the durable end of a unit syncs nothing
  redis_child_ignored,       // a value that a child may read is changed in place
  redis_freed_early,         // an item that a child may read is freed
  redis_keyspace_again,      // a flushed database gets a keyspace that has had items
  redis_named_early,         // a value that is made in parts is its key's from the first one on
  redis_sync_ahead,          // a sync counts commits for durable that came after its begin
  sqlite_one_by_one,  // databases that one COMMIT has changed are committed one after another
  sqlite_acknowledged_early,  // a commit of SQLite returns before it is durable
  sqlite_line_skipped,        // the last changed line of a block is not stored
  sqlite_size_apart,          // the size of a database is stored in another transaction
  sqlite_early_inside,        // a large transaction of SQLite stores early what others read
  sqlite_deferred_left,  // a durable commit of SQLite leaves the deferred ones before it deferred
  sqlite_flush_apart,    // deferred commits to several databases are stored one after another
  sqlite_flush_takes_newer,  // a block that was changed during a flush counts as stored by it
  sqlite_flush_unversioned,  // a flush does not begin a version
  sqlite_stamp_late,         // a block's stamp is raised after its bytes are stored
  sqlite_reader_forgotten,   // what a reader still needs of changed blocks is dropped
  sqlite_cache_kept,         // a connection keeps its cache when others have changed what it has
  sqlite_cache_early,  // a cache is taken to be right up to changes of the version after its own
  sqlite_cache_ahead,  // a connection takes changes for known that its version does not have
  sqlite_snapshot_unchecked,  // a reader does not look whether its version is still the newest
};

inline constinit std::atomic<mutant> planted_mutant{mutant::none};

[[gnu::always_inline]] inline bool planted(mutant m) noexcept {
  STELE_ASSERT(m != mutant::none);  // else every program without a mutant had this bug
  return planted_mutant.load(std::memory_order_relaxed) == m;
}

// For hot paths, where one more load would cost: compiled only into the schedule explorer.
#ifdef STELE_SCHEDULED
inline constexpr bool schedule_explorer_build = true;
#else
inline constexpr bool schedule_explorer_build = false;
#endif
[[gnu::always_inline]] inline bool planted_in_schedule_explorer(mutant m) noexcept {
  return schedule_explorer_build && planted(m);
}

template <class Media>
[[gnu::always_inline]] inline bool planted(mutant m) noexcept {
  if constexpr (Media::under_exploration)
    return planted(m);
  else
    return false;
}

using place_predicate = bool (*)(const std::source_location&);

// Of steps that a mutant leaves out where one caller asks for them, and nowhere else: whether the
// planted mutant leaves out this one. Changes only while nothing runs, and is not atomic: the
// schedule explorer would take each load for a point.
inline constinit place_predicate leaves_out_step_at = nullptr;

[[gnu::always_inline]] inline bool planted_at_in_schedule_explorer(const std::source_location& at) {
  return schedule_explorer_build && leaves_out_step_at != nullptr && leaves_out_step_at(at);
}

template <class Media>
[[gnu::always_inline]] inline bool planted_at(const std::source_location& at) {
  return Media::under_exploration && leaves_out_step_at != nullptr && leaves_out_step_at(at);
}

// Two steps in their order, or the other way round where a mutant swaps them.
template <class First, class Second>
[[gnu::always_inline]] inline void in_order(bool swapped, First&& first, Second&& second) {
  if (swapped)
    second(), first();
  else
    first(), second();
}

// Of assertions that a mutant breaks on its way to what the explorer must find: `condition`, or
// true where the mutant that is planted is known to break it. Whoever plants a mutant says where.
inline constinit std::atomic<place_predicate> breaks_assertion_at{nullptr};

inline bool holds(bool condition,
                  const std::source_location& at = std::source_location::current()) {
  if (condition) [[likely]]
    return true;
  const place_predicate breaks = breaks_assertion_at.load();
  return breaks != nullptr && breaks(at);
}

}  // namespace stele::base
