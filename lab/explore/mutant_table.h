// The names of the mutants (base/mutant.h), and which explored runs must show them.
#pragma once

#include <base/mutant.h>

#include <cstddef>
#include <iterator>
#include <optional>
#include <string_view>

namespace stele::explore {

using base::mutant;

using base::mutant;

// Indexed by number: mutants[i].what is i. `of` names the mechanisms that must each show the bug,
// or a shared part of which one must show it: log, recovery, heap, file. `creation` and `damage`
// belong to no mechanism: tests/crash/file_creation_test.cc, tests/conformance/lost_parts_test.cc.
// `overlap:` precedes the mechanisms of bugs that only overlapping commits show (stele_schedules
// --mutants).
struct mutant_entry {
  mutant what;
  std::string_view name, of;
};
inline constexpr mutant_entry mutants[] = {
    {mutant::none, "none", ""},
    {mutant::log_torn_sense, "log_torn_sense", "log"},
    {mutant::log_one_torn_bit, "log_one_torn_bit", "log"},
    {mutant::log_last_line, "log_last_line", "log"},
    {mutant::log_first_stored, "log_first_stored", "log"},
    {mutant::log_top_bits, "log_top_bits", "log"},
    {mutant::log_spill_unfenced, "log_spill_unfenced", "log"},
    {mutant::base_no_log_fence, "base_no_log_fence", "base"},
    {mutant::base_no_commit_fence, "base_no_commit_fence", "base"},
    {mutant::base_no_data_fence, "base_no_data_fence", "base"},
    {mutant::base_no_truncate_fence, "base_no_truncate_fence", "base"},
    {mutant::base_commit_first, "base_commit_first", "base"},
    {mutant::base_last_home_line, "base_last_home_line", "base"},
    {mutant::base_word_first, "base_word_first", "base"},
    {mutant::base_recover_unfenced, "base_recover_unfenced", "base"},
    {mutant::base_first_slot_only, "base_first_slot_only", "base"},
    {mutant::base_no_checksum, "base_no_checksum", "base"},
    {mutant::redo_no_log_fence, "redo_no_log_fence", "redo,redo-streamed"},
    {mutant::redo_no_data_fence, "redo_no_data_fence", "redo,redo-streamed"},
    {mutant::redo_no_truncate_fence, "redo_no_truncate_fence", "redo,redo-streamed"},
    {mutant::redo_last_home_line, "redo_last_home_line", "redo,redo-streamed"},
    {mutant::redo_truncate_first, "redo_truncate_first", "redo,redo-streamed"},
    {mutant::redo_head_unflushed, "redo_head_unflushed", "redo"},
    {mutant::bulk_no_log_fence, "bulk_no_log_fence", "redo-async,vcbp,default"},
    {mutant::bulk_home_first, "bulk_home_first", "redo-async,vcbp,default"},
    {mutant::bulk_no_data_fence, "bulk_no_data_fence", "redo-async,vcbp,default"},
    {mutant::bulk_no_mark_fence, "bulk_no_mark_fence", "redo-async,vcbp,default"},
    {mutant::bulk_no_head_fence, "bulk_no_head_fence", "redo-async,vcbp,default"},
    {mutant::bulk_last_home_line, "bulk_last_home_line", "redo-async,vcbp,default"},
    {mutant::bulk_first_log_only, "bulk_first_log_only", "redo-async,vcbp,default"},
    {mutant::bulk_mark_ahead, "bulk_mark_ahead", "redo-async,vcbp,default"},
    {mutant::sums_not_renewed, "sums_not_renewed", "vcbp,default"},
    {mutant::sums_last_block, "sums_last_block", "vcbp,xil,default"},
    {mutant::sums_after_mark, "sums_after_mark", "vcbp,default"},
    {mutant::sums_not_recovered, "sums_not_recovered", "vcbp,blurred,default"},
    {mutant::sums_move_unsaid, "sums_move_unsaid", "vcbp,blurred,default"},
    {mutant::sums_move_unfenced, "sums_move_unfenced", "vcbp,default"},
    {mutant::sums_said_early, "sums_said_early", "vcbp,default"},
    {mutant::sums_recovery_unsaid, "sums_recovery_unsaid", "vcbp,blurred,default"},
    {mutant::sums_not_counted, "sums_not_counted", "redo,undo,base"},
    {mutant::sums_spill_kept, "sums_spill_kept", "vcbp,default"},
    {mutant::sums_blocks_weightless, "sums_blocks_weightless", "xil,blurred"},
    {mutant::sums_weights_crowded, "sums_weights_crowded", "xil,blurred"},
    {mutant::sums_free_stay, "sums_free_stay", "damage"},
    {mutant::sums_zero_unjudged, "sums_zero_unjudged", "damage"},
    {mutant::grow_same_slot, "grow_same_slot", "default"},
    {mutant::grow_no_slot_fence, "grow_no_slot_fence", "default"},
    {mutant::file_home_unsynced, "file_home_unsynced", "file"},
    {mutant::file_last_run, "file_last_run", "file"},
    {mutant::file_not_synchronous, "file_not_synchronous", "file"},
    {mutant::file_failure_ignored, "file_failure_ignored", "file"},
    {mutant::file_sync_retried, "file_sync_retried", "file"},
    {mutant::file_write_back_ignored, "file_write_back_ignored", "file"},
    {mutant::file_named_first, "file_named_first", "creation"},
    {mutant::default_shared_alone, "default_shared_alone", "default"},
    {mutant::default_shared_unflushed, "default_shared_unflushed", "default"},
    {mutant::xil_no_log_fence, "xil_no_log_fence", "xil,blurred"},
    {mutant::xil_home_first, "xil_home_first", "xil,blurred"},
    {mutant::xil_no_data_fence, "xil_no_data_fence", "xil"},
    {mutant::xil_last_home_line, "xil_last_home_line", "xil"},
    {mutant::xil_commit_unflushed, "xil_commit_unflushed", "xil,blurred"},
    {mutant::xil_abort_unflushed, "xil_abort_unflushed", "xil,blurred"},
    {mutant::xil_torn_sense, "xil_torn_sense", "xil,blurred"},
    {mutant::xil_tail_bit, "xil_tail_bit", "xil,blurred"},
    {mutant::xil_no_filler, "xil_no_filler", "xil,blurred"},
    {mutant::xil_aborted_left, "xil_aborted_left", "xil,blurred"},
    {mutant::xil_short_reach, "xil_short_reach", "xil,blurred"},
    {mutant::xil_no_checksum, "xil_no_checksum", "xil,blurred"},
    {mutant::switch_no_truncate, "switch_no_truncate", "adaptive"},
    {mutant::switch_no_zero, "switch_no_zero", "adaptive"},
    {mutant::switch_half_zeroed, "switch_half_zeroed", "adaptive"},
    {mutant::switch_no_zero_fence, "switch_no_zero_fence", "adaptive"},
    {mutant::switch_no_head_fence, "switch_no_head_fence", "adaptive"},
    {mutant::switch_old_form, "switch_old_form", "adaptive"},
    {mutant::switch_head_first, "switch_head_first", "adaptive"},
    {mutant::undo_no_log_fence, "undo_no_log_fence", "undo"},
    {mutant::undo_no_data_fence, "undo_no_data_fence", "undo"},
    {mutant::undo_no_truncate_fence, "undo_no_truncate_fence", "undo"},
    {mutant::undo_last_old_line, "undo_last_old_line", "undo"},
    {mutant::undo_last_home_line, "undo_last_home_line", "undo"},
    {mutant::undo_truncate_first, "undo_truncate_first", "undo"},
    {mutant::recover_truncate_first, "recover_truncate_first", "recovery"},
    {mutant::recover_unsorted, "recover_unsorted", "recovery"},
    {mutant::recover_first_log_only, "recover_first_log_only", "recovery"},
    {mutant::recover_no_scrub, "recover_no_scrub", "recovery"},
    {mutant::recover_no_home_fence, "recover_no_home_fence", "recovery"},
    {mutant::recover_no_mark_fence, "recover_no_mark_fence", "recovery"},
    {mutant::recover_unflushed, "recover_unflushed", "recovery"},
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
    {mutant::default_no_batch_fence, "default_no_batch_fence", "default"},
    {mutant::default_last_record, "default_last_record", "default"},
    {mutant::default_ordered_home_first, "default_ordered_home_first", "default"},
    {mutant::default_no_chain, "default_no_chain", "default"},
    {mutant::default_chain_ignored, "default_chain_ignored", "default"},
    {mutant::default_no_wait, "default_no_wait", "default"},
    {mutant::ls_no_fence, "ls_no_fence", "log_structured"},
    {mutant::ls_last_line, "ls_last_line", "log_structured"},
    {mutant::ls_preamble_first, "ls_preamble_first", "log_structured"},
    {mutant::ls_header_unflushed, "ls_header_unflushed", "log_structured"},
    {mutant::ls_header_late, "ls_header_late", "log_structured"},
    {mutant::ls_ring_broken, "ls_ring_broken", "log_structured"},
    {mutant::ls_ring_ignored, "ls_ring_ignored", "log_structured"},
    {mutant::ls_crc_unseeded, "ls_crc_unseeded", "log_structured"},
    {mutant::ls_copies_unsaid, "ls_copies_unsaid", "damage"},
    {mutant::ls_abandoned_left, "ls_abandoned_left", "log_structured"},
    {mutant::ls_version_ignored, "ls_version_ignored", "log_structured"},
    {mutant::ls_tombstone_ignored, "ls_tombstone_ignored", "log_structured"},
    {mutant::ls_allocation_forgotten, "ls_allocation_forgotten", "log_structured"},
    {mutant::ls_copy_unfenced, "ls_copy_unfenced", "log_structured"},
    {mutant::ls_stale_mapping, "ls_stale_mapping", "log_structured"},
    {mutant::ls_tombstone_dropped, "ls_tombstone_dropped", "log_structured"},
    {mutant::ls_joined_as_older, "ls_joined_as_older", "log_structured"},
    {mutant::ls_joined_in_part, "ls_joined_in_part", "overlap:log_structured"},
    {mutant::ls_cleans_newest, "ls_cleans_newest", "log_structured"},
    {mutant::archapt_no_log_fence, "archapt_no_log_fence", "archapt-undo,archapt-redo"},
    {mutant::archapt_weak_checksum, "archapt_weak_checksum", "archapt-undo,archapt-redo"},
    {mutant::archapt_wrong_column, "archapt_wrong_column", "archapt-undo,archapt-redo"},
    {mutant::archapt_in_place, "archapt_in_place", "archapt-undo,archapt-redo"},
    {mutant::archapt_over_end, "archapt_over_end", "archapt-undo,archapt-redo"},
    {mutant::archapt_block_unflushed, "archapt_block_unflushed", "archapt-undo,archapt-redo"},
    {mutant::archapt_blocks_first, "archapt_blocks_first", "archapt-undo,archapt-redo"},
    {mutant::archapt_no_data_fence, "archapt_no_data_fence", "archapt-undo,archapt-redo"},
    {mutant::archapt_hot_unflushed, "archapt_hot_unflushed", "archapt-undo,archapt-redo"},
    {mutant::archapt_log_released, "archapt_log_released", "archapt-undo,archapt-redo"},
    {mutant::archapt_touched_left, "archapt_touched_left", "archapt-undo,archapt-redo"},
    {mutant::archapt_ended_first, "archapt_ended_first", "archapt-undo,archapt-redo"},
    {mutant::archapt_short_queue, "archapt_short_queue", "archapt-undo,archapt-redo"},
    {mutant::archapt_no_old_values, "archapt_no_old_values", "archapt-redo"},
    {mutant::archapt_undo_acknowledged, "archapt_undo_acknowledged", "archapt-undo"},
    {mutant::archapt_rolls_forward, "archapt_rolls_forward", "archapt-undo"},
    {mutant::archapt_no_detection, "archapt_no_detection", "archapt-undo,archapt-redo"},
    {mutant::archapt_stale_block, "archapt_stale_block", "archapt-undo,archapt-redo"},
    {mutant::archapt_stale_only, "archapt_stale_only", "archapt-redo"},
    {mutant::archapt_recover_unfenced, "archapt_recover_unfenced", "archapt-undo,archapt-redo"},
    {mutant::archapt_checkpoint_unflushed, "archapt_checkpoint_unflushed",
     "archapt-undo,archapt-redo"},
    {mutant::archapt_checkpoint_covered, "archapt_checkpoint_covered", "archapt-undo,archapt-redo"},
    {mutant::archapt_copy_unchanged, "archapt_copy_unchanged", "archapt-undo,archapt-redo"},
    {mutant::archapt_no_first_checkpoint, "archapt_no_first_checkpoint",
     "archapt-undo,archapt-redo"},
    {mutant::archapt_fallback_undecided, "archapt_fallback_undecided", "archapt-undo,archapt-redo"},
    {mutant::archapt_fallback_unflushed, "archapt_fallback_unflushed", "archapt-undo,archapt-redo"},
    {mutant::archapt_fallback_covered, "archapt_fallback_covered", "archapt-undo,archapt-redo"},
    {mutant::archapt_fallback_replayed, "archapt_fallback_replayed", "archapt-undo,archapt-redo"},
    {mutant::default_txid_before_place, "default_txid_before_place", "overlap:default"},
    {mutant::retire_paused, "retire_paused", "overlap:default"},
    {mutant::stm_stale_allocation, "stm_stale_allocation", "overlap:redo,default"},
    {mutant::backup_spill_unkept, "backup_spill_unkept", "overlap:default,redo"},
    {mutant::stm_no_validation, "stm_no_validation", "overlap:default,redo,base,log_structured"},
    {mutant::stm_extend_unchecked, "stm_extend_unchecked", "overlap:default,undo,xil"},
    {mutant::stm_one_look, "stm_one_look", "overlap:default,vcbp"},
    {mutant::stm_old_version, "stm_old_version", "overlap:default,blurred,log_structured"},
    {mutant::stm_unlock_first, "stm_unlock_first",
     "overlap:default,redo,undo,base,xil,vcbp,blurred,adaptive,archapt-undo,archapt-redo,log_"
     "structured,redo-async"},
    {mutant::stm_announce_late, "stm_announce_late",
     "overlap:redo-async,vcbp,blurred,adaptive,archapt-redo,archapt-undo,default"},
    {mutant::bulk_runs_ignored, "bulk_runs_ignored",
     "overlap:redo-async,vcbp,blurred,adaptive,default"},
    {mutant::bulk_mark_back, "bulk_mark_back", "overlap:archapt-undo"},
    {mutant::batch_pending_ignored, "batch_pending_ignored", "overlap:default"},
    {mutant::batch_own_alone, "batch_own_alone", "overlap:default"},
    {mutant::batch_joined_early, "batch_joined_early", "overlap:default"},
    {mutant::group_appended_meanwhile, "group_appended_meanwhile", "overlap:default"},
    {mutant::group_not_awaited, "group_not_awaited", "overlap:default"},
    {mutant::group_from_appended, "group_from_appended", "overlap:default"},
    {mutant::heap_run_early, "heap_run_early", "overlap:default,redo,undo"},
    {mutant::heap_claimless, "heap_claimless", "overlap:default,redo"},
    {mutant::backup_stores_first, "backup_stores_first", "overlap:default,redo,undo"},
    {mutant::backup_moves_on, "backup_moves_on", "overlap:default,redo"},
};
static_assert([] {
  for (std::size_t i = 0; i < std::size(mutants); ++i)
    if (static_cast<std::size_t>(mutants[i].what) != i) return false;
  return true;
}());

constexpr std::string_view name_of(mutant m) noexcept {
  return mutants[static_cast<std::size_t>(m)].name;
}

constexpr std::optional<mutant> mutant_named(std::string_view name) noexcept {
  for (const mutant_entry& e : mutants)
    if (e.name == name) return e.what;
  return std::nullopt;
}

}  // namespace stele::explore
