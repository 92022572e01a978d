// The slow paths of a transaction's loads and stores, its overlay, the ends of its commits, and its
// roll-back. The rules are in transaction.h, the fast paths in transaction_inl.h.
#include <media/cpu.h>
#include <tx/transaction_inl.h>

#include <algorithm>
#include <bit>

#include <base/check.h>
#include <base/mutant.h>

namespace stele::detail {

transaction::transaction(runtime& r, unsigned log)
    : runtime_(r),
      log_(log),
      home_(r.base() + r.state().file.home_delta()),
      all_locks_(r.locks()),
      lock_mask_(r.lock_mask()),
      stm_(r.policy() == concurrency::stm),
      space_(r.state().space.get()),
      map_cache_(space_ != nullptr ? space_->cache_entries() : 0),
      access_buffer_(r.mechanism().access_buffer_of(log)) {}

void transaction::grow_undo_buffer() {
  const std::size_t used = static_cast<std::size_t>(this_access.undo_next - in_place_undo_.data());
  in_place_undo_.resize(std::max<std::size_t>(256, in_place_undo_.size() * 2));
  this_access.undo_next = in_place_undo_.data() + used;
  this_access.undo_end = in_place_undo_.data() + in_place_undo_.size();
}

// Within one word.
void transaction::store_in_place(std::uint64_t offset, const void* bytes, std::size_t size) {
  access& a = this_access;
  if (a.undo_next == a.undo_end) grow_undo_buffer();
  const std::uintptr_t word_at = a.pool_base + (offset & ~std::uint64_t{7});
  *a.undo_next++ = {word_at | size << 56, *reinterpret_cast<const std::uint64_t*>(word_at)};
  std::memcpy(reinterpret_cast<void*>(a.pool_base + offset), bytes, size);
}

void transaction::undo_in_place() noexcept {
  for (const undo_entry* o = this_access.undo_next; o != in_place_undo_.data();) {
    --o;
    *reinterpret_cast<std::uint64_t*>(o->where & ((std::uintptr_t{1} << 56) - 1)) = o->value;
  }
}

// Moves the snapshot to now if the read set is still valid. Else, or if loads were not recorded, a
// conflict.
void transaction::extend_snapshot() {
  const std::uint64_t now = runtime_.state().clock.load(std::memory_order_acquire);
  if ((has_unrecorded_reads_ || !reads_valid()) &&
      !base::planted_in_schedule_explorer(base::mutant::stm_extend_unchecked))
    conflict();
  snapshot_ = now;
}

bool transaction::reads_valid() const noexcept {
  const std::uint64_t own_lock = std::uint64_t{log_} << 1 | 1;
  for (const read_entry& r : reads_) {
    const std::uint64_t now = r.lock->load(std::memory_order_acquire);
    // A lock of this transaction was checked against the snapshot when it was acquired.
    if (now != r.version && now != own_lock) return false;
  }
  return true;
}

void transaction::conflict() {
  throw restart{};
}

// Execution in log: stores bytes of a word in its log block. Other bytes of the word stay.
void transaction::store_in_log(written_line& line, std::uint64_t offset, std::uint64_t bits,
                               std::uint8_t mask) {
  const unsigned word = static_cast<unsigned>(offset - line.offset) / 8;
  const std::uint8_t old = line.word_mask(word);
  auto* const at = old != 0 ? reinterpret_cast<format::log_block*>(line.words[word]) : nullptr;
  const std::uint64_t counting = expand_mask(mask), kept = at != nullptr ? format::word_of(*at) : 0;
  const std::uint64_t merged = (kept & ~counting) | (bits & counting);
  line.words[word] = reinterpret_cast<std::uint64_t>(
      runtime_.mechanism().store_in_log(*this, at, line.offset + 8 * word, merged, old | mask));
  line.mask |= std::uint64_t{mask} << (8 * word);
}

// Loads bytes of one line of a log-structured pool. One lookup in the home map for each run of
// words that are together in the log.
void transaction::copy_logged(std::uint64_t offset, std::byte* to, std::size_t size) noexcept {
  using pair [[gnu::vector_size(16)]] = std::uint64_t;
  const auto* const log = reinterpret_cast<const std::uint64_t*>(space_->file().base());
  const auto word = [&](const storage::home_map::lookup_result& f, std::uint64_t i) {
    return storage::is_data(f.at) ? __atomic_load_n(log + f.at + i, __ATOMIC_ACQUIRE) : 0;
  };
  for (std::uint64_t home = space_->home_of(offset), skip = offset & 7; size != 0; skip = 0) {
    const storage::home_map::lookup_result f = space_->map.find(home, map_cache_);
    // 16 bytes at a time, as in try_fast_read.
    if (skip == 0 && size % sizeof(pair) == 0 && f.run * std::uint64_t{8} >= size) {
      for (std::size_t at = 0; at < size; at += sizeof(pair)) {
        const pair two = {word(f, at / 8), word(f, at / 8 + 1)};
        std::memcpy(to + at, &two, sizeof two);
      }
      return;
    }
    for (std::uint64_t i = 0; i < f.run && size != 0; ++i, ++home, skip = 0) {
      const std::uint64_t one = word(f, i);
      const std::size_t take = std::min<std::size_t>(8 - skip, size);
      std::memcpy(to, reinterpret_cast<const std::byte*>(&one) + skip, take);
      to += take, size -= take;
    }
  }
}

std::uint64_t transaction::stm_load_slow(std::uint64_t offset) {
  std::uint64_t value = 0;
  read_consistently(offset, [&] { value = home_word(offset); });
  return value;
}

void transaction::store_word_slow(std::uint64_t offset, std::uint64_t bits) {
  const std::uint64_t line_offset = offset & ~std::uint64_t{line_size - 1},
                      in_line = offset - line_offset;
  written_line& line = line_for_store(line_offset);
  line.words[in_line / 8] = bits;
  line.mask |= std::uint64_t{0xFF} << in_line;
}

// A store that does not go to the write set: it goes to the log or home, or is refused.
void transaction::store_slow(std::uint64_t offset, std::uint64_t bits, std::uint8_t mask) {
  if (store_target_ == store_target::read_only)
    throw failure(
        {errc::read_only, "a store inside pool::read; use pool::update to change the pool"});
  if (in_log())
    return store_in_log(line_for_store(offset & ~std::uint64_t{line_size - 1}), offset, bits, mask);
  const unsigned skip = static_cast<unsigned>(std::countr_zero(mask)),
                 size = static_cast<unsigned>(std::popcount(mask));
  bits >>= 8 * skip;
  store_in_place(offset + skip, &bits, size);
}

void transaction::store_part_slow(std::uint64_t offset, const std::byte* from, std::size_t size) {
  for (std::size_t done = 0; done < size;) {
    const std::uint64_t at = offset + done, skip = at & 7;
    const std::size_t take = std::min<std::size_t>(8 - skip, size - done);
    std::uint64_t word = 0;
    if (from != nullptr) std::memcpy(reinterpret_cast<std::byte*>(&word) + skip, from + done, take);
    store_slow(at - skip, word, static_cast<std::uint8_t>(((1u << take) - 1) << skip));
    done += take;
  }
}

void transaction::write_private(std::uint64_t offset, std::uint64_t value, unsigned size) {
  if (store_target_ == store_target::home) return store_in_place(offset, &value, size);
  const std::uint64_t line_offset = offset & ~std::uint64_t{line_size - 1};
  const std::uint64_t bit = filter_bit(this_access.pool_base + line_offset);
  written_line* line = (filter_ & bit) != 0 ? writes_.find(line_offset) : nullptr;
  if (line == nullptr) line = &writes_.add(line_offset);
  filter_ |= bit;
  const unsigned at = static_cast<unsigned>(offset - line_offset);
  if (in_log()) {
    const std::uint8_t mask =
        static_cast<std::uint8_t>(size == 8 ? 0xFF : ((1u << size) - 1) << (at & 7));
    return store_in_log(*line, offset & ~std::uint64_t{7}, value << (8 * (at & 7)), mask);
  }
  const std::uint64_t bytes = byte_range(at & 7, size),
                      bits = expand_mask(static_cast<std::uint8_t>(bytes));
  std::uint64_t& word = line->words[at / 8];
  // Stores the whole word, because the commit loads the whole word (decision 7).
  word = (word & ~bits) | (value << (8 * (at & 7)) & bits);
  line->mask |= bytes << (at & ~7u);
}

std::uint64_t transaction::read_private(std::uint64_t offset, unsigned size) {
  const std::uint64_t line_offset = offset & ~std::uint64_t{line_size - 1},
                      word_offset = offset & ~std::uint64_t{7};
  const written_line* own = writes_.find(line_offset);
  const unsigned at = static_cast<unsigned>(word_offset - line_offset) / 8;
  const bool all_own = own != nullptr && own->word_mask(at) == 0xFF;
  const std::uint64_t home =
      all_own ? 0 : read_through_overlay(word_offset, home_word(word_offset));
  const std::uint64_t word = own != nullptr ? merge_word(*own, at, home) : home;
  return size == 8 ? word : (word >> (8 * (offset & 7))) & ((std::uint64_t{1} << (8 * size)) - 1);
}

void transaction::claim(std::uint64_t offset, std::size_t size) {
  if (!stm_) return;
  for (std::uint64_t line = offset & ~std::uint64_t{line_size - 1}; line < offset + size;
       line += line_size)
    acquire_lock(line);
}

// A record takes two words for each chunk descriptor, so log_size / line_size slabs fit the ring. A
// full pool has no chunks for a spill.
std::size_t transaction::reclaim() {
  return heap().reclaim(cache, changes_, *this,
                        runtime_.state().file.header().log_size / line_size);
}

std::uint64_t transaction::allocate(std::size_t size, std::size_t alignment) {
  if (store_target_ == store_target::read_only)
    throw failure(
        {errc::read_only, "an allocation inside pool::read; use pool::update to change the pool"});
  auto block = heap().allocate(cache, changes_, *this, size, alignment);
  // The block may have been freed by a commit after this snapshot, in which it is still in use. So
  // the snapshot must include that commit.
  if (block && stm_ && runtime_.state().clock.load(std::memory_order_acquire) != snapshot_ &&
      !base::planted(base::mutant::stm_stale_allocation)) [[unlikely]]
    extend_snapshot();
  if (block && space_ != nullptr)
    store_word(*block, 0);  // log-structured: a block is used if a word of it is in the log
  if (block) return *block;
  if (block.error().code == errc::full && !reclaim_tried) {
    wants_reclaim = true;
    throw restart{};
  }
  throw failure(std::move(block.error()));
}

void transaction::deallocate(std::uint64_t offset) {
  if (store_target_ == store_target::read_only)
    throw failure(
        {errc::read_only, "a destroy inside pool::read; use pool::update to change the pool"});
  auto freed = heap().deallocate(cache, changes_, *this, offset);
  if (freed) return;
  if (stm_) extend_snapshot();  // restarts if a stale snapshot is the cause
  throw failure(std::move(freed.error()));
}

// Draws the TxID under txid_mutex, so that the record can name the ordered commit before it.
bool transaction::assign_txid_in_order(std::uint64_t& txid) {
  pool_state& state = runtime_.state();
  // A thread waiting for txid_mutex has announced no TxID, so no other thread waits for it.
  state.committing[log_].value.store(pool_state::no_commit, std::memory_order_release);
  txid_lock_ = std::unique_lock(state.txid_mutex);
  if (ordered_ && !state.ordered_mode.load(std::memory_order_relaxed))
    runtime_.enter_ordered_mode(log_);
  state.committing[log_].value.store(state.clock.load(std::memory_order_acquire),
                                     std::memory_order_seq_cst);
  previous_ordered_ = state.last_ordered;
  const bool drawn = assign_txid_announced(txid);
  // An ordered commit keeps the mutex, so that no record names it before it is in its deferred
  // batch.
  if (drawn && ordered_)
    state.last_ordered = txid;
  else
    txid_lock_.unlock();
  return drawn;
}

void transaction::reserve_overlay() {
  overlay_.reserve(writes_.lines().size());
  base::reserve_more(overlay_locks_, locks_.size());
  overlay_changes_.reserve(changes_);
}

// Moves the values to the overlay and keeps the locks, so that no other thread sees this commit
// before it is stored home.
void transaction::defer(std::uint64_t txid) noexcept {
  for (const written_line& line : writes_.lines()) {
    written_line* before = overlay_.find(line.offset);
    if (before == nullptr) before = &overlay_.add(line.offset);
    for (unsigned w = next_word(line.mask, 0); w < 8; w = next_word(line.mask, w + 1)) {
      const std::uint64_t bits = expand_mask(line.word_mask(w));
      before->words[w] = (before->words[w] & ~bits) | (line.words[w] & bits);
    }
    before->mask |= line.mask;
  }
  overlay_locks_.insert(overlay_locks_.end(), locks_.begin(), locks_.end());
  locks_.clear();
  overlay_changes_.append(changes_);
  overlay_filter_ |= filter_;
  overlay_txid_ = txid;
  if (!has_overlay()) runtime_.state().overlays.fetch_add(1, std::memory_order_relaxed);
  has_overlay_.store(true, std::memory_order_release);
  overlay_stored_.store(false, std::memory_order_relaxed);
}

void transaction::begin_overlay_store() {
  runtime_.block_readers();
}
void transaction::end_overlay_store() noexcept {
  runtime_.unblock_readers();
  overlay_stored_.store(true, std::memory_order_release);
}

// Precondition: the overlay is stored home. Called by the log's owner between transactions, or by a
// thread that has taken the log from an idle owner.
void transaction::release_overlay() noexcept {
  if (!has_overlay()) return;  // another thread has released it
  for (const read_entry& l : overlay_locks_)
    l.lock->store(overlay_txid_ << 1, std::memory_order_release);
  overlay_locks_.clear();
  overlay_.clear();
  overlay_filter_ = 0;
  heap().commit(cache, overlay_changes_);
  has_overlay_.store(false, std::memory_order_release);
  runtime_.state().overlays.fetch_sub(1, std::memory_order_relaxed);
  overlay_stored_.store(false, std::memory_order_relaxed);
}

void transaction::snapshot_pages(page_snapshot& snapshot, const write_set& stored) noexcept {
  for (const written_line& line : stored.lines()) snapshot.before_store(line.offset);
}

void transaction::before_store(std::uint64_t offset, std::uint64_t bytes) const noexcept {
  page_snapshot* const snapshot = runtime_.backup_snapshot();
  if (snapshot == nullptr || base::planted(base::mutant::backup_spill_unkept)) return;
  for (std::uint64_t at = offset / page_snapshot::page_size * page_snapshot::page_size;
       at < offset + bytes; at += page_snapshot::page_size)
    snapshot->before_store(at);
}

commit_status transaction::commit_empty() noexcept {
  auto& slot = runtime_.log_slots_[log_];
  bump(store_target_ != store_target::read_only ? slot.commits : slot.reads);
  clear();
  return commit_status::committed;
}

commit_status transaction::commit_in_place() noexcept {
  auto& slot = runtime_.log_slots_[log_];
  const std::uint64_t txid = runtime_.state().clock.load(std::memory_order_relaxed) + 1;
  runtime_.state().clock.store(txid, std::memory_order_release);
  for (const undo_entry* o = in_place_undo_.data(); o != this_access.undo_next; ++o)
    slot.stored_in_place.store(
        slot.stored_in_place.load(std::memory_order_relaxed) + (o->where >> 56),
        std::memory_order_relaxed);
  heap().commit(cache, changes_);
  clear();
  bump(slot.commits);
  slot.newest.store(txid, std::memory_order_release);
  return commit_status::committed;
}

void transaction::doom() noexcept {
  if (doomed_by_ == nullptr) doomed_by_ = std::current_exception();
}

// Does what run_transaction does with the exception if it leaves the body. Throws it if it is
// neither a conflict nor a failure; the caller rolls back.
commit_status transaction::commit_doomed() {
  try {
    std::rethrow_exception(doomed_by_);
  } catch (const restart&) {
    return commit_status::retry;
  } catch (const failure& f) {
    return roll_back_with_error(f.why());
  }
}

commit_status transaction::roll_back_with_error(error why) {
  rollback();
  return fail_attempt(std::move(why));
}
// Does not throw std::bad_alloc, which would tell the caller that the commit was rolled back.
commit_status transaction::fail_in_doubt() const noexcept {
  try {
    return fail_attempt(
        {errc::poisoned, runtime_.state().file.path() +
                             ": writing the log failed; this commit may or may not be kept. "
                             "Reopen the pool: recovery decides from what reached the device"});
  } catch (const std::bad_alloc&) {
    return fail_attempt({errc::poisoned, "write failed"});  // short: std::string does not allocate
  }
}

commit_status transaction::fail_poisoned() {
  return roll_back_with_error(
      {errc::poisoned, runtime_.state().file.path() +
                           ": an earlier write failed, or part of the file is gone (truncated, or "
                           "unreadable); nothing of this "
                           "transaction counts. Reopen the pool, or restore it from a copy"});
}

bool engine::assign_txid(transaction& t, std::uint64_t& txid) {
  return t.assign_txid(txid);
}
commit_status engine::run_commit(transaction& t) {
  return t.commit_by(*this);
}

void transaction::rollback() noexcept {
  if (store_target_ == store_target::home) undo_in_place();
  if (!volatile_undo_.empty()) [[unlikely]]
    roll_back_volatile();
  if (in_log()) runtime_.mechanism().abort(*this);
  heap().rollback(cache, changes_);
  for (const read_entry& l : locks_) l.lock->store(l.version, std::memory_order_release);
  bump(runtime_.log_slots_[log_].aborts);
  doomed_by_ = nullptr;
  clear();
}

}  // namespace stele::detail
