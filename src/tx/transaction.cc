// Loads, stores, commit and roll-back of one transaction; see transaction.h for the rules.
#include <media/cpu.h>
#include <tx/transaction_inl.h>

#include <algorithm>
#include <bit>

#include <base/check.h>
#include <base/mutant.h>

namespace stele::detail {

transaction::transaction(runtime& r, unsigned log)
    : runtime_(r), log_(log), home_(r.base() + r.state().file.home_delta()), all_locks_(r.locks()), lock_mask_(r.lock_mask()), stm_(r.policy() == concurrency::stm), space_(r.state().space.get()), places_(space_ != nullptr ? space_->cache_entries() : 0), loads_(r.mechanism().loads_of(log)) {}

void transaction::more_kept() {
  const std::size_t used = static_cast<std::size_t>(this_access.kept - kept_.data());
  kept_.resize(std::max<std::size_t>(256, kept_.size() * 2));
  this_access.kept = kept_.data() + used;
  this_access.kept_end = kept_.data() + kept_.size();
}

// Within one word.
void transaction::store_in_place(std::uint64_t offset, const void* bytes, std::size_t size) {
  access& a = this_access;
  if (a.kept == a.kept_end) more_kept();
  const std::uintptr_t word_at = a.home + (offset & ~std::uint64_t{7});
  *a.kept++ = {word_at | size << 56, *reinterpret_cast<const std::uint64_t*>(word_at)};
  std::memcpy(reinterpret_cast<void*>(a.home + offset), bytes, size);
}

void transaction::undo_in_place() noexcept {
  for (const old_word* o = this_access.kept; o != kept_.data();) {
    --o;
    *reinterpret_cast<std::uint64_t*>(o->where & ((std::uintptr_t{1} << 56) - 1)) = o->value;
  }
}

// Moves the snapshot to now if everything read so far is as it was.
void transaction::extend() {
  const std::uint64_t now = runtime_.state().clock.load(std::memory_order_acquire);
  if ((any_read_ || !reads_valid()) && !base::planted_in_schedules(base::mutant::stm_extend_unchecked)) conflict();
  snapshot_ = now;
}

bool transaction::reads_valid() const noexcept {
  const std::uint64_t mine = std::uint64_t{log_} << 1 | 1;
  for (const read_entry& r : reads_) {
    const std::uint64_t now = r.lock->load(std::memory_order_acquire);
    if (now != r.seen && now != mine) return false;  // a lock taken by us was checked against the snapshot when we took it
  }
  return true;
}

void transaction::conflict() { throw restart{}; }

// Stores a word's bytes in the log: what it holds of the word already stays.
void transaction::store_in_log(written_line& line, std::uint64_t offset, std::uint64_t bits, std::uint8_t mask) {
  const unsigned word = static_cast<unsigned>(offset - line.offset) / 8;
  const std::uint8_t old = line.word_mask(word);
  auto* const at = old != 0 ? reinterpret_cast<format::log_block*>(line.words[word]) : nullptr;
  const std::uint64_t counting = spread(mask), kept = at != nullptr ? format::word_of(*at) : 0;
  const std::uint64_t merged = (kept & ~counting) | (bits & counting);
  line.words[word] = reinterpret_cast<std::uint64_t>(runtime_.mechanism().store_in_log(*this, at, line.offset + 8 * word, merged, old | mask));
  line.mask |= std::uint64_t{mask} << (8 * word);
}

// Bytes of one line of a log-structured pool: a look at the map for each run of words that are kept together.
void transaction::copy_kept(std::uint64_t offset, std::byte* to, std::size_t size) noexcept {
  using pair [[gnu::vector_size(16)]] = std::uint64_t;
  const auto* const log = reinterpret_cast<const std::uint64_t*>(space_->file().base());
  const auto word = [&](const storage::home_map::found& f, std::uint64_t i) { return storage::is_data(f.at) ? __atomic_load_n(log + f.at + i, __ATOMIC_ACQUIRE) : 0; };
  for (std::uint64_t home = space_->home_of(offset), skip = offset & 7; size != 0; skip = 0) {
    const storage::home_map::found f = space_->map.find(home, places_);
    if (skip == 0 && size % sizeof(pair) == 0 && f.run * std::uint64_t{8} >= size) {  // as wide as it is going to be read
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

std::uint64_t transaction::stm_load_again(std::uint64_t offset) {
  std::uint64_t value = 0;
  read_consistently(offset, [&] { value = home_word(offset); });
  return value;
}

void transaction::store_word_anywhere(std::uint64_t offset, std::uint64_t bits) {
  const std::uint64_t line_offset = offset & ~std::uint64_t{line_size - 1}, in_line = offset - line_offset;
  written_line& line = line_for_store(line_offset);
  line.words[in_line / 8] = bits;
  line.mask |= std::uint64_t{0xFF} << in_line;
}

// A store that is not for the write set: it goes to the log or home, or is refused.
void transaction::store_otherwise(std::uint64_t offset, std::uint64_t bits, std::uint8_t mask) {
  if (stores_ == stores_go::nowhere) throw failure({errc::read_only, "a store inside pool::read; use pool::update to change the pool"});
  if (in_log()) return store_in_log(line_for_store(offset & ~std::uint64_t{line_size - 1}), offset, bits, mask);
  const unsigned skip = static_cast<unsigned>(std::countr_zero(mask)), size = static_cast<unsigned>(std::popcount(mask));
  bits >>= 8 * skip;
  store_in_place(offset + skip, &bits, size);
}

void transaction::store_part_otherwise(std::uint64_t offset, const std::byte* from, std::size_t size) {
  for (std::size_t done = 0; done < size;) {
    const std::uint64_t at = offset + done, skip = at & 7;
    const std::size_t take = std::min<std::size_t>(8 - skip, size - done);
    std::uint64_t word = 0;
    if (from != nullptr) std::memcpy(reinterpret_cast<std::byte*>(&word) + skip, from + done, take);
    store_otherwise(at - skip, word, static_cast<std::uint8_t>(((1u << take) - 1) << skip));
    done += take;
  }
}

void transaction::write_private(std::uint64_t offset, std::uint64_t value, unsigned size) {
  if (stores_ == stores_go::home) return store_in_place(offset, &value, size);
  const std::uint64_t line_offset = offset & ~std::uint64_t{line_size - 1};
  const std::uint64_t bit = filter_bit(this_access.home + line_offset);
  written_line* line = (filter_ & bit) != 0 ? writes_.find(line_offset) : nullptr;
  if (line == nullptr) line = &writes_.add(line_offset);
  filter_ |= bit;
  const unsigned at = static_cast<unsigned>(offset - line_offset);
  if (in_log()) {
    const std::uint8_t mask = static_cast<std::uint8_t>(size == 8 ? 0xFF : ((1u << size) - 1) << (at & 7));
    return store_in_log(*line, offset & ~std::uint64_t{7}, value << (8 * (at & 7)), mask);
  }
  const std::uint64_t bytes = byte_range(at & 7, size), bits = spread(static_cast<std::uint8_t>(bytes));
  std::uint64_t& word = line->words[at / 8];
  word = (word & ~bits) | (value << (8 * (at & 7)) & bits);  // whole, as the commit is going to read it
  line->mask |= bytes << (at & ~7u);
}

std::uint64_t transaction::read_private(std::uint64_t offset, unsigned size) {
  const std::uint64_t line_offset = offset & ~std::uint64_t{line_size - 1}, word_offset = offset & ~std::uint64_t{7};
  const written_line* own = writes_.find(line_offset);
  const unsigned at = static_cast<unsigned>(word_offset - line_offset) / 8;
  const bool all_own = own != nullptr && own->word_mask(at) == 0xFF;
  const std::uint64_t home = all_own ? 0 : over_home(word_offset, home_word(word_offset));
  const std::uint64_t word = own != nullptr ? blend(*own, at, home) : home;
  return size == 8 ? word : (word >> (8 * (offset & 7))) & ((std::uint64_t{1} << (8 * size)) - 1);
}

void transaction::claim(std::uint64_t offset, std::size_t size) {
  if (!stm_) return;
  for (std::uint64_t line = offset & ~std::uint64_t{line_size - 1}; line < offset + size; line += line_size) acquire(line);
}

// A log's record takes two words for a descriptor; a full pool has no room for a longer one.
std::size_t transaction::reclaim() { return heap().reclaim(cache, changes_, *this, runtime_.state().file.header().log_size / line_size); }

std::uint64_t transaction::allocate(std::size_t size, std::size_t alignment) {
  if (stores_ == stores_go::nowhere) throw failure({errc::read_only, "an allocation inside pool::read; use pool::update to change the pool"});
  auto block = heap().allocate(cache, changes_, *this, size, alignment);
  // Who freed it may have committed after this snapshot, in which it is still in use: then everything read so far has to be read anew.
  if (block && stm_ && runtime_.state().clock.load(std::memory_order_acquire) != snapshot_ && !base::planted(base::mutant::stm_stale_allocation)) [[unlikely]]
    extend();
  if (block && space_ != nullptr) store_word(*block, 0);  // a block is used if something of it is in the log
  if (block) return *block;
  if (block.error().code == errc::full && !reclaimed) {
    wants_reclaim = true;
    throw restart{};
  }
  throw failure(std::move(block.error()));
}

void transaction::deallocate(std::uint64_t offset) {
  if (stores_ == stores_go::nowhere) throw failure({errc::read_only, "a destroy inside pool::read; use pool::update to change the pool"});
  auto freed = heap().deallocate(cache, changes_, *this, offset);
  if (freed) return;
  if (stm_) extend();  // a stale snapshot explains it: start over
  throw failure(std::move(freed.error()));
}

// A TxID, one transaction at a time, so that each knows the ordered commit before it.
bool transaction::draw_in_order(std::uint64_t& txid) {
  pool_state& state = runtime_.state();
  state.committing[log_].value.store(pool_state::no_commit, std::memory_order_release);  // nobody waits for who waits for the mutex
  drawing_ = std::unique_lock(state.drawing);
  if (ordered_ && !state.orders.load(std::memory_order_relaxed)) runtime_.first_order(log_);
  state.committing[log_].value.store(state.clock.load(std::memory_order_acquire), std::memory_order_seq_cst);
  ordered_before_ = state.last_ordered;
  const bool drawn = draw_announced(txid);
  if (drawn && ordered_)
    state.last_ordered = txid;  // the mutex stays held: nobody names this commit before it is pending
  else
    drawing_.unlock();
  return drawn;
}

void transaction::reserve_pending() {
  pending_.reserve(writes_.lines().size());
  base::reserve_more(pending_locks_, locks_.size());
  pending_changes_.reserve(changes_);
}

// The values become the overlay's, the locks stay: nobody else sees this commit before it is home.
void transaction::defer(std::uint64_t txid) noexcept {
  for (const written_line& line : writes_.lines()) {
    written_line* before = pending_.find(line.offset);
    if (before == nullptr) before = &pending_.add(line.offset);
    for (unsigned w = next_word(line.mask, 0); w < 8; w = next_word(line.mask, w + 1)) {
      const std::uint64_t bits = spread(line.word_mask(w));
      before->words[w] = (before->words[w] & ~bits) | (line.words[w] & bits);
    }
    before->mask |= line.mask;
  }
  pending_locks_.insert(pending_locks_.end(), locks_.begin(), locks_.end());
  locks_.clear();
  pending_changes_.append(changes_);
  pending_filter_ |= filter_;
  pending_txid_ = txid;
  if (!has_pending()) runtime_.state().overlays.fetch_add(1, std::memory_order_relaxed);
  holds_pending_.store(true, std::memory_order_release);
  settled_.store(false, std::memory_order_relaxed);
}

void transaction::begin_settling() {
  runtime_.close_gate();
}
void transaction::end_settling() noexcept {
  runtime_.open_gate();
  settled_.store(true, std::memory_order_release);
}

// The log's owner's, between transactions, when the overlay is home.
void transaction::retire() noexcept {
  if (!has_pending()) return;  // its owner was quicker
  for (const read_entry& l : pending_locks_) l.lock->store(pending_txid_ << 1, std::memory_order_release);
  pending_locks_.clear();
  pending_.clear();
  pending_filter_ = 0;
  heap().commit(cache, pending_changes_);
  holds_pending_.store(false, std::memory_order_release);
  runtime_.state().overlays.fetch_sub(1, std::memory_order_relaxed);
  settled_.store(false, std::memory_order_relaxed);
}

void transaction::keep_pages(page_snapshot& snapshot, const write_set& stored) noexcept {
  for (const written_line& line : stored.lines()) snapshot.before_store(line.offset);
}

void transaction::before_storing(std::uint64_t offset, std::uint64_t bytes) const noexcept {
  page_snapshot* const snapshot = runtime_.snapshot();
  if (snapshot == nullptr || base::planted(base::mutant::backup_spill_unkept)) return;
  for (std::uint64_t at = offset / page_snapshot::page_size * page_snapshot::page_size; at < offset + bytes; at += page_snapshot::page_size) snapshot->before_store(at);
}

attempt transaction::commit_nothing() noexcept {
  auto& place = runtime_.places_[log_];
  bump(stores_ != stores_go::nowhere ? place.commits : place.reads);
  clear();
  return attempt::committed;
}

attempt transaction::commit_in_place() noexcept {
  auto& place = runtime_.places_[log_];
  const std::uint64_t txid = runtime_.state().clock.load(std::memory_order_relaxed) + 1;
  runtime_.state().clock.store(txid, std::memory_order_release);
  for (const old_word* o = kept_.data(); o != this_access.kept; ++o) place.stored_in_place.store(place.stored_in_place.load(std::memory_order_relaxed) + (o->where >> 56), std::memory_order_relaxed);
  heap().commit(cache, changes_);
  clear();
  bump(place.commits);
  place.newest.store(txid, std::memory_order_release);
  return attempt::committed;
}

attempt transaction::roll_back_for(error why) {
  rollback();
  return fail_attempt(std::move(why));
}
// Never std::bad_alloc: that would say that it is not kept.
attempt transaction::fail_unkept() const noexcept {
  try {
    return fail_attempt({errc::poisoned, runtime_.state().file.path() + ": writing the log failed; this commit may or may not be kept. "
                         "Reopen the pool: recovery decides from what reached the device"});
  } catch (const std::bad_alloc&) {
    return fail_attempt({errc::poisoned, "write failed"});  // so short that it takes no memory
  }
}

attempt transaction::fail_lost() {
  return roll_back_for({errc::poisoned, runtime_.state().file.path() + ": an earlier write failed, or part of the file is gone (truncated, or unreadable); nothing of this "
                        "transaction counts. Reopen the pool, or restore it from a copy"});
}

bool engine::draw(transaction& t, std::uint64_t& txid) { return t.draw_txid(txid); }
attempt engine::run_commit(transaction& t) { return t.commit_by(*this); }

void transaction::rollback() noexcept {
  if (stores_ == stores_go::home) undo_in_place();
  if (!outside_.empty()) [[unlikely]]
    roll_back_outside();
  if (in_log()) runtime_.mechanism().abort(*this);
  heap().rollback(cache, changes_);
  for (const read_entry& l : locks_) l.lock->store(l.seen, std::memory_order_release);
  bump(runtime_.places_[log_].aborts);
  clear();
}

}  // namespace stele::detail
