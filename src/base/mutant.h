// Mutants: bugs planted on purpose. The explorer must find every one of them; this shows that it
// can find bugs of ours.
//
// A mechanism asks `planted<Media>(mutant::x)` at the place of the bug. On a medium that is not
// explored the answer is a compile-time false. The heap, which knows no medium, and the file medium
// itself ask `planted(mutant::x)`: one relaxed load on paths that are not hot. `stele crash
// mutants` plants the mutants one at a time; their names are in lab/explore/mutant_table.h.
#pragma once

#include <base/assert.h>

#include <atomic>
#include <cstdint>

namespace stele::base {

enum class mutant : std::uint16_t {
  none,
  log_torn_sense,      // the torn bit is not inverted at wrap-around
  log_one_torn_bit,    // reading checks the torn bit of a line's header word only
  log_last_line,       // the last line of a record is not streamed before the fence
  log_first_stored,    // the first line of a record is stored and not flushed, instead of streamed
  log_top_bits,        // the top bits of the payload words are not kept
  log_spill_unfenced,  // no fence between a spilled payload and the record that points to it
  base_no_log_fence,   // no fence between records and commit line
  base_no_commit_fence,    // home is stored before the commit line is durable
  base_no_data_fence,      // the log is truncated before home is durable
  base_no_truncate_fence,  // locks are released before the truncation is durable
  base_commit_first,       // the commit line is written before the records
  base_last_home_line,     // the last home line is not flushed
  base_word_first,         // the TxID of the commit line is stored first
  base_recover_unfenced,   // recovery truncates the logs before home is durable
  base_first_slot_only,    // recovery reads the first slot of each log only
  base_no_checksum,        // recovery does not verify the checksum of records
  redo_no_log_fence,       // home is stored before the log is durable
  redo_no_data_fence,      // the log is truncated before home is durable
  redo_no_truncate_fence,  // locks are released before the truncation is durable
  redo_last_home_line,     // the last home line is not flushed
  redo_truncate_first,     // the head moves before home is flushed
  redo_head_unflushed,     // the head is stored and not flushed
  bulk_no_log_fence,       // a commit returns before its log is durable
  bulk_home_first,         // home is stored before the log is durable
  bulk_no_data_fence,      // the watermark rises before home is durable
  bulk_no_mark_fence,      // heads move before the watermark is durable
  bulk_no_head_fence,      // lines are reused before the heads are durable
  bulk_last_home_line,     // bulk persistence leaves out the last home line
  // bulk persistence flushes one log's lines, and raises the watermark for all logs
  bulk_first_log_only,
  bulk_mark_ahead,       // the watermark is one commit too high
  bulk_own_flushed,      // the owner's write-back takes the running commit's lines
  bulk_flushed_early,    // lines count as written back before the owner's fence
  bulk_owner_last_line,  // the owner's write-back leaves out its last line
  bulk_spill_flushed,    // a spilled record before `flushed` counts as written back
  sums_not_renewed,      // truncation and recovery do not update block checksums
  sums_last_block,       // the checksum of the last block is not updated
  sums_after_mark,       // block checksums are updated after the watermark has moved
  sums_not_recovered,    // recovery does not update the checksums of the blocks that it replays
  // a truncation changes block checksums without setting the state word to `updating`
  sums_move_unsaid,
  sums_move_unfenced,  // a block checksum changes before the state `updating` is durable
  sums_said_early,     // the state becomes `valid` before the watermark has moved
  // recovery changes block checksums without setting the state word to `updating`
  sums_recovery_unsaid,
  sums_not_counted,  // a commit that stores home does not update the block checksums
  sums_spill_kept,   // a spilled record overwrites blocks and leaves their checksums as they were
  // a block log records 0 as the checksum delta of what a transaction replaces
  sums_blocks_weightless,
  sums_weights_crowded,  // a block log reserves no room for the checksum deltas of a transaction
  sums_free_stay,        // a full recomputation leaves the checksums of free chunks as they were
  // a block checksum of 0 is not checked, and a zeroed home is taken for a fresh one
  sums_zero_unjudged,
  grow_same_slot,        // the growth slot in force is overwritten
  grow_no_slot_fence,    // a growth slot is in force before it and its chunk table are durable
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
  default_shared_unflushed,  // a commit in the shared log returns before its record is flushed
  xil_no_log_fence,          // a commit returns before its blocks are durable
  xil_home_first,            // home is stored before the blocks are durable
  xil_no_data_fence,         // a commit ends before home is durable, and its log may be truncated
  xil_last_home_line,        // the last home line is not flushed
  xil_commit_unflushed,      // the line of the commit record is not flushed
  xil_abort_unflushed,       // abort records before a commit are not flushed with the commit
  xil_torn_sense,            // the torn bit is not inverted at wrap-around
  xil_tail_bit,              // the top bit of the data block is not kept
  xil_no_filler,             // the rest of a transaction's last line is not filled
  xil_aborted_left,          // holes keep their old torn bits at truncation
  xil_short_reach,           // reading looks for no abort record after a hole
  xil_no_checksum,   // untorn blocks count, even if the commit record was written for other blocks
  xil_run_torn,      // the torn bit of a run's further words is not inverted at wrap-around
  xil_run_bits,      // the bits that torn bits displace in a run's further words are not kept
  xil_run_short,     // the head of a run counts one word less, each time that it grows
  xil_run_unpadded,  // the half of a block that a run leaves is not filled
  xil_run_head_rewritten,   // a second store to a run's word makes its head a data record again
  xil_run_read_as_records,  // looking for abort records, reading takes a run's words for records
  switch_no_truncate,       // a log changes its format while it holds committed transactions
  switch_no_zero,           // the ring keeps lines of the other format
  switch_half_zeroed,       // half of the ring keeps lines of the other format
  switch_no_zero_fence,     // the head moves before the zeroes are durable
  // records of the new format are written before the head that names it is durable
  switch_no_head_fence,
  switch_old_form,         // the head names the old format
  switch_head_first,       // the head names the new format before the ring is zeroed
  undo_no_log_fence,       // home is stored before the old values are durable
  undo_no_data_fence,      // the log is truncated before home is durable
  undo_no_truncate_fence,  // a commit is acknowledged before the truncation is durable
  undo_last_old_line,      // the log holds the new values of the last line instead of its old ones
  undo_last_home_line,     // the last home line is not flushed
  undo_truncate_first,     // the head moves before home is flushed
  published_no_log_fence,  // redo: home is stored before the stores' log is durable
  published_last_store,    // redo: the log lacks the last store
  published_no_store_fence,  // undo: the store goes on before the old value is durable
  published_abort_uncut,     // undo: an aborted transaction's records stay in the log
  published_abort_unfenced,  // undo: locks are released before the log is durably cut
  recover_truncate_first,    // logs are truncated before home is durable
  recover_unsorted,          // committed transactions are replayed in log order
  recover_first_log_only,    // only the first log is read
  recover_no_scrub,          // lines of a torn commit stay in the log
  recover_no_home_fence,     // the watermark rises before home is durable
  recover_no_mark_fence,     // logs are truncated before the watermark is durable
  recover_unflushed,         // replayed home lines are not flushed
  recover_heads_first,       // heads are reset before the rings are zeroed
  heap_free_early,      // a freed block may be allocated again before its transaction has committed
  heap_freed_twice,     // a freed block enters the free list twice
  heap_untracked_free,  // the free is not part of the transaction: a crash loses it
  heap_untracked_take,  // the allocation is not part of the transaction: a crash loses it
  heap_no_descriptor,   // the descriptor of a new slab is not part of the transaction
  heap_stale_states,    // a chunk that becomes a slab keeps the block states of its former use
  heap_short_extent,    // freeing an extent leaves out its last chunk
  // the blocks of an earlier session's slab are listed as free without reading their states
  heap_stale_list,
  heap_abort_keeps,    // blocks of a slab whose allocation was rolled back stay in the free list
  heap_large_stale,    // a run that becomes a large slab keeps the block states of its former use
  heap_large_no_tail,  // a new large slab leaves the descriptors of its further chunks as they were
  heap_large_short_free,  // freeing a large slab leaves out its last chunk
  // the state of a block in a further chunk of a large slab is written to that chunk
  heap_large_own_chunk,
  version_copy_left,       // a raised version is not written to the header's copy
  version_no_fence,        // the header's version is raised before its copy is durable
  version_late,            // what only the present version has is made before the version is raised
  default_no_batch_fence,  // home is stored before deferred commits are durable
  default_last_record,  // making deferred commits durable leaves out the last line of the records
  default_ordered_home_first,  // an ordered commit stores home itself
  default_no_chain,            // a record does not name the ordered commit before it
  // recovery does not check whether the ordered commit before a record is there
  default_chain_ignored,
  default_no_wait,    // a durable commit returns before the ordered commits before it are durable
  ls_no_fence,        // a commit returns before its blocks are durable
  ls_last_line,       // the last line of a commit's last block is not flushed
  ls_preamble_first,  // the first line of a block is durable before the rest of the block is stored
  ls_header_unflushed,   // the header of a new chunk is not flushed
  ls_header_late,        // blocks are written before the header of their chunk is durable
  ls_ring_broken,        // the last block of a transaction links to itself instead of to the first
  ls_ring_ignored,       // recovery accepts blocks of a transaction that lacks other blocks
  ls_crc_unseeded,       // a block's CRC does not depend on the generation of its chunk
  ls_copies_unsaid,      // cleaning does not record how far blocks reach in its chunks
  ls_full_unsaid,        // a commit does not record how far blocks reach in chunks that it fills
  ls_tails_unsaid,       // closing does not record how far blocks reach in the logs' last chunks
  ls_abandoned_left,     // blocks of a transaction that did not commit stay on media
  ls_version_ignored,    // recovery maps entries in the order of their chunks
  ls_tombstone_ignored,  // recovery ignores tombstones
  ls_allocation_forgotten,  // recovery does not read which blocks are allocated
  ls_copy_unfenced,         // a chunk is freed before the entries moved out of it are durable
  ls_stale_mapping,         // the last moved entry stays mapped to its old place
  ls_tombstone_dropped,     // cleaning drops a tombstone while older versions are on media
  // an entry that is moved joined with a newer neighbour gets the older version
  ls_joined_as_older,
  ls_joined_in_part,        // a range counts as joined although only its begin was
  ls_cleans_newest,         // cleaning takes chunks that hold the newest transaction of their lane
  ls_cached_word_stale,     // a commit does not change the words that the word cache has
  archapt_no_log_fence,     // home is stored before the record is durable
  archapt_weak_checksum,    // the checksum of a line is the xor of its words
  archapt_wrong_column,     // column checksums add up eight lines, not seven
  archapt_in_place,         // a new parity block overwrites the one that counts
  archapt_over_end,         // a parity block after an end overwrites that end
  archapt_block_unflushed,  // the last line of a parity block is not written
  // a parity block is stored before the lines that are not skipped are flushed
  archapt_blocks_first,
  archapt_no_data_fence,  // no fence between the lines that are not skipped and the parity block
  archapt_hot_unflushed,  // lines that are not skipped are not flushed
  archapt_log_released,   // the watermark rises before home and parity blocks are durable
  // a covered matrix keeps its block when the old values of later stores are truncated
  archapt_touched_left,
  archapt_ended_first,  // a parity block is ended before the lines that it covered are durable
  archapt_short_queue,  // the queue of recently used lines has a sixteenth of its configured length
  archapt_no_old_values,      // records over redo lack the old values of covered lines
  archapt_undo_acknowledged,  // a commit over undo returns before home is durable
  archapt_rolls_forward,  // recovery over undo rolls back in commit order instead of the reverse
  archapt_no_detection,   // recovery takes every line for equal to its parity block
  archapt_stale_block,    // of two parity blocks recovery takes the earlier
  archapt_stale_only,     // recovery does not write lines that only old values made right
  // recovery drops the parity blocks before the lines that they restored are durable
  archapt_recover_unfenced,
  // parity blocks stop counting before the lines that they covered are durable
  archapt_checkpoint_unflushed,
  archapt_checkpoint_covered,  // the checkpoint copy changes while parity blocks count
  archapt_copy_unchanged,  // stores since the last checkpoint are not copied to the checkpoint copy
  archapt_no_first_checkpoint,  // lines are covered before the session has made a checkpoint
  archapt_fallback_undecided,   // fallback overwrites home without first storing the fallback state
  archapt_fallback_unflushed,   // home is not flushed in a fallback
  archapt_fallback_covered,     // parity blocks from before a fallback still count
  archapt_fallback_replayed,    // logs from before a fallback are still replayed
  archapt_last_home_line,       // a commit that stands alone does not flush its last line of home
  archapt_alone_over_ordered,   // a commit stands alone although ordered ones are not durable
  archapt_in_doubt_kept,  // recovery over undo keeps the newest commit of a log whatever home has
  archapt_later_ignored,  // a commit in doubt is judged by home with the stores of later commits
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
  backup_stores_first,  // a commit stores home before the backup has copied the pages
  backup_moves_on,      // a backup resumes transactions before it knows its pages
  bias_unawaited,       // the bias is revoked while its thread is in a transaction without locks
  bias_beside_others,   // a thread gets the bias while others are in transactions
  empty_not_waited,     // a durable update that stores nothing leaves ordered commits as they are
  bias_over_overlay,    // a transaction without locks beside locks of deferred commits
  long_read_one_look,   // a long read does not look again whether a page is kept
  long_read_moves_on,   // a long read begins while transactions run
  readers_switch_unpaused,   // transactions run while the first reader's locks come into force
  readers_back_unpaused,     // transactions run while the last reader's locks go out of force
  readers_lone_unlocked,     // a thread that runs alone takes no locks for other processes
  readers_lone_late,         // it takes them after its TxID
  readers_own_locks,         // a reader takes a lock that a writer holds for its own
  kept_marked_first,         // a page counts as kept for another process before it is copied
  kept_one_look,             // another process does not look again whether a page is kept
  kv_cleared_first,          // an item of a dropped store goes before its name does
  kv_drop_unlisted,          // the name goes, and nothing leads to the store that is to be cleared
  redis_unit_apart,          // each change of a unit of Redis' keys is committed by itself
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

}  // namespace stele::base
