// The way of a transaction that nothing stands in the way of: its begin, what every field access of an update comes to, its commit.
#pragma once

#include <base/mutant.h>
#include <media/cpu.h>
#include <tx/access_buffer.h>
#include <tx/runtime.h>

#include <utility>

namespace stele::detail {

inline constexpr unsigned patience = 128;  // looks at a locked line before giving up on it

#if defined(__SANITIZE_THREAD__) && !defined(STELE_SCHEDULED)
inline constexpr bool sanitizes_threads = true;  // it takes loads of 16 bytes that are looked at afterwards for races
#else
inline constexpr bool sanitizes_threads = false;
#endif

inline std::uint64_t transaction::blend(const written_line& line, unsigned word, std::uint64_t below) const noexcept {
  const std::uint8_t mask = line.word_mask(word);
  if (mask == 0) return below;
  const std::uint64_t bits = spread(mask);
  return (value(line, word) & bits) | (below & ~bits);
}

// A word of a log-structured pool, from where it is kept.
inline std::uint64_t transaction::kept_word(std::uint64_t offset) noexcept {
  return space_->word(space_->map.find(space_->home_of(offset), places_).at);
}

inline std::uint64_t transaction::home_word(std::uint64_t offset) noexcept {
  if (space_ != nullptr) return kept_word(offset);
  return __atomic_load_n(reinterpret_cast<const std::uint64_t*>(home_ + offset), __ATOMIC_ACQUIRE);
}

inline std::uint64_t transaction::load_word(std::uint64_t offset) {
  const std::uint64_t line = offset & ~std::uint64_t{line_size - 1};
  const unsigned word = static_cast<unsigned>(offset - line) / 8;
  if (loads_ != nullptr) [[unlikely]]
    loads_->note(offset);
  if (filter_ != 0 && (filter_ & filter_bit(this_access.home + line)) != 0) {
    if (const written_line* own = writes_.find(line); own != nullptr && own->word_mask(word) != 0)
      return own->word_mask(word) == 0xFF ? value(*own, word) : blend(*own, word, over_home(offset, home_word(offset)));
    if (!pending_.empty()) [[unlikely]]
      if (const written_line* before = pending_.find(line); before != nullptr) return over_home(offset, home_word(offset));
  }
  return stm_ ? stm_load(offset) : home_word(offset);
}

// A word as ordered commits that are not home yet have left it.
inline std::uint64_t transaction::over_home(std::uint64_t offset, std::uint64_t home) const noexcept {
  if (pending_.empty()) [[likely]]
    return home;
  const std::uint64_t line = offset & ~std::uint64_t{line_size - 1};
  const written_line* before = pending_.find(line);
  if (before == nullptr) return home;
  const unsigned word = static_cast<unsigned>(offset - line) / 8;
  const std::uint64_t bits = spread(before->word_mask(word));
  return (before->words[word] & bits) | (home & ~bits);
}

// Runs `read`, again if need be, until what it read of a line is of the snapshot.
template <class Read>
inline void transaction::read_consistently(std::uint64_t offset, Read&& read) {
  line_lock& lock = lock_of(offset);
  for (unsigned tries = 0; tries < patience; ++tries) {
    const std::uint64_t seen = lock.load(std::memory_order_acquire);
    if ((seen & 1) != 0) {
      if (seen >> 1 == log_) return read();
      media::cpu::relax();
      continue;
    }
    read();
    if (lock.load(std::memory_order_acquire) != seen) continue;
    if (seen >> 1 > snapshot_) {
      extend();
      continue;
    }
    if (record_reads_)
      reads_.push_back({&lock, seen});
    else
      any_read_ = true;
    return;
  }
  conflict();
}

// The first look, without a call; mostly it is the last.
inline std::uint64_t transaction::stm_load(std::uint64_t offset) {
  line_lock& lock = lock_of(offset);
  const std::uint64_t seen = lock.load(std::memory_order_acquire), value = home_word(offset);
  const bool again = lock.load(std::memory_order_acquire) != seen && !base::planted_in_schedules(base::mutant::stm_one_look);
  if ((seen & 1) != 0 || again || seen >> 1 > snapshot_) [[unlikely]]
    return stm_load_again(offset);
  if (!record_reads_) {
    any_read_ = true;
    return value;
  }
  if (reads_.size() == reads_.capacity()) [[unlikely]]
    return stm_load_again(offset);
  reads_.push_back({&lock, seen});
  return value;
}

// Two looks at each line's lock, and between them its bytes, as wide as they are going to be read.
inline bool transaction::load_plainly(std::uint64_t offset, std::byte* to, std::size_t size) noexcept {
  using pair [[gnu::vector_size(16), gnu::may_alias]] = std::uint64_t;
  if (!reads_plainly_ || (offset | size) % sizeof(pair) != 0) return false;
  any_read_ = true;
  const std::uint64_t snapshot = snapshot_;
  for (const std::uint64_t end = offset + size; offset != end;) {
    const std::uint64_t line_end = std::min(end, (offset | (line_size - 1)) + 1);
    const line_lock& lock = lock_of(offset);
    const std::uint64_t seen = lock.load(std::memory_order_acquire);
    for (; offset != line_end; offset += sizeof(pair), to += sizeof(pair)) {
      const pair two = *reinterpret_cast<const volatile pair*>(home_ + offset);
      std::memcpy(to, &two, sizeof two);
    }
    std::atomic_thread_fence(std::memory_order_acquire);  // the bytes before the second look
    if ((seen & 1) != 0 || seen >> 1 > snapshot || lock.load(std::memory_order_relaxed) != seen) [[unlikely]]
      return false;
  }
  return true;
}

// Bytes of one line, in one look at its lock.
inline void transaction::load_part(std::uint64_t offset, std::byte* to, std::size_t size) {
  const std::uint64_t line = offset & ~std::uint64_t{line_size - 1};
  const std::size_t skip = offset - line;
  if (loads_ != nullptr) [[unlikely]]
    loads_->note(offset);
  const written_line* own = (filter_ & filter_bit(this_access.home + line)) != 0 ? writes_.find(line) : nullptr;
  const std::uint64_t wanted = byte_range(skip, size);
  if (own == nullptr || (own->mask & wanted) != wanted) stm_ ? stm_load_part(line, skip, to, size) : copy_home(line, skip, to, size);
  if (own == nullptr) return;
  std::uint64_t words[line_size / 8];
  for (std::size_t w = skip / 8; w <= (skip + size - 1) / 8; ++w) words[w] = own->word_mask(static_cast<unsigned>(w)) != 0 ? value(*own, static_cast<unsigned>(w)) : 0;
  const auto* bytes = reinterpret_cast<const std::byte*>(words);
  for (std::uint64_t left = own->mask & wanted; left != 0; left &= left - 1) {
    const auto byte = static_cast<std::size_t>(std::countr_zero(left));
    to[byte - skip] = bytes[byte];
  }
}

inline void transaction::copy_home(std::uint64_t line, std::size_t skip, std::byte* to, std::size_t size) noexcept {
  using pair [[gnu::vector_size(16)]] = std::uint64_t;
  if (space_ != nullptr) return copy_kept(line + skip, to, size);
  if ((skip | size) % sizeof(pair) == 0 && pending_.empty()) [[likely]] {  // as wide as it is going to be read
    const auto* const words = reinterpret_cast<const std::uint64_t*>(home_ + line + skip);
    for (std::size_t at = 0; at < size; at += sizeof(pair)) {
      const pair two = {__atomic_load_n(words + at / 8, __ATOMIC_ACQUIRE), __atomic_load_n(words + at / 8 + 1, __ATOMIC_ACQUIRE)};
      std::memcpy(to + at, &two, sizeof two);
    }
    return;
  }
  std::uint64_t words[line_size / 8];
  for (std::size_t w = skip / 8; w <= (skip + size - 1) / 8; ++w) words[w] = over_home(line + 8 * w, home_word(line + 8 * w));
  std::memcpy(to, reinterpret_cast<const std::byte*>(words) + skip, size);
}

inline void transaction::stm_load_part(std::uint64_t line, std::size_t skip, std::byte* to, std::size_t size) {
  read_consistently(line, [&] { copy_home(line, skip, to, size); });
}

inline void transaction::acquire(std::uint64_t line) {
  line_lock& lock = lock_of(line);
  const std::uint64_t mine = std::uint64_t{log_} << 1 | 1;
  for (unsigned tries = 0; tries < patience; ++tries) {
    std::uint64_t seen = lock.load(std::memory_order_acquire);
    if (seen == mine) return;  // another line with the same lock
    if ((seen & 1) != 0) {
      media::cpu::relax();
    } else if (seen >> 1 > snapshot_) {
      extend();
    } else {
      locks_.push_back({&lock, seen});
      if (lock.compare_exchange_strong(seen, mine, std::memory_order_acq_rel)) return;
      locks_.pop_back();
    }
  }
  conflict();
}

inline written_line& transaction::line_for_store(std::uint64_t line) {
  if (!writes_.empty() && writes_.last().offset == line) return writes_.last();
  const std::uint64_t bit = filter_bit(this_access.home + line);
  if ((filter_ & bit) != 0)
    if (written_line* own = writes_.find(line)) return *own;
  if (stm_) acquire(line);
  filter_ |= bit;
  this_access.filter |= bit;
  return writes_.add(line);
}

// The stores of one writer to one line after another, without a call.
inline void transaction::store_word(std::uint64_t offset, std::uint64_t bits) {
  const std::uint64_t line_offset = offset & ~std::uint64_t{line_size - 1}, in_line = offset - line_offset;
  if (stores_ != stores_go::to_write_set) [[unlikely]]
    return store_otherwise(offset, bits, 0xFF);
  if (writes_.empty() || writes_.last().offset != line_offset) {
    const std::uint64_t bit = filter_bit(this_access.home + line_offset);
    if (stm_ || (filter_ & bit) != 0 || writes_.full()) return store_word_anywhere(offset, bits);
    filter_ |= bit;
    this_access.filter |= bit;
    writes_.add(line_offset);
  }
  written_line& line = writes_.last();
  line.words[in_line / 8] = bits;
  line.mask |= std::uint64_t{0xFF} << in_line;
}

inline void transaction::store_bits(std::uint64_t offset, std::uint64_t bits, std::uint8_t mask) {
  if (stores_ != stores_go::to_write_set) [[unlikely]]
    return store_otherwise(offset, bits, mask);
  const std::uint64_t line_offset = offset & ~std::uint64_t{line_size - 1};
  const unsigned word = static_cast<unsigned>(offset - line_offset) / 8;
  written_line& line = line_for_store(line_offset);
  const std::uint64_t counting = spread(mask);
  line.words[word] = (line.words[word] & ~counting) | (bits & counting);
  line.mask |= std::uint64_t{mask} << (8 * word);
}

// Bytes of one line; null stands for zeroes.
inline void transaction::store_part(std::uint64_t offset, const std::byte* from, std::size_t size) {
  if (stores_ != stores_go::to_write_set) [[unlikely]]
    return store_part_otherwise(offset, from, size);
  const std::uint64_t line_offset = offset & ~std::uint64_t{line_size - 1};
  written_line& line = line_for_store(line_offset);
  auto* const to = reinterpret_cast<std::byte*>(line.words.data()) + (offset - line_offset);
  if (from != nullptr)
    std::memcpy(to, from, size);
  else
    std::memset(to, 0, size);
  line.mask |= byte_range(offset - line_offset, size);
}

// Draws the TxID, and with stm checks that everything read is still current. False: start over.
inline bool transaction::draw_txid(std::uint64_t& txid) {
  pool_state& state = runtime_.state();
  if (!base::planted_in_schedules(base::mutant::stm_announce_late)) state.committing[log_].value.store(state.clock.load(std::memory_order_acquire), std::memory_order_release);
  std::atomic_signal_fence(std::memory_order_seq_cst);  // runtime::first_order pays for both
  in_order_ = ordered_ || state.orders.load(std::memory_order_relaxed);
  return in_order_ ? draw_in_order(txid) : draw_announced(txid);
}

inline bool transaction::draw_announced(std::uint64_t& txid) {
  pool_state& state = runtime_.state();
  if (!stm_) {
    txid = state.clock.load(std::memory_order_relaxed) + 1;
    state.clock.store(txid, std::memory_order_release);
    return true;
  }
  txid = state.clock.fetch_add(1, std::memory_order_seq_cst) + 1;
  if (base::planted_in_schedules(base::mutant::stm_announce_late)) state.committing[log_].value.store(txid - 1, std::memory_order_seq_cst);
  if (txid == snapshot_ + 1 || reads_valid() || base::planted_in_schedules(base::mutant::stm_no_validation)) return true;
  state.committing[log_].value.store(pool_state::no_commit, std::memory_order_release);
  return false;
}

inline void bump(std::atomic<std::uint64_t>& counter) noexcept { counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }

inline storage::heap& transaction::heap() noexcept { return runtime_.state().heap; }

inline void transaction::begin(visitor& v, bool writes, bool ordered) {
  visitor_ = &v;
  asked_for_order_ = ordered;
  ordered_ = ordered && runtime_.defers_ordered();
  if (!pending_.empty() && settled_.load(std::memory_order_acquire)) [[unlikely]]
    retire();
  const bool routed = writes || stm_ || !pending_.empty() || runtime_.home_is_apart();
  access& a = this_access;
  a.home = reinterpret_cast<std::uintptr_t>(runtime_.base());
  a.size = runtime_.size();
  a.heap = a.home + runtime_.heap_begin();
  a.load_size = routed ? runtime_.size() : 0;
  a.filter = stm_ || runtime_.home_is_apart() ? ~std::uint64_t{0} : pending_filter_;
  a.running = this;
  filter_ = pending_filter_;
  stores_ = writes ? stores_go::to_write_set : stores_go::nowhere;
  if (stm_) {
    any_read_ = false;
    record_reads_ = writes || attempts > 2;
    reads_plainly_ = !record_reads_ && filter_ == 0 && space_ == nullptr && loads_ == nullptr && !sanitizes_threads;
  }
  if (writes && runtime_.in_place()) {
    stores_ = stores_go::home;
    a.load_size = 0;
    a.in_place_size = runtime_.size();
    a.kept = kept_.data();
    a.kept_end = kept_.data() + kept_.size();
    begin_home();
  }
  if (writes && runtime_.may_execute_in_log() && runtime_.mechanism().begin(*this)) stores_ = stores_go::to_log;
  if (space_ != nullptr) space_->epochs.pin(log_);
  if (stm_) snapshot_ = runtime_.state().clock.load(std::memory_order_acquire);
}

inline void transaction::clear() noexcept {
  access& a = this_access;
  a.size = a.load_size = 0;
  if (stores_ == stores_go::home) a.in_place_size = 0;
  if (space_ != nullptr) space_->epochs.unpin(log_);
  writes_.clear();
  if (!reads_.empty()) reads_.clear();
  if (!locks_.empty()) locks_.clear();
  if (!outside_.empty()) [[unlikely]]
    outside_.clear();
  if (gate_held_) {
    runtime_.open_gate();
    gate_held_ = false;
  }
}

inline attempt transaction::commit() {
  if (runtime_.state().poisoned.load(std::memory_order_relaxed)) [[unlikely]]  // what it has read may be zeroes in place of a lost page
    return fail_lost();
  if (stores_ == stores_go::home && this_access.kept != kept_.data()) return commit_in_place();
  if (writes_.empty()) return outside_.locked ? commit_outside() : commit_nothing();
  return runtime_.mechanism().run_commit(*this);
}

template <class Engine>
attempt transaction::commit_by(Engine& e) {
  if (auto room = e.prepare(*this); !room) [[unlikely]]
    return roll_back_for(std::move(room.error()));
  std::uint64_t txid = 0;
  if (!e.draw(*this, txid)) [[unlikely]]
    return attempt::retry;
  page_snapshot* const backup = runtime_.snapshot();
  if (backup != nullptr && !base::planted_in_schedules(base::mutant::backup_stores_first)) [[unlikely]]
    keep_pages(*backup, writes_);
  if (base::planted_in_schedules(base::mutant::stm_unlock_first))
    for (const read_entry& l : locks_) l.lock->store(txid << 1, std::memory_order_release);
  const bool kept = e.commit(*this, txid);
  if (backup != nullptr && base::planted_in_schedules(base::mutant::backup_stores_first)) keep_pages(*backup, writes_);
  if (has_pending()) [[unlikely]]
    pending_txid_ = txid;  // it may have stored to lines whose locks are the overlay's: they get no older version
  heap().commit(cache, changes_);
  for (const read_entry& l : locks_) l.lock->store(base::planted_in_schedules(base::mutant::stm_old_version) ? l.seen : txid << 1, std::memory_order_release);
  runtime_.state().committing[log_].value.store(pool_state::no_commit, std::memory_order_release);
  clear();
  if (!kept) [[unlikely]]
    return fail_unkept();
  auto& place = runtime_.places_[log_];
  bump(place.commits);
  place.newest.store(txid, std::memory_order_release);
  return attempt::committed;
}

inline void transaction::begin_home() {
  if (!visitor_->holds_writer || gate_held_) return;
  runtime_.close_gate();
  gate_held_ = true;
}

}  // namespace stele::detail
