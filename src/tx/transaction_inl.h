// The fast path of a transaction, inline: its begin, its field accesses and its commit.
//
// Calls, and loads that are wider than the stores they read from, make the last fence cost more:
// docs/decisions/7-tried.md (decision 7).
#pragma once

#include <base/mutant.h>
#include <media/cpu.h>
#include <tx/access_buffer.h>
#include <tx/runtime.h>

#include <utility>

namespace stele::detail {

inline constexpr unsigned spin_limit = 128;  // loads of a held lock before the attempt ends

#if defined(__SANITIZE_THREAD__) && !defined(STELE_SCHEDULED)
// TSan reports the 16-byte loads of try_fast_read as races, although they are validated afterwards.
inline constexpr bool sanitizes_threads = true;
#else
inline constexpr bool sanitizes_threads = false;
#endif

inline std::uint64_t transaction::merge_word(const written_line& line, unsigned word,
                                             std::uint64_t below) const noexcept {
  const std::uint8_t mask = line.word_mask(word);
  if (mask == 0) return below;
  const std::uint64_t bits = expand_mask(mask);
  return (value(line, word) & bits) | (below & ~bits);
}

// A word of a log-structured pool, from its place in the log.
inline std::uint64_t transaction::logged_word(std::uint64_t offset) noexcept {
  return space_->word(space_->map.find(space_->home_of(offset), map_cache_).at);
}

inline std::uint64_t transaction::home_word(std::uint64_t offset) noexcept {
  if (space_ != nullptr) return logged_word(offset);
  return __atomic_load_n(reinterpret_cast<const std::uint64_t*>(home_ + offset), __ATOMIC_ACQUIRE);
}

inline std::uint64_t transaction::load_word(std::uint64_t offset) {
  const std::uint64_t line = offset & ~std::uint64_t{line_size - 1};
  const unsigned word = static_cast<unsigned>(offset - line) / 8;
  if (access_buffer_ != nullptr) [[unlikely]]
    access_buffer_->append(offset);
  if (filter_ != 0 && (filter_ & filter_bit(this_access.pool_base + line)) != 0) {
    if (const written_line* own = writes_.find(line); own != nullptr && own->word_mask(word) != 0)
      return own->word_mask(word) == 0xFF
                 ? value(*own, word)
                 : merge_word(*own, word, read_through_overlay(offset, home_word(offset)));
    if (!overlay_.empty()) [[unlikely]]
      if (const written_line* before = overlay_.find(line); before != nullptr)
        return read_through_overlay(offset, home_word(offset));
  }
  return stm_ ? stm_load(offset) : home_word(offset);
}

// The value of a word after the deferred commits of this log.
inline std::uint64_t transaction::read_through_overlay(std::uint64_t offset,
                                                       std::uint64_t home) const noexcept {
  if (overlay_.empty()) [[likely]]
    return home;
  const std::uint64_t line = offset & ~std::uint64_t{line_size - 1};
  const written_line* before = overlay_.find(line);
  if (before == nullptr) return home;
  const unsigned word = static_cast<unsigned>(offset - line) / 8;
  const std::uint64_t bits = expand_mask(before->word_mask(word));
  return (before->words[word] & bits) | (home & ~bits);
}

// Runs `read`, again if needed, until the bytes that it read of a line belong to the snapshot.
template <class Read>
inline void transaction::read_consistently(std::uint64_t offset, Read&& read) {
  line_lock& lock = lock_of(offset);
  for (unsigned tries = 0; tries < spin_limit; ++tries) {
    const std::uint64_t seen = lock.load(std::memory_order_acquire);
    if ((seen & 1) != 0) {
      if (seen >> 1 == log_) return read();
      media::cpu::relax();
      continue;
    }
    read();
    if (lock.load(std::memory_order_acquire) != seen) continue;
    if (seen >> 1 > snapshot_) {
      extend_snapshot();
      continue;
    }
    if (record_reads_)
      reads_.push_back({&lock, seen});
    else
      has_unrecorded_reads_ = true;
    return;
  }
  conflict();
}

// One try without a call, which mostly suffices.
inline std::uint64_t transaction::stm_load(std::uint64_t offset) {
  line_lock& lock = lock_of(offset);
  const std::uint64_t seen = lock.load(std::memory_order_acquire), value = home_word(offset);
  const bool again = lock.load(std::memory_order_acquire) != seen &&
                     !base::planted_in_schedule_explorer(base::mutant::stm_one_look);
  if ((seen & 1) != 0 || again || seen >> 1 > snapshot_) [[unlikely]]
    return stm_load_slow(offset);
  if (!record_reads_) {
    has_unrecorded_reads_ = true;
    return value;
  }
  if (reads_.size() == reads_.capacity()) [[unlikely]]
    return stm_load_slow(offset);
  reads_.push_back({&lock, seen});
  return value;
}

// Loads each line's lock before and after its bytes. Copies 16 bytes at a time, since the caller
// loads the copy in such pieces: a wide load waits for narrower stores (decision 7).
inline bool transaction::try_fast_read(std::uint64_t offset, std::byte* to,
                                       std::size_t size) noexcept {
  using pair [[gnu::vector_size(16), gnu::may_alias]] = std::uint64_t;
  if (!fast_reads_ || (offset | size) % sizeof(pair) != 0) return false;
  has_unrecorded_reads_ = true;
  const std::uint64_t snapshot = snapshot_;
  for (const std::uint64_t end = offset + size; offset != end;) {
    const std::uint64_t line_end = std::min(end, (offset | (line_size - 1)) + 1);
    const line_lock& lock = lock_of(offset);
    const std::uint64_t seen = lock.load(std::memory_order_acquire);
    for (; offset != line_end; offset += sizeof(pair), to += sizeof(pair)) {
      const pair two = *reinterpret_cast<const volatile pair*>(home_ + offset);
      std::memcpy(to, &two, sizeof two);
    }
    std::atomic_thread_fence(std::memory_order_acquire);  // bytes before the second lock load
    if ((seen & 1) != 0 || seen >> 1 > snapshot || lock.load(std::memory_order_relaxed) != seen)
        [[unlikely]]
      return false;
  }
  return true;
}

// Loads bytes of one line under one validation of its lock.
inline void transaction::load_part(std::uint64_t offset, std::byte* to, std::size_t size) {
  const std::uint64_t line = offset & ~std::uint64_t{line_size - 1};
  const std::size_t skip = offset - line;
  if (access_buffer_ != nullptr) [[unlikely]]
    access_buffer_->append(offset);
  const written_line* own =
      (filter_ & filter_bit(this_access.pool_base + line)) != 0 ? writes_.find(line) : nullptr;
  const std::uint64_t wanted = byte_range(skip, size);
  if (own == nullptr || (own->mask & wanted) != wanted)
    stm_ ? stm_load_part(line, skip, to, size) : copy_home(line, skip, to, size);
  if (own == nullptr) return;
  std::uint64_t words[line_size / 8];
  for (std::size_t w = skip / 8; w <= (skip + size - 1) / 8; ++w)
    words[w] =
        own->word_mask(static_cast<unsigned>(w)) != 0 ? value(*own, static_cast<unsigned>(w)) : 0;
  const auto* bytes = reinterpret_cast<const std::byte*>(words);
  for (std::uint64_t left = own->mask & wanted; left != 0; left &= left - 1) {
    const auto byte = static_cast<std::size_t>(std::countr_zero(left));
    to[byte - skip] = bytes[byte];
  }
}

inline void transaction::copy_home(std::uint64_t line, std::size_t skip, std::byte* to,
                                   std::size_t size) noexcept {
  using pair [[gnu::vector_size(16)]] = std::uint64_t;
  if (space_ != nullptr) return copy_logged(line + skip, to, size);
  // 16 bytes at a time, as in try_fast_read.
  if ((skip | size) % sizeof(pair) == 0 && overlay_.empty()) [[likely]] {
    const auto* const words = reinterpret_cast<const std::uint64_t*>(home_ + line + skip);
    for (std::size_t at = 0; at < size; at += sizeof(pair)) {
      const pair two = {__atomic_load_n(words + at / 8, __ATOMIC_ACQUIRE),
                        __atomic_load_n(words + at / 8 + 1, __ATOMIC_ACQUIRE)};
      std::memcpy(to + at, &two, sizeof two);
    }
    return;
  }
  std::uint64_t words[line_size / 8];
  for (std::size_t w = skip / 8; w <= (skip + size - 1) / 8; ++w)
    words[w] = read_through_overlay(line + 8 * w, home_word(line + 8 * w));
  std::memcpy(to, reinterpret_cast<const std::byte*>(words) + skip, size);
}

inline void transaction::stm_load_part(std::uint64_t line, std::size_t skip, std::byte* to,
                                       std::size_t size) {
  read_consistently(line, [&] { copy_home(line, skip, to, size); });
}

inline void transaction::acquire_lock(std::uint64_t line) {
  line_lock& lock = lock_of(line);
  const std::uint64_t own_lock = std::uint64_t{log_} << 1 | 1;
  for (unsigned tries = 0; tries < spin_limit; ++tries) {
    std::uint64_t seen = lock.load(std::memory_order_acquire);
    if (seen == own_lock) return;  // acquired for another line with the same lock
    if ((seen & 1) != 0) {
      media::cpu::relax();
    } else if (seen >> 1 > snapshot_) {
      extend_snapshot();
    } else {
      locks_.push_back({&lock, seen});
      if (lock.compare_exchange_strong(seen, own_lock, std::memory_order_acq_rel)) return;
      locks_.pop_back();
    }
  }
  conflict();
}

inline written_line& transaction::line_for_store(std::uint64_t line) {
  if (!writes_.empty() && writes_.last().offset == line) return writes_.last();
  const std::uint64_t bit = filter_bit(this_access.pool_base + line);
  if ((filter_ & bit) != 0)
    if (written_line* own = writes_.find(line)) return *own;
  if (stm_) acquire_lock(line);
  filter_ |= bit;
  this_access.filter |= bit;
  return writes_.add(line);
}

// A single writer's stores to one line after another need no call.
inline void transaction::store_word(std::uint64_t offset, std::uint64_t bits) {
  const std::uint64_t line_offset = offset & ~std::uint64_t{line_size - 1},
                      in_line = offset - line_offset;
  if (store_target_ != store_target::write_set) [[unlikely]]
    return store_slow(offset, bits, 0xFF);
  if (writes_.empty() || writes_.last().offset != line_offset) {
    const std::uint64_t bit = filter_bit(this_access.pool_base + line_offset);
    if (stm_ || (filter_ & bit) != 0 || writes_.full()) return store_word_slow(offset, bits);
    filter_ |= bit;
    this_access.filter |= bit;
    writes_.add(line_offset);
  }
  written_line& line = writes_.last();
  line.words[in_line / 8] = bits;
  line.mask |= std::uint64_t{0xFF} << in_line;
}

inline void transaction::store_bits(std::uint64_t offset, std::uint64_t bits, std::uint8_t mask) {
  if (store_target_ != store_target::write_set) [[unlikely]]
    return store_slow(offset, bits, mask);
  const std::uint64_t line_offset = offset & ~std::uint64_t{line_size - 1};
  const unsigned word = static_cast<unsigned>(offset - line_offset) / 8;
  written_line& line = line_for_store(line_offset);
  const std::uint64_t counting = expand_mask(mask);
  line.words[word] = (line.words[word] & ~counting) | (bits & counting);
  line.mask |= std::uint64_t{mask} << (8 * word);
}

// Stores bytes of one line; null `from`: zeroes.
inline void transaction::store_part(std::uint64_t offset, const std::byte* from, std::size_t size) {
  if (store_target_ != store_target::write_set) [[unlikely]]
    return store_part_slow(offset, from, size);
  const std::uint64_t line_offset = offset & ~std::uint64_t{line_size - 1};
  written_line& line = line_for_store(line_offset);
  auto* const to = reinterpret_cast<std::byte*>(line.words.data()) + (offset - line_offset);
  if (from != nullptr)
    std::memcpy(to, from, size);
  else
    std::memset(to, 0, size);
  line.mask |= byte_range(offset - line_offset, size);
}

// Draws the TxID, and with stm validates the read set. False: the attempt must be retried.
inline bool transaction::assign_txid(std::uint64_t& txid) {
  pool_state& state = runtime_.state();
  if (!base::planted_in_schedule_explorer(base::mutant::stm_announce_late))
    state.committing[log_].value.store(state.clock.load(std::memory_order_acquire),
                                       std::memory_order_release);
  // The announcement before the load of ordered_mode. runtime::enter_ordered_mode pays for the
  // processor's order, with membarrier.
  std::atomic_signal_fence(std::memory_order_seq_cst);
  in_order_ = ordered_ || state.ordered_mode.load(std::memory_order_relaxed);
  return in_order_ ? assign_txid_in_order(txid) : assign_txid_announced(txid);
}

inline bool transaction::assign_txid_announced(std::uint64_t& txid) {
  pool_state& state = runtime_.state();
  if (!stm_) {
    txid = state.clock.load(std::memory_order_relaxed) + 1;
    state.clock.store(txid, std::memory_order_release);
    return true;
  }
  txid = state.clock.fetch_add(1, std::memory_order_seq_cst) + 1;
  if (base::planted_in_schedule_explorer(base::mutant::stm_announce_late))
    state.committing[log_].value.store(txid - 1, std::memory_order_seq_cst);
  if (txid == snapshot_ + 1 || reads_valid() ||
      base::planted_in_schedule_explorer(base::mutant::stm_no_validation))
    return true;
  state.committing[log_].value.store(pool_state::no_commit, std::memory_order_release);
  return false;
}

inline void bump(std::atomic<std::uint64_t>& counter) noexcept {
  counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

inline storage::heap& transaction::heap() noexcept {
  return runtime_.state().heap;
}

inline void transaction::begin(thread_context& v, bool writes, bool ordered) {
  context_ = &v;
  ordered_requested_ = ordered;
  ordered_ = ordered && runtime_.defers_ordered();
  if (!overlay_.empty() && overlay_stored_.load(std::memory_order_acquire)) [[unlikely]]
    release_overlay();
  const bool routed = writes || stm_ || !overlay_.empty() || runtime_.home_is_remapped();
  access& a = this_access;
  a.pool_base = reinterpret_cast<std::uintptr_t>(runtime_.base());
  a.size = runtime_.size();
  a.heap_base = a.pool_base + runtime_.heap_begin();
  a.load_size = routed ? runtime_.size() : 0;
  a.filter = stm_ || runtime_.home_is_remapped() ? ~std::uint64_t{0} : overlay_filter_;
  a.running = this;
  filter_ = overlay_filter_;
  store_target_ = writes ? store_target::write_set : store_target::read_only;
  if (stm_) {
    has_unrecorded_reads_ = false;
    record_reads_ = writes || attempts > 2;
    fast_reads_ = !record_reads_ && filter_ == 0 && space_ == nullptr &&
                  access_buffer_ == nullptr && !sanitizes_threads;
  }
  if (writes && runtime_.in_place()) {
    store_target_ = store_target::home;
    a.load_size = 0;
    a.in_place_size = runtime_.size();
    a.undo_next = in_place_undo_.data();
    a.undo_end = in_place_undo_.data() + in_place_undo_.size();
    begin_home_stores();
  }
  if (writes && runtime_.may_execute_in_log() && runtime_.mechanism().begin(*this))
    store_target_ = store_target::log;
  if (space_ != nullptr) space_->epochs.pin(log_);
  if (stm_) snapshot_ = runtime_.state().clock.load(std::memory_order_acquire);
}

inline void transaction::clear() noexcept {
  access& a = this_access;
  a.size = a.load_size = 0;
  if (store_target_ == store_target::home) a.in_place_size = 0;
  if (space_ != nullptr) space_->epochs.unpin(log_);
  writes_.clear();
  if (!reads_.empty()) reads_.clear();
  if (!locks_.empty()) locks_.clear();
  if (!volatile_undo_.empty()) [[unlikely]]
    volatile_undo_.clear();
  if (blocks_readers_) {
    runtime_.unblock_readers();
    blocks_readers_ = false;
  }
}

inline commit_status transaction::commit() {
  // The transaction may have read zeroes in place of a lost page.
  if (runtime_.state().poisoned.load(std::memory_order_relaxed)) [[unlikely]]
    return fail_poisoned();
  if (doomed_by_ != nullptr) [[unlikely]]
    return commit_doomed();
  if (store_target_ == store_target::home && this_access.undo_next != in_place_undo_.data())
    return commit_in_place();
  if (writes_.empty()) return volatile_undo_.locked ? commit_volatile() : commit_empty();
  return runtime_.mechanism().run_commit(*this);
}

template <class Engine>
commit_status transaction::commit_by(Engine& e) {
  if (auto room = e.reserve_log(*this); !room) [[unlikely]]
    return roll_back_with_error(std::move(room.error()));
  std::uint64_t txid = 0;
  if (!e.assign_txid(*this, txid)) [[unlikely]]
    return commit_status::retry;
  page_snapshot* const backup = runtime_.backup_snapshot();
  if (backup != nullptr && !base::planted_in_schedule_explorer(base::mutant::backup_stores_first))
      [[unlikely]]
    snapshot_pages(*backup, writes_);
  if (base::planted_in_schedule_explorer(base::mutant::stm_unlock_first))
    for (const read_entry& l : locks_) l.lock->store(txid << 1, std::memory_order_release);
  const bool kept = e.commit(*this, txid);
  if (backup != nullptr && base::planted_in_schedule_explorer(base::mutant::backup_stores_first))
    snapshot_pages(*backup, writes_);
  // The transaction may have stored to lines whose locks the overlay holds: their version must not
  // be older than this commit.
  if (has_overlay()) [[unlikely]]
    overlay_txid_ = txid;
  heap().commit(cache, changes_);
  for (const read_entry& l : locks_)
    l.lock->store(
        base::planted_in_schedule_explorer(base::mutant::stm_old_version) ? l.version : txid << 1,
        std::memory_order_release);
  runtime_.state().committing[log_].value.store(pool_state::no_commit, std::memory_order_release);
  clear();
  if (!kept) [[unlikely]]
    return fail_in_doubt();
  auto& slot = runtime_.log_slots_[log_];
  bump(slot.commits);
  slot.newest.store(txid, std::memory_order_release);
  return commit_status::committed;
}

inline void transaction::begin_home_stores() {
  if (!context_->holds_writer || blocks_readers_) return;
  runtime_.block_readers();
  blocks_readers_ = true;
}

}  // namespace stele::detail
