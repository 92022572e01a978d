// The rest of a transaction's fast path, inline: its begin, its loads and stores of byte ranges,
// and its commit.
//
// Calls, and loads that are wider than the stores they read from, make the last fence cost more:
// docs/decisions/7-tried.md (decision 7).
#pragma once

#include <base/assert.h>
#include <base/mutant.h>
#include <tx/attempt.h>
#include <tx/fast_paths.h>
#include <tx/runtime.h>

#include <utility>

namespace stele::detail {

#if defined(__SANITIZE_THREAD__) && !defined(STELE_SCHEDULED)
// TSan reports the 16-byte loads of snapshot::try_copy as races, although they are validated
// afterwards.
inline constexpr bool sanitizes_threads = true;
#else
inline constexpr bool sanitizes_threads = false;
#endif

inline std::uint64_t transaction::home_word(std::uint64_t offset) noexcept {
  return with_home(home_, [&](auto& home) { return home.word(offset); });
}

// The word as the transaction sees it: own stored bytes over those of the overlay over home's.
inline std::uint64_t transaction::merged_word(const written_line* own,
                                              std::uint64_t offset) noexcept {
  STELE_ASSERT(offset % 8 == 0 && (own == nullptr || own->offset == line_of(offset)));
  const unsigned word = static_cast<unsigned>(offset - line_of(offset)) / 8;
  const std::uint8_t mask = own != nullptr ? own->word_mask(word) : 0;
  if (mask == 0xFF) return value(*own, word);
  const std::uint64_t below = read_through_overlay(offset, home_word(offset));
  if (mask == 0) return below;
  const std::uint64_t bits = expand_mask(mask);
  return (value(*own, word) & bits) | (below & ~bits);
}

// Stores bytes of one line; null `from`: zeroes.
inline void transaction::store_part(std::uint64_t offset, const std::byte* from, std::size_t size) {
  if (store_target_ != store_target::write_set) [[unlikely]]
    return store_part_slow(offset, from, size);
  const std::uint64_t line_offset = line_of(offset);
  STELE_ASSERT(size != 0 && offset - line_offset + size <= line_size);
  written_line& line = line_for_store(line_offset);
  auto* const to = reinterpret_cast<std::byte*>(line.words.data()) + (offset - line_offset);
  if (from != nullptr)
    std::memcpy(to, from, size);
  else
    std::memset(to, 0, size);
  line.mask |= byte_range(offset - line_offset, size);
}

inline void transaction::store_lines(std::uint64_t offset, const std::byte* from,
                                     std::size_t size) {
  STELE_ASSERT(offset % line_size == 0 && size % line_size == 0);
  if (store_target_ != store_target::write_set) [[unlikely]]
    return store_part_slow(offset, from, size);
  for (const std::uint64_t end = offset + size; offset != end; offset += line_size) {
    written_line& line = line_for_store(offset);
    line.mask = ~std::uint64_t{0};
    if (from != nullptr) {
      std::memcpy(line.words.data(), from, line_size);
      from += line_size;
    } else {
      std::memset(line.words.data(), 0, line_size);
    }
  }
}

// Draws the TxID, and with stm validates the read set. False: the attempt must be retried.
inline bool transaction::assign_txid(std::uint64_t& txid) {
  pool_state& state = runtime_.state();
  STELE_ASSERT(state.committing[log_].value.load(std::memory_order_relaxed) ==
               pool_state::no_commit);
  if (!planted_in_schedule_explorer(base::mutant::stm_announce_late))
    state.committing[log_].value.store(state.clock.load(std::memory_order_acquire),
                                       std::memory_order_release);
  // The announcement before the load of ordered_mode; runtime::enter_ordered_mode has the heavy
  // fence.
  base::asymmetric_fence_light();
  const bool in_order = ordered_ || state.ordered_mode.load(std::memory_order_relaxed);
  order_.set_in_order(in_order);
  return in_order ? assign_txid_in_order(txid) : assign_txid_announced(txid);
}

inline bool transaction::assign_txid_announced(std::uint64_t& txid) {
  pool_state& state = runtime_.state();
  if (!snapshot_.in_force()) {
    txid = state.clock.load(std::memory_order_relaxed) + 1;
    state.clock.store(txid, std::memory_order_release);
    return true;
  }
  txid = state.clock.fetch_add(1, std::memory_order_seq_cst) + 1;
  if (planted_in_schedule_explorer(base::mutant::stm_announce_late))
    state.committing[log_].value.store(txid - 1, std::memory_order_seq_cst);
  // bulk.md T1: the announcement of a commit is below its TxID
  STELE_ASSERT(state.committing[log_].value.load(std::memory_order_relaxed) < txid);
  STELE_ASSERT(txid > snapshot_.time());
  if (txid == snapshot_.time() + 1 || snapshot_.valid() ||
      planted_in_schedule_explorer(base::mutant::stm_no_validation))
    return true;
  state.committing[log_].value.store(pool_state::no_commit, std::memory_order_release);
  return false;
}

// Where this log's transactions find their pool. Of an access record that has it, only sizes and
// filter change from one transaction to the next.
inline void transaction::take_over(access& a) noexcept {
  a.pool_base = reinterpret_cast<std::uintptr_t>(runtime_.base());
  a.heap_base = a.pool_base + runtime_.heap_begin();
  a.running = this;
}

// Of stm. A transaction that runs alone needs none, unless the overlay of some thread holds locks.
inline bool transaction::needs_locks(bool alone) const noexcept {
  return snapshot_.has_locks() &&
         (!alone || (runtime_.state().overlays.load(std::memory_order_relaxed) != 0 &&
                     !planted_in_schedule_explorer(base::mutant::bias_over_overlay)));
}

inline bool transaction::reads_need_locks(bool alone) const noexcept {
  return snapshot_.guards_reads() && needs_locks(alone);
}

// What begin() does for most updates: stores go to the write set, home is in place, nothing is
// deferred, and the mechanism asks for no loads. Stores only what differs: each store here delays
// those after the last commit's fence.
inline bool transaction::try_begin_update(thread_context& v, bool alone) noexcept {
  if (!overlay_.empty()) [[unlikely]]
    return false;
  STELE_ASSERT(is_new());
  access& a = this_access;
  if (a.running != this) [[unlikely]]
    take_over(a);
  STELE_ASSERT(a.size == 0);  // no transaction runs in this thread
  a.size = a.load_size = runtime_.size();
  if (context_ != &v) [[unlikely]]
    context_ = &v;
  if (ordered_requested_) [[unlikely]]
    ordered_ = ordered_requested_ = false;
  if (store_target_ != store_target::write_set) [[unlikely]]
    store_target_ = store_target::write_set;
  filter_ = 0;
  const bool locks = needs_locks(alone);
  a.filter = locks ? ~std::uint64_t{0} : 0;
  locks ? snapshot_.begin(true, false), snapshot_.take() : snapshot_.begin_alone();
  return true;
}

inline bool transaction::try_begin_read(thread_context& v, bool alone) noexcept {
  if (!overlay_.empty()) [[unlikely]]
    return false;
  if (observers_.loads != nullptr) [[unlikely]]
    return false;
  STELE_ASSERT(is_new() && moment_ == nullptr);
  access& a = this_access;
  if (a.running != this) [[unlikely]]
    take_over(a);
  const bool locks = reads_need_locks(alone);
  a.size = runtime_.size();
  a.load_size = locks ? a.size : 0;
  a.filter = locks ? ~std::uint64_t{0} : 0;
  filter_ = 0;
  context_ = &v;
  store_target_ = store_target::read_only;
  locks ? snapshot_.begin(false, !sanitizes_threads), snapshot_.take() : snapshot_.begin_alone();
  return true;
}

inline void transaction::begin(thread_context& v, bool writes, bool ordered, bool alone) {
  ordered = ordered && runtime_.tells_ordered();
  if (writes && !ordered && runtime_.has_plain_updates() && try_begin_update(v, alone)) return;
  STELE_ASSERT(is_new());
  STELE_ASSERT(moment_ == nullptr || !writes);
  context_ = &v;
  if (observers_.loads != nullptr) [[unlikely]]
    observers_.loads_now = observers_.loads->begin_transaction() ? observers_.loads : nullptr;
  ordered_requested_ = ordered;
  ordered_ = ordered && runtime_.defers_ordered();
  if (!overlay_.empty() && overlay_.is_stored()) [[unlikely]]
    release_overlay();
  // An ordered commit keeps its locks until it is home.
  const bool stm =
      (writes || snapshot_.guards_reads()) && needs_locks(alone && !ordered_) && moment_ == nullptr;
  const bool all_routed =
      stm || runtime_.home_is_remapped() || moment_ != nullptr || observers_.loads_now != nullptr;
  const bool routed = writes || all_routed || !overlay_.empty();
  access& a = this_access;
  take_over(a);
  a.size = runtime_.size();
  a.load_size = routed ? a.size : 0;
  a.filter = all_routed ? ~std::uint64_t{0} : overlay_.filter();
  const bool none_is_direct = moment_ != nullptr || observers_.loads_now != nullptr;
  filter_ = none_is_direct ? ~std::uint64_t{0} : overlay_.filter();
  store_target_ = writes ? store_target::write_set : store_target::read_only;
  // An ordered commit keeps its locks until it is home
  STELE_ASSERT(stm || !writes || !ordered_ || !snapshot_.has_locks());
  if (stm)
    snapshot_.begin(writes || this_attempt.ended > 2, filter_ == 0 && home_.is_in_place() &&
                                                          observers_.loads_now == nullptr &&
                                                          !sanitizes_threads);
  else
    snapshot_.begin_alone();
  if (writes && runtime_.in_place()) {
    store_target_ = store_target::home;
    in_place_.begin(a, runtime_.size());
    begin_home_stores();
  }
  if (writes && observers_.stores != nullptr && observers_.stores->begin(*this))
    store_target_ = store_target::observer;
  with_home(home_, [](auto& home) { home.pin(); });
  if (stm) snapshot_.take();
}

// For assertions: nothing of the attempt before is left.
inline bool transaction::is_new() const noexcept {
  return writes_.empty() && !snapshot_.holds_locks() && volatile_undo_.empty() &&
         allocations_.changes().empty() && doomed_by_ == nullptr && !blocks_readers_;
}

inline void transaction::clear() noexcept {
  access& a = this_access;
  a.size = a.load_size = 0;
  if (store_target_ == store_target::home) in_place_undo::end(a);
  with_home(home_, [](auto& home) { home.unpin(); });
  writes_.clear();
  snapshot_.clear();
  if (!volatile_undo_.empty()) [[unlikely]]
    volatile_undo_.clear();
  if (blocks_readers_) {
    runtime_.unblock_readers();
    blocks_readers_ = false;
  }
}

inline bool transaction::try_commit_read() noexcept {
  if (doomed_by_ != nullptr || !volatile_undo_.empty() || !home_.is_in_place() ||
      runtime_.state().poisoned.load(std::memory_order_relaxed)) [[unlikely]]
    return false;
  STELE_ASSERT(only_reads() && is_new());
  counts_.count_read();
  access& a = this_access;
  a.size = a.load_size = 0;
  return true;
}

inline commit_status transaction::commit() {
  STELE_ASSERT(this_access.running == this && context_ != nullptr);
  STELE_ASSERT(!only_reads() || writes_.empty());
  // The transaction may have read zeroes in place of a lost page.
  if (runtime_.state().poisoned.load(std::memory_order_relaxed)) [[unlikely]]
    return fail_poisoned();
  if (doomed_by_ != nullptr) [[unlikely]]
    return commit_doomed();
  if (store_target_ == store_target::home && !in_place_.empty(this_access))
    return commit_in_place();
  // Where states of blocks follow from the log (log_structured), a free alone stores nothing.
  if (writes_.empty() && !allocations_.has_freed())
    return volatile_undo_.locked ? commit_volatile() : commit_empty();
  return runtime_.mechanism().commit(*this);
}

template <class Mechanism>
commit_status transaction::commit_by(Mechanism& m) {
  STELE_ASSERT(!only_reads() && store_target_ != store_target::home);
  if (auto room = m.reserve_log(*this); !room) [[unlikely]]
    return roll_back_with_error(std::move(room.error()));
  std::uint64_t txid = 0;
  bool drawn;
  if (snapshot_.locks_for_others() &&
      !planted_in_schedule_explorer(base::mutant::readers_lone_unlocked) &&
      !planted_in_schedule_explorer(base::mutant::readers_lone_late)) [[unlikely]]
    lock_for_others();
  if constexpr (requires { m.assign_txid(*this, txid); })
    drawn = m.assign_txid(*this, txid);
  else
    drawn = assign_txid(txid);
  if (!drawn) [[unlikely]]
    return commit_status::retry;
  if (planted_in_schedule_explorer(base::mutant::readers_lone_late) && snapshot_.locks_for_others())
    lock_for_others();
  STELE_ASSERT(txid != 0 && txid > counts_.newest());
  STELE_ASSERT(!order_.in_order() || order_.previous() < txid);  // default.md, the chain
  const bool keeps_pages = runtime_.has_page_snapshots();
  if (keeps_pages && !planted_in_schedule_explorer(base::mutant::backup_stores_first)) [[unlikely]]
    keep_pages();
  if (planted_in_schedule_explorer(base::mutant::stm_unlock_first)) snapshot_.release(txid);
  const bool kept = m.commit(*this, txid);
  if (keeps_pages && planted_in_schedule_explorer(base::mutant::backup_stores_first)) keep_pages();
  if (!kept) [[unlikely]]
    return end_in_doubt(txid);
  // The transaction may have stored to lines whose locks the overlay holds: their version must not
  // be older than this commit.
  if (has_overlay()) [[unlikely]]
    overlay_.raise_version(txid);
  allocations_.commit();
  if (planted_in_schedule_explorer(base::mutant::stm_old_version))
    snapshot_.release_unchanged();
  else
    snapshot_.release(txid);
  runtime_.state().committing[log_].value.store(pool_state::no_commit, std::memory_order_release);
  clear();
  if (snapshot_.in_force()) context_->count_lone_commit(txid == counts_.newest() + 1);
  counts_.count_commit(txid);
  return commit_status::committed;
}

inline void transaction::begin_home_stores() {
  STELE_ASSERT(context_ != nullptr && !only_reads());
  if (!context_->holds_writer || blocks_readers_) return;
  runtime_.block_readers();
  blocks_readers_ = true;
}

}  // namespace stele::detail
