// Mutants of the published mechanisms: bugs planted on purpose (base/mutant.h).
#pragma once

#include <base/mutant.h>

#include <cstdint>

namespace stele::published {

// Behind the numbers of base::mutant.
enum class mutant : std::uint16_t {
  base_commit_first = 0x1000,  // the commit line is written before the records
  base_word_first,             // the TxID of the commit line is stored first
  base_first_slot_only,        // recovery reads the first slot of each log only
  base_no_checksum,            // recovery does not verify the checksum of records
  redo_truncate_first,         // the head moves before home is flushed
  // a block log records 0 as the checksum delta of what a transaction replaces
  sums_blocks_weightless,
  sums_weights_crowded,  // a block log reserves no room for the checksum deltas of a transaction
  xil_home_first,        // home is stored before the blocks are durable
  xil_torn_sense,        // the torn bit is not inverted at wrap-around
  xil_tail_bit,          // the top bit of the data block is not kept
  xil_no_filler,         // the rest of a transaction's last line is not filled
  xil_short_reach,       // reading looks for no abort record after a hole
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
  switch_old_form,          // the head names the old format
  switch_head_first,        // the head names the new format before the ring is zeroed
  undo_last_old_line,       // the log holds the new values of the last line instead of its old ones
  undo_truncate_first,      // the head moves before home is flushed
  published_last_store,     // redo: the log lacks the last store
  published_abort_uncut,    // undo: an aborted transaction's records stay in the log
  // the first line of a block is durable before the rest of the block is stored
  ls_preamble_first,
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
  ls_stale_mapping,         // the last moved entry stays mapped to its old place
  ls_tombstone_dropped,     // cleaning drops a tombstone while older versions are on media
  // an entry that is moved joined with a newer neighbour gets the older version
  ls_joined_as_older,
  ls_joined_in_part,      // a range counts as joined although only its begin was
  ls_cleans_newest,       // cleaning takes chunks that hold the newest transaction of their lane
  ls_cached_word_stale,   // a commit does not change the words that the word cache has
  archapt_weak_checksum,  // the checksum of a line is the xor of its words
  archapt_wrong_column,   // column checksums add up eight lines, not seven
  archapt_in_place,       // a new parity block overwrites the one that counts
  archapt_over_end,       // a parity block after an end overwrites that end
  // a parity block is stored before the lines that are not skipped are flushed
  archapt_blocks_first,
  archapt_hot_unflushed,  // lines that are not skipped are not flushed
  // a covered matrix keeps its block when the old values of later stores are truncated
  archapt_touched_left,
  // the queue of recently used lines has a sixteenth of its configured length
  archapt_short_queue,
  archapt_no_old_values,      // records over redo lack the old values of covered lines
  archapt_undo_acknowledged,  // a commit over undo returns before home is durable
  archapt_rolls_forward,  // recovery over undo rolls back in commit order instead of the reverse
  archapt_no_detection,   // recovery takes every line for equal to its parity block
  archapt_stale_block,    // of two parity blocks recovery takes the earlier
  archapt_stale_only,     // recovery does not write lines that only old values made right
  archapt_checkpoint_covered,  // the checkpoint copy changes while parity blocks count
  // stores since the last checkpoint are not copied to the checkpoint copy
  archapt_copy_unchanged,
  archapt_no_first_checkpoint,  // lines are covered before the session has made a checkpoint
  // fallback overwrites home without first storing the fallback state
  archapt_fallback_undecided,
  archapt_fallback_covered,    // parity blocks from before a fallback still count
  archapt_fallback_replayed,   // logs from before a fallback are still replayed
  archapt_alone_over_ordered,  // a commit stands alone although ordered ones are not durable
  archapt_in_doubt_kept,  // recovery over undo keeps the newest commit of a log whatever home has
  archapt_later_ignored,  // a commit in doubt is judged by home with the stores of later commits
};

constexpr base::mutant number_of(mutant m) noexcept {
  return static_cast<base::mutant>(m);
}

[[gnu::always_inline]] inline bool planted(mutant m) noexcept {
  return base::planted(number_of(m));
}
template <class Media>
[[gnu::always_inline]] inline bool planted(mutant m) noexcept {
  return base::planted<Media>(number_of(m));
}

}  // namespace stele::published
