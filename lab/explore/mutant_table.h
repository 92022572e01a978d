// The mutants by name (base/mutant.h, published/mutant.h), and which explored runs must show them.
#pragma once

#include <published/mutant.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace stele::explore {

using base::mutant;

// Any mutant: the library's, a published mechanism's, or one that only leaves out events of the
// medium or steps, which has no name in the source.
class any_mutant {
 public:
  constexpr any_mutant(base::mutant m) noexcept : number_(m) {}
  constexpr any_mutant(published::mutant m) noexcept : number_(published::number_of(m)) {}
  constexpr operator base::mutant() const noexcept { return number_; }

 private:
  base::mutant number_;
};

// `of` names the mechanisms that must each show the bug, or a shared part of which one must show
// it: log, recovery, heap, file, stores, redis, sqlite. `creation` and `damage` belong to no
// mechanism: tests/crash/file_creation_test.cc, tests/conformance/lost_parts_test.cc. `overlap:`
// precedes the mechanisms of bugs that only overlapping commits show (stele_schedules --mutants).
// `scenario` is given for those that a sweep finds late: one that shows the bug. `breaks`: the
// functions whose assertions about it do not hold (base::holds), by file and name, with commas
// between them. `leaves_out`: the events of the medium, or the steps, that are left out at their
// places (lab_media/event_sites.h).
struct mutant_entry {
  any_mutant what;
  std::string_view name, of, scenario = "", breaks = "", leaves_out = "";
};
constexpr mutant_entry left_out(std::string_view name, std::string_view of,
                                std::string_view leaves_out) noexcept {
  return {mutant::none, name, of, "", "", leaves_out};
}
inline constexpr std::uint16_t first_left_out = 0x2000;  // behind the numbers of the others

inline constexpr mutant_entry mutants_without_numbers[] = {
    {mutant::none, "none", ""},
    {mutant::log_torn_sense, "log_torn_sense", "log"},
    {mutant::log_one_torn_bit, "log_one_torn_bit", "log"},
    // the last line of a record is not streamed before the fence
    left_out("log_last_line", "log", "last stream ring.h:write"),
    {mutant::log_first_stored, "log_first_stored", "log"},
    {mutant::log_top_bits, "log_top_bits", "log"},
    // no fence between a spilled payload and the record that points to it
    left_out("log_spill_unfenced", "log", "fence lanes.h:stream_spill"),
    // no fence between records and commit line
    left_out("base_no_log_fence", "base", "fence base.h:commit#1"),
    // home is stored before the commit line is durable
    left_out("base_no_commit_fence", "base", "fence base.h:commit#2"),
    // the log is truncated before home is durable
    left_out("base_no_data_fence", "base", "fence base.h:commit#3"),
    // locks are released before the truncation is durable
    left_out("base_no_truncate_fence", "base", "fence base.h:commit#4"),
    {published::mutant::base_commit_first, "base_commit_first", "base"},
    // the last home line is not flushed
    left_out("base_last_home_line", "base", "last flush home_writer.h:store_flushed"),
    {published::mutant::base_word_first, "base_word_first", "base"},
    // recovery truncates the logs before home is durable
    left_out("base_recover_unfenced", "base", "fence base.h:recover"),
    {published::mutant::base_first_slot_only, "base_first_slot_only", "base"},
    {published::mutant::base_no_checksum, "base_no_checksum", "base"},
    // home is stored before the log is durable
    left_out("redo_no_log_fence", "redo", "fence redo.h:commit"),
    // the log is truncated before home is durable
    left_out("redo_no_data_fence", "redo", "fence redo.h:store_home#1"),
    // locks are released before the truncation is durable
    left_out("redo_no_truncate_fence", "redo", "fence redo.h:store_home#2"),
    // the last home line is not flushed
    left_out("redo_last_home_line", "redo", "last flush home_writer.h:store_flushed"),
    {published::mutant::redo_truncate_first, "redo_truncate_first", "redo"},
    // the head is stored and not flushed
    left_out("redo_head_unflushed", "redo", "flush ring.h:write_head"),
    // a commit returns before its log is durable
    left_out("bulk_no_log_fence", "redo-async,vcbp,default",
             "fence private_log.h:harden, fence shared_log.h:harden"),
    {mutant::bulk_home_first, "bulk_home_first", "redo-async,vcbp,default"},
    // the watermark rises before home is durable
    left_out("bulk_no_data_fence", "redo-async,vcbp,default", "fence bulk_write_back.h:truncate#1"),
    // heads move before the watermark is durable
    left_out("bulk_no_mark_fence", "redo-async,vcbp,default", "fence bulk_write_back.h:truncate#2"),
    // lines are reused before the heads are durable
    left_out("bulk_no_head_fence", "redo-async,vcbp,default", "fence truncation.h:advance_heads"),
    // bulk persistence leaves out the last home line
    left_out("bulk_last_home_line", "redo-async,vcbp,default",
             "last flush bulk_write_back.h:persist_home"),
    {mutant::bulk_first_log_only, "bulk_first_log_only", "redo-async,vcbp,default"},
    {mutant::bulk_mark_ahead, "bulk_mark_ahead", "redo-async,vcbp,default"},
    {mutant::bulk_own_flushed, "bulk_own_flushed", "default"},
    {mutant::bulk_flushed_early, "bulk_flushed_early", "overlap:default"},
    // the owner's write-back leaves out its last line
    left_out("bulk_owner_last_line", "default", "last flush bulk_write_back.h:flush_batch"),
    {mutant::bulk_spill_flushed, "bulk_spill_flushed", "default"},
    {mutant::sums_not_renewed, "sums_not_renewed", "vcbp,default"},
    {mutant::sums_last_block, "sums_last_block", "vcbp,xil,default"},
    {mutant::sums_after_mark, "sums_after_mark", "vcbp,default"},
    {mutant::sums_not_recovered, "sums_not_recovered", "vcbp,blurred,default"},
    // a truncation changes block checksums without setting the state word to `updating`
    left_out("sums_move_unsaid", "vcbp,blurred,default", "mark_moving bulk_write_back.h:truncate"),
    // a block checksum changes before the state `updating` is durable
    left_out("sums_move_unfenced", "vcbp,default", "fence home_checksums.h:mark_moving"),
    {mutant::sums_said_early, "sums_said_early", "vcbp,default"},
    // recovery changes block checksums without setting the state word to `updating`
    left_out("sums_recovery_unsaid", "vcbp,blurred,default", "mark_moving recovery.h:restart"),
    {mutant::sums_not_counted, "sums_not_counted", "redo,undo,base"},
    {mutant::sums_spill_kept, "sums_spill_kept", "vcbp,default"},
    {published::mutant::sums_blocks_weightless, "sums_blocks_weightless", "xil,blurred"},
    {published::mutant::sums_weights_crowded, "sums_weights_crowded", "xil,blurred"},
    {mutant::sums_free_stay, "sums_free_stay", "damage"},
    {mutant::sums_zero_unjudged, "sums_zero_unjudged", "damage"},
    {mutant::grow_same_slot, "grow_same_slot", "default", "", "pool_growth.h:grow_pool"},
    // a growth slot is in force before it and its chunk table are durable
    left_out("grow_no_slot_fence", "default", "fence pool_growth.h:grow_pool#1"),
    {mutant::grow_sums_kept, "grow_sums_kept", "default"},
    {mutant::file_home_unsynced, "file_home_unsynced", "file"},
    {mutant::file_last_run, "file_last_run", "file"},
    {mutant::file_not_synchronous, "file_not_synchronous", "file"},
    {mutant::file_failure_ignored, "file_failure_ignored", "file"},
    {mutant::file_sync_retried, "file_sync_retried", "file"},
    {mutant::file_write_back_ignored, "file_write_back_ignored", "file"},
    {mutant::file_named_first, "file_named_first", "creation"},
    {mutant::default_shared_alone, "default_shared_alone", "default"},
    // a commit in the shared log returns before its record is flushed
    left_out("default_shared_unflushed", "default", "flush lanes.h:flush_lines"),
    // a commit returns before its blocks are durable
    left_out("xil_no_log_fence", "xil,blurred", "fence blurred.h:commit#1"),
    {published::mutant::xil_home_first, "xil_home_first", "xil,blurred"},
    // a commit ends before home is durable, and its log may be truncated
    left_out("xil_no_data_fence", "xil", "fence blurred.h:commit#2"),
    // the last home line is not flushed
    left_out("xil_last_home_line", "xil", "last flush blurred.h:store_home"),
    // the line of the commit record is not flushed
    left_out("xil_commit_unflushed", "xil,blurred", "last flush block_log.h:commit"),
    // abort records before a commit are not flushed with the commit
    left_out("xil_abort_unflushed", "xil,blurred", "flush block_log.h:flush"),
    {published::mutant::xil_torn_sense, "xil_torn_sense", "xil,blurred"},
    {published::mutant::xil_tail_bit, "xil_tail_bit", "xil,blurred"},
    {published::mutant::xil_no_filler, "xil_no_filler", "xil,blurred"},
    // holes keep their old torn bits at truncation
    left_out("xil_aborted_left", "xil,blurred", "flush lanes.h:flush_lines"),
    {published::mutant::xil_short_reach, "xil_short_reach", "xil,blurred"},
    {published::mutant::xil_no_checksum, "xil_no_checksum", "xil,blurred"},
    {published::mutant::xil_run_torn, "xil_run_torn", "xil,blurred"},
    {published::mutant::xil_run_bits, "xil_run_bits", "xil,blurred"},
    {published::mutant::xil_run_short, "xil_run_short", "xil,blurred", "",
     "block_log.h:extend_run"},
    {published::mutant::xil_run_unpadded, "xil_run_unpadded", "xil,blurred"},
    {published::mutant::xil_run_head_rewritten, "xil_run_head_rewritten", "xil,blurred", "",
     "block_log.h:rewrite_record"},
    {published::mutant::xil_run_read_as_records, "xil_run_read_as_records", "xil,blurred"},
    {published::mutant::switch_no_truncate, "switch_no_truncate", "adaptive", "",
     "blurred.h:switch_log_format"},
    {published::mutant::switch_no_zero, "switch_no_zero", "adaptive", "",
     "blurred.h:switch_log_format"},
    {published::mutant::switch_half_zeroed, "switch_half_zeroed", "adaptive", "",
     "blurred.h:switch_log_format"},
    // the head moves before the zeroes are durable
    left_out("switch_no_zero_fence", "adaptive", "fence blurred.h:switch_log_format#1"),
    // records of the new format are written before the head that names it is durable
    left_out("switch_no_head_fence", "adaptive", "fence blurred.h:switch_log_format#2"),
    {published::mutant::switch_old_form, "switch_old_form", "adaptive"},
    {published::mutant::switch_head_first, "switch_head_first", "adaptive"},
    // home is stored before the old values are durable
    left_out("undo_no_log_fence", "undo", "fence redo.h:commit"),
    // the log is truncated before home is durable
    left_out("undo_no_data_fence", "undo", "fence redo.h:store_home#1"),
    // a commit is acknowledged before the truncation is durable
    left_out("undo_no_truncate_fence", "undo", "fence redo.h:store_home#2"),
    {published::mutant::undo_last_old_line, "undo_last_old_line", "undo"},
    // the last home line is not flushed
    left_out("undo_last_home_line", "undo", "last flush home_writer.h:store_flushed"),
    {published::mutant::undo_truncate_first, "undo_truncate_first", "undo"},
    // redo: home is stored before the stores' log is durable
    left_out("published_no_log_fence", "redo-published", "fence published.h:commit"),
    {published::mutant::published_last_store, "published_last_store", "redo-published"},
    // undo: the store goes on before the old value is durable
    left_out("published_no_store_fence", "undo-published", "fence published.h:keep_old_value"),
    {published::mutant::published_abort_uncut, "published_abort_uncut", "undo-published", "",
     "published.h:begin"},
    // undo: locks are released before the log is durably cut
    left_out("published_abort_unfenced", "undo-published", "fence published.h:abort"),
    {mutant::recover_truncate_first, "recover_truncate_first", "recovery"},
    {mutant::recover_unsorted, "recover_unsorted", "recovery", "",
     "recovery.h:put_in_order,recovery.h:discard_orphans"},
    {mutant::recover_first_log_only, "recover_first_log_only", "recovery"},
    // lines of a torn commit stay in the log
    left_out("recover_no_scrub", "recovery", "stream lanes.h:zero"),
    // the watermark rises before home is durable
    left_out("recover_no_home_fence", "recovery", "fence recovery.h:restart#1"),
    // logs are truncated before the watermark is durable
    left_out("recover_no_mark_fence", "recovery", "fence recovery.h:restart#2"),
    // replayed home lines are not flushed
    left_out("recover_unflushed", "recovery", "flush recovery.h:restart"),
    {mutant::recover_heads_first, "recover_heads_first", "recovery"},
    {mutant::heap_free_early, "heap_free_early", "heap"},
    {mutant::heap_freed_twice, "heap_freed_twice", "heap"},
    {mutant::heap_untracked_free, "heap_untracked_free", "heap"},
    {mutant::heap_untracked_take, "heap_untracked_take", "heap"},
    {mutant::heap_no_descriptor, "heap_no_descriptor", "heap"},
    {mutant::heap_stale_states, "heap_stale_states", "heap"},
    {mutant::heap_short_extent, "heap_short_extent", "heap"},
    {mutant::heap_stale_list, "heap_stale_list", "heap"},
    {mutant::heap_abort_keeps, "heap_abort_keeps", "heap"},
    {mutant::heap_large_stale, "heap_large_stale", "heap"},
    {mutant::heap_large_no_tail, "heap_large_no_tail", "heap"},
    {mutant::heap_large_short_free, "heap_large_short_free", "heap"},
    {mutant::heap_large_own_chunk, "heap_large_own_chunk", "heap"},
    {mutant::version_copy_left, "version_copy_left", "heap"},
    // the header's version is raised before its copy is durable
    left_out("version_no_fence", "heap", "fence header_version.h:raise_version"),
    {mutant::version_late, "version_late", "heap"},
    // home is stored before deferred commits are durable
    left_out("default_no_batch_fence", "default", "fence deferred_commits.h:flush_batches"),
    // making deferred commits durable leaves out the last line of the records
    left_out("default_last_record", "default", "last flush lanes.h:flush_lines"),
    {mutant::default_ordered_home_first, "default_ordered_home_first", "default"},
    {mutant::default_no_chain, "default_no_chain", "default"},
    {mutant::default_chain_ignored, "default_chain_ignored", "default"},
    {mutant::default_no_wait, "default_no_wait", "default"},
    // a commit returns before its blocks are durable
    left_out("ls_no_fence", "log_structured", "fence log_structured.h:commit"),
    // the last line of a commit's last block is not flushed
    left_out("ls_last_line", "log_structured", "last flush chunk_log.h:write_block"),
    {published::mutant::ls_preamble_first, "ls_preamble_first", "log_structured"},
    // the header of a new chunk is not flushed
    left_out("ls_header_unflushed", "log_structured", "flush chunk_log.h:open_chunk#1"),
    // blocks are written before the header of their chunk is durable
    left_out("ls_header_late", "log_structured", "fence chunk_log.h:write"),
    {published::mutant::ls_ring_broken, "ls_ring_broken", "log_structured"},
    {published::mutant::ls_ring_ignored, "ls_ring_ignored", "log_structured"},
    {published::mutant::ls_crc_unseeded, "ls_crc_unseeded", "log_structured"},
    {published::mutant::ls_copies_unsaid, "ls_copies_unsaid", "damage"},
    {published::mutant::ls_full_unsaid, "ls_full_unsaid", "damage"},
    {published::mutant::ls_tails_unsaid, "ls_tails_unsaid", "damage"},
    {published::mutant::ls_abandoned_left, "ls_abandoned_left", "log_structured"},
    {published::mutant::ls_version_ignored, "ls_version_ignored", "log_structured"},
    {published::mutant::ls_tombstone_ignored, "ls_tombstone_ignored", "log_structured"},
    {published::mutant::ls_allocation_forgotten, "ls_allocation_forgotten", "log_structured"},
    // a chunk is freed before the entries moved out of it are durable
    left_out("ls_copy_unfenced", "log_structured", "fence cleaner.h:move_live"),
    {published::mutant::ls_stale_mapping, "ls_stale_mapping", "log_structured", "",
     "cleaner.h:is_still_mapped"},
    {published::mutant::ls_tombstone_dropped, "ls_tombstone_dropped", "log_structured", "",
     "cleaner.h:is_still_mapped"},
    {published::mutant::ls_joined_as_older, "ls_joined_as_older", "log_structured"},
    {published::mutant::ls_joined_in_part, "ls_joined_in_part", "overlap:log_structured",
     "joined in the background", "cleaner.h:is_still_mapped"},
    {published::mutant::ls_cleans_newest, "ls_cleans_newest", "log_structured"},
    {published::mutant::ls_cached_word_stale, "ls_cached_word_stale", "log_structured"},
    // home is stored before the record is durable
    left_out("archapt_no_log_fence", "archapt-undo,archapt-redo",
             "fence archapt.h:commit, fence archapt.h:commit_alone#1"),
    {published::mutant::archapt_weak_checksum, "archapt_weak_checksum",
     "archapt-undo,archapt-redo"},
    {published::mutant::archapt_wrong_column, "archapt_wrong_column", "archapt-undo,archapt-redo"},
    {published::mutant::archapt_in_place, "archapt_in_place", "archapt-undo,archapt-redo"},
    {published::mutant::archapt_over_end, "archapt_over_end", "archapt-undo,archapt-redo"},
    // the last line of a parity block is not written
    left_out("archapt_block_unflushed", "archapt-undo,archapt-redo",
             "short stream parity_tracker.h:write"),
    {published::mutant::archapt_blocks_first, "archapt_blocks_first", "archapt-undo,archapt-redo"},
    // no fence between the lines that are not skipped and the parity block
    left_out("archapt_no_data_fence", "archapt-undo,archapt-redo", "fence parity_tracker.h:cover"),
    {published::mutant::archapt_hot_unflushed, "archapt_hot_unflushed", "archapt-undo,archapt-redo",
     "", "parity_tracker.h:make_block"},
    // the watermark rises before home and parity blocks are durable
    left_out("archapt_log_released", "archapt-undo,archapt-redo",
             "fence archapt.h:make_home_durable#1"),
    {published::mutant::archapt_touched_left, "archapt_touched_left", "archapt-undo,archapt-redo"},
    // a parity block is ended before the lines that it covered are durable
    left_out("archapt_ended_first", "archapt-undo,archapt-redo",
             "fence parity_tracker.h:uncover#1"),
    {published::mutant::archapt_short_queue, "archapt_short_queue", "archapt-undo,archapt-redo"},
    {published::mutant::archapt_no_old_values, "archapt_no_old_values", "archapt-redo"},
    {published::mutant::archapt_undo_acknowledged, "archapt_undo_acknowledged", "archapt-undo", "",
     "", "fence archapt.h:commit_alone#2"},
    {published::mutant::archapt_rolls_forward, "archapt_rolls_forward", "archapt-undo"},
    {published::mutant::archapt_no_detection, "archapt_no_detection", "archapt-undo,archapt-redo"},
    {published::mutant::archapt_stale_block, "archapt_stale_block", "archapt-undo,archapt-redo"},
    {published::mutant::archapt_stale_only, "archapt_stale_only", "archapt-redo"},
    // recovery drops the parity blocks before the lines that they restored are durable
    left_out("archapt_recover_unfenced", "archapt-undo,archapt-redo",
             "fence archapt_recovery.h:restore_stale_lines#1"),
    // parity blocks stop counting before the lines that they covered are durable
    left_out("archapt_checkpoint_unflushed", "archapt-undo,archapt-redo",
             "fence archapt.h:end_epochs"),
    {published::mutant::archapt_checkpoint_covered, "archapt_checkpoint_covered",
     "archapt-undo,archapt-redo"},
    {published::mutant::archapt_copy_unchanged, "archapt_copy_unchanged",
     "archapt-undo,archapt-redo"},
    {published::mutant::archapt_no_first_checkpoint, "archapt_no_first_checkpoint",
     "archapt-undo,archapt-redo", "", "checkpoint_schedule.h:covers"},
    {published::mutant::archapt_fallback_undecided, "archapt_fallback_undecided",
     "archapt-undo,archapt-redo"},
    // home is not flushed in a fallback
    left_out("archapt_fallback_unflushed", "archapt-undo,archapt-redo",
             "flush home_copy.h:restore_home"),
    {published::mutant::archapt_fallback_covered, "archapt_fallback_covered",
     "archapt-undo,archapt-redo"},
    {published::mutant::archapt_fallback_replayed, "archapt_fallback_replayed",
     "archapt-undo,archapt-redo"},
    // a commit that stands alone does not flush its last line of home
    left_out("archapt_last_home_line", "archapt-undo", "last flush home_writer.h:store_flushed"),
    {published::mutant::archapt_alone_over_ordered, "archapt_alone_over_ordered", "archapt-undo"},
    {published::mutant::archapt_in_doubt_kept, "archapt_in_doubt_kept", "archapt-undo"},
    {published::mutant::archapt_later_ignored, "archapt_later_ignored", "archapt-undo"},
    {mutant::default_txid_before_place, "default_txid_before_place", "overlap:default",
     "one log for all, truncated"},
    {mutant::retire_paused, "retire_paused", "overlap:default", "ordered beside check"},
    {mutant::stm_stale_allocation, "stm_stale_allocation", "overlap:redo,default"},
    {mutant::backup_spill_unkept, "backup_spill_unkept", "overlap:default,redo"},
    {mutant::stm_no_validation, "stm_no_validation", "overlap:default,redo,base,log_structured",
     "records that outgrow a log"},
    {mutant::stm_extend_unchecked, "stm_extend_unchecked", "overlap:default,undo,xil"},
    {mutant::stm_one_look, "stm_one_look", "overlap:default,vcbp",
     "beside readers, each load a point"},
    {mutant::stm_old_version, "stm_old_version", "overlap:default,blurred,log_structured"},
    {mutant::stm_unlock_first, "stm_unlock_first",
     "overlap:default,redo,undo,base,xil,vcbp,blurred,adaptive,archapt-undo,archapt-redo,log_"
     "structured,redo-async"},
    {mutant::stm_announce_late, "stm_announce_late",
     "overlap:redo-async,vcbp,blurred,adaptive,archapt-redo,archapt-undo,default",
     "truncation, each store a point"},
    {mutant::bulk_runs_ignored, "bulk_runs_ignored",
     "overlap:redo-async,vcbp,blurred,adaptive,default"},
    {mutant::bulk_mark_back, "bulk_mark_back", "overlap:archapt-undo",
     "truncation, each store a point", "archapt.h:make_home_durable"},
    {mutant::batch_pending_ignored, "batch_pending_ignored", "overlap:default",
     "ordered, truncated, each load a point"},
    {mutant::batch_own_alone, "batch_own_alone", "overlap:default"},
    {mutant::batch_joined_early, "batch_joined_early", "overlap:default"},
    {mutant::batch_home_early, "batch_home_early", "overlap:default"},
    {mutant::batch_ends_late, "batch_ends_late", "overlap:default"},
    {mutant::batch_told_late, "batch_told_late", "overlap:default",
     "one log for all, ordered beside syncs"},
    {mutant::told_early, "told_early", "overlap:default"},
    {mutant::batch_no_prefix, "batch_no_prefix", "overlap:default",
     "ordered and told, made durable in the background"},
    {mutant::group_appended_meanwhile, "group_appended_meanwhile", "overlap:default"},
    {mutant::group_not_awaited, "group_not_awaited", "overlap:default",
     "one log for all, truncated"},
    {mutant::group_from_appended, "group_from_appended", "overlap:default"},
    {mutant::heap_run_early, "heap_run_early", "overlap:default,redo,undo", "heap"},
    {mutant::heap_claimless, "heap_claimless", "overlap:default,redo", "beside check"},
    {mutant::backup_stores_first, "backup_stores_first", "overlap:default,redo,undo"},
    // a backup resumes transactions before it knows its pages
    {mutant::none, "backup_moves_on", "overlap:default,redo", "",
     "runtime.h:is_paused,page_snapshots.cc:counts_places", "pause backup.cc:run"},
    {mutant::bias_unawaited, "bias_unawaited", "overlap:default,redo,undo,xil,log_structured"},
    {mutant::bias_beside_others, "bias_beside_others", "overlap:default,redo,undo", "",
     "bias.h:grant"},
    {mutant::empty_not_waited, "empty_not_waited", "overlap:default,archapt-undo",
     "ordered beside updates that store nothing"},
    {mutant::bias_over_overlay, "bias_over_overlay", "overlap:default",
     "ordered, alone, then durable"},
    {mutant::long_read_one_look, "long_read_one_look", "overlap:default,redo,undo", "beside check"},
    // a long read begins while transactions run
    {mutant::none, "long_read_moves_on", "overlap:default,redo,undo",
     "beside readers, each load a point", "runtime.h:is_paused,page_snapshots.cc:counts_places",
     "pause long_read.cc:begin_long_read, pause long_read.cc:begin_keeping_pages"},
    // transactions run while the first reader's locks come into force
    {mutant::none, "readers_switch_unpaused", "overlap:default,redo,undo", "",
     "runtime.h:is_paused", "pause reader_service.cc:add_reader"},
    // transactions run while the last reader's locks go out of force
    {mutant::none, "readers_back_unpaused", "overlap:default,redo,undo", "", "runtime.h:is_paused",
     "pause reader_service.cc:remove_reader"},
    {mutant::readers_lone_unlocked, "readers_lone_unlocked", "overlap:default,redo,undo"},
    {mutant::readers_lone_late, "readers_lone_late", "overlap:default,redo,undo",
     "another process beside one thread"},
    {mutant::readers_own_locks, "readers_own_locks", "overlap:default,redo,undo",
     "other processes read, each load a point"},
    {mutant::kept_marked_first, "kept_marked_first", "overlap:default,redo,undo",
     "other processes come to one thread"},
    {mutant::kept_one_look, "kept_one_look", "overlap:default,redo,undo",
     "other processes read, truncated"},
    {mutant::kv_cleared_first, "kv_cleared_first", "stores"},
    {mutant::kv_drop_unlisted, "kv_drop_unlisted", "stores"},
    {mutant::redis_unit_apart, "redis_unit_apart", "redis", "", "keys.cc:places_come_out"},
    {mutant::redis_acknowledged_early, "redis_acknowledged_early", "redis"},
    {mutant::redis_child_ignored, "redis_child_ignored", "redis"},
    {mutant::redis_freed_early, "redis_freed_early", "redis"},
    {mutant::redis_keyspace_again, "redis_keyspace_again", "redis", "",
     "stored.cc:set_keyspace,stored.cc:flush,stored.cc:add"},
    {mutant::redis_named_early, "redis_named_early", "redis", "", "keys.cc:make_text,keys.cc:name"},
    {mutant::redis_sync_ahead, "redis_sync_ahead", "overlap:default",
     "units of Redis beside syncs"},
    {mutant::sqlite_one_by_one, "sqlite_one_by_one", "sqlite"},
    {mutant::sqlite_acknowledged_early, "sqlite_acknowledged_early", "sqlite"},
    {mutant::sqlite_line_skipped, "sqlite_line_skipped", "sqlite"},
    {mutant::sqlite_size_apart, "sqlite_size_apart", "sqlite"},
    {mutant::sqlite_early_inside, "sqlite_early_inside", "sqlite"},
    {mutant::sqlite_deferred_left, "sqlite_deferred_left", "sqlite", "",
     "stores.cc:compare,stores.cc:store_lines,"
     "database.cc:find_changes,database.cc:keep_changed,database.cc:prepare_deferral,"
     "database.cc:defer,database.cc:prepare_flush,"
     "kept.cc:read,kept.cc:make_room,kept.cc:add"},
    {mutant::sqlite_flush_apart, "sqlite_flush_apart", "sqlite"},
    {mutant::sqlite_flush_takes_newer, "sqlite_flush_takes_newer", "overlap:default"},
    {mutant::sqlite_flush_unversioned, "sqlite_flush_unversioned", "overlap:default",
     "a flush beside one connection of SQLite"},
    {mutant::sqlite_stamp_late, "sqlite_stamp_late", "overlap:default,redo", "readers of SQLite"},
    {mutant::sqlite_reader_forgotten, "sqlite_reader_forgotten", "overlap:default,redo",
     "readers of SQLite", "kept.cc:read,kept.cc:make_room,kept.cc:add"},
    {mutant::sqlite_cache_kept, "sqlite_cache_kept", "overlap:default,redo", "readers of SQLite"},
    {mutant::sqlite_cache_early, "sqlite_cache_early", "overlap:default,redo", "readers of SQLite"},
    {mutant::sqlite_cache_ahead, "sqlite_cache_ahead", "overlap:default,redo", "readers of SQLite",
     "cache.cc:answer"},
    {mutant::sqlite_snapshot_unchecked, "sqlite_snapshot_unchecked", "overlap:default,redo",
     "readers of SQLite", "kept.cc:read,kept.cc:make_room,kept.cc:add"},
};
inline constexpr auto mutants = [] {
  auto all = std::to_array(mutants_without_numbers);
  std::uint16_t next = first_left_out;
  for (mutant_entry& e : all)
    if (e.what == mutant::none && !e.leaves_out.empty()) e.what = static_cast<mutant>(next++);
  return all;
}();

constexpr const mutant_entry& entry_of(mutant m) noexcept {
  for (const mutant_entry& e : mutants)
    if (e.what == m) return e;
  return mutants.front();
}
constexpr std::string_view name_of(mutant m) noexcept {
  return entry_of(m).name;
}

constexpr std::optional<mutant> mutant_named(std::string_view name) noexcept {
  for (const mutant_entry& e : mutants)
    if (e.name == name) return e.what;
  return std::nullopt;
}

// Every mutant of these numbers is in the table.
constexpr bool has_all(mutant first, mutant last) noexcept {
  for (auto number = static_cast<unsigned>(first); number <= static_cast<unsigned>(last); ++number)
    if (entry_of(static_cast<mutant>(number)).what != static_cast<mutant>(number)) return false;
  return true;
}
static_assert(mutants.front().what == mutant::none);
static_assert(has_all(mutant::none, mutant::sqlite_snapshot_unchecked));
static_assert(has_all(published::number_of(published::mutant::base_commit_first),
                      published::number_of(published::mutant::archapt_later_ignored)));

}  // namespace stele::explore
