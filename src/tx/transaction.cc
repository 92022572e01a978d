// A transaction's allocations, its place in the order of TxIDs, its overlay, the ends of its
// commits, and its roll-back. The rules are in transaction.h, the fast paths in fast_paths.h and
// transaction_inl.h.
#include <base/assert.h>
#include <base/mutant.h>
#include <tx/attempt.h>
#include <tx/moment.h>
#include <tx/transaction_inl.h>

#include <chrono>
#include <new>
#include <thread>

namespace stele::detail {

namespace {

// Of a pool that is open for reading there is no mechanism that could observe.
load_observer* observer_of_loads(runtime& r, unsigned log) noexcept {
  return r.reading() == nullptr ? r.mechanism().load_observer(log) : nullptr;
}
store_observer* observer_of_stores(runtime& r) noexcept {
  return r.reading() == nullptr ? r.mechanism().store_observer() : nullptr;
}

}  // namespace

transaction::transaction(runtime& r, const lock_table& locks, unsigned log, statistics& counts)
    : runtime_(r),
      log_(log),
      home_(r.home(log)),
      observers_{nullptr, observer_of_loads(r, log), observer_of_stores(r)},
      snapshot_(locks, r.lock_owner(log)),
      allocations_(r.state().heap),
      overlay_(r.state().overlays),
      counts_(counts) {}

void transaction::grow_undo_buffer() {
  in_place_.grow(this_access);
}

void transaction::claim(std::uint64_t offset, std::size_t size) {
  lock_range(line_of(offset), offset + size);
}

void transaction::lock_range(std::uint64_t from, std::uint64_t to) {
  STELE_ASSERT(from % line_size == 0 && from <= to);
  if (!snapshot_.in_force() && !snapshot_.locks_for_others()) return;
  for (std::uint64_t line = from; line < to; line += line_size)
    snapshot_.in_force() ? snapshot_.acquire(line) : snapshot_.lock_alone(line);
  std::atomic_thread_fence(std::memory_order_release);
}

// Step A2 of docs/protocol/readers.md: a reader in another process must find the lines locked as
// soon as it can see the TxID.
void transaction::lock_for_others() {
  STELE_ASSERT(snapshot_.locks_for_others());
  for (const written_line& line : writes_.lines()) snapshot_.lock_alone(line.offset);
  std::atomic_thread_fence(std::memory_order_release);
}

// A record takes two words for each chunk descriptor, so log_size / line_size slabs fit the ring. A
// full pool has no chunks for a spill.
std::size_t transaction::reclaim() {
  return allocations_.reclaim(*this, runtime_.state().file.header().log_size / line_size);
}

std::uint64_t transaction::allocate(std::size_t size, std::size_t alignment) {
  if (only_reads()) throw failure(refused_change("an allocation"));
  auto block = allocations_.allocate(*this, size, alignment);
  // The block may have been freed by a commit after this snapshot, in which it is still in use. So
  // the snapshot must include that commit.
  if (block && snapshot_.in_force()) {
    const std::uint64_t now = runtime_.state().clock.load(std::memory_order_acquire);
    if (now != snapshot_.time() && !planted(base::mutant::stm_stale_allocation)) [[unlikely]]
      snapshot_.extend();
    STELE_ASSERT(snapshot_.time() >= now);  // "Allocation moves the snapshot"
  }
  if (block && runtime_.state().heap.blocks_need_a_stored_word()) store_word(*block, 0);
  STELE_ASSERT(!block || (*block >= runtime_.heap_begin() && *block < runtime_.size() &&
                          size <= runtime_.size() - *block));
  if (block) return *block;
  if (block.error().code == errc::full && !reclaim_tried) {
    wants_reclaim = true;
    lose_attempt();
  }
  if (block.error().code == errc::full)
    this_attempt.wanted = {size + alignment, runtime_.state().file.header().size};
  throw failure(std::move(block.error()));
}

void transaction::deallocate(std::uint64_t offset) {
  if (only_reads()) throw failure(refused_change("a destroy"));
  auto freed = allocations_.deallocate(*this, offset);
  if (freed) return;
  if (snapshot_.in_force()) snapshot_.extend();  // restarts if a stale snapshot is the cause
  throw failure(std::move(freed.error()));
}

bool transaction::is_in_used_block(std::uint64_t offset) {
  if (allocations_.used_block_of(*this, offset)) return true;
  // A commit after this snapshot may have freed the block.
  if (!snapshot_.in_force() ||
      runtime_.state().clock.load(std::memory_order_acquire) == snapshot_.time())
    return false;
  snapshot_.extend();
  return allocations_.used_block_of(*this, offset).has_value();
}

// A commit under way may have stored already that the block is free. Extending the snapshot
// restarts this transaction once that commit has changed what was read.
bool transaction::is_used_block(std::uint64_t offset, std::size_t size) {
  constexpr unsigned most_looks = 10;
  for (unsigned looks = 1;; ++looks) {
    const auto block = allocations_.used_block_of(*this, offset);
    if (block && block->offset == offset && block->size >= size) return true;
    if (!snapshot_.in_force() || looks == most_looks) return false;
    snapshot_.extend();
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

// Draws the TxID under txid_mutex, so that the record can name the ordered commit before it.
bool transaction::assign_txid_in_order(std::uint64_t& txid) {
  pool_state& state = runtime_.state();
  STELE_ASSERT(order_.in_order());
  // A thread waiting for txid_mutex has announced no TxID, so no other thread waits for it.
  state.committing[log_].value.store(pool_state::no_commit, std::memory_order_release);
  order_.lock(state.txid_mutex);
  if (ordered_ && !state.ordered_mode.load(std::memory_order_relaxed))
    runtime_.enter_ordered_mode(log_);
  state.committing[log_].value.store(state.clock.load(std::memory_order_acquire),
                                     std::memory_order_seq_cst);
  order_.set_previous(state.last_ordered);
  const bool drawn = assign_txid_announced(txid);
  STELE_ASSERT(!drawn || txid > state.last_ordered);
  STELE_ASSERT(!ordered_ || state.ordered_mode.load(std::memory_order_relaxed));
  // An ordered commit keeps the mutex, so that no record names it before it is in its deferred
  // batch.
  if (drawn && ordered_) {
    state.last_ordered = txid;
  } else {
    if (!ordered_) state.leave_ordered_mode_if_idle();
    order_.release();
  }
  return drawn;
}

void transaction::reserve_overlay() {
  STELE_ASSERT(ordered_ && !writes_.empty());
  overlay_.reserve(writes_, snapshot_, allocations_.changes());
}

void transaction::defer(std::uint64_t txid) noexcept {
  STELE_ASSERT(ordered_ && order_.in_order());
  allocations_.defer(overlay_.changes());
  overlay_.defer(txid, writes_, filter_, snapshot_);
  STELE_ASSERT(!snapshot_.holds_locks() && allocations_.changes().empty());  // default.md O2
}

void transaction::begin_overlay_store() {
  STELE_ASSERT(overlay_.is_deferred());
  runtime_.block_readers();
}
void transaction::end_overlay_store() noexcept {
  STELE_ASSERT(overlay_.is_deferred());
  runtime_.unblock_readers();
  overlay_.set_stored();
}

void transaction::release_overlay() noexcept {
  overlay_.release([this](storage::heap::changes& deferred) { allocations_.commit(deferred); });
}

void transaction::keep_pages() const noexcept {
  for (const written_line& line : writes_.lines()) runtime_.keep_page(line.offset);
  std::atomic_thread_fence(std::memory_order_release);  // before the stores: long_read::at_moment
}

void transaction::before_store(std::uint64_t offset, std::uint64_t bytes) const noexcept {
  STELE_ASSERT(bytes != 0 && offset >= runtime_.heap_begin());
  if (!runtime_.has_page_snapshots() || planted(base::mutant::backup_spill_unkept)) return;
  for (std::uint64_t at = offset / page_snapshot::page_size * page_snapshot::page_size;
       at < offset + bytes; at += page_snapshot::page_size)
    runtime_.keep_page(at);
  std::atomic_thread_fence(std::memory_order_release);
}

// An update may have read ordered commits; who is told of it relies on them.
commit_status transaction::commit_empty() {
  STELE_ASSERT(writes_.empty() && doomed_by_ == nullptr && allocations_.changes().empty());
  const bool updates = store_target_ != store_target::read_only;
  if (updates && !ordered_requested_ && runtime_.tells_ordered() &&
      !planted(base::mutant::empty_not_waited)) [[unlikely]] {
    runtime_.mechanism().flush_deferred();
    if (runtime_.state().poisoned.load()) return fail_poisoned();
  }
  updates ? counts_.count_commit() : counts_.count_read();
  clear();
  return commit_status::committed;
}

commit_status transaction::commit_in_place() noexcept {
  STELE_ASSERT(store_target_ == store_target::home && writes_.empty() && !snapshot_.in_force());
  const std::uint64_t txid = runtime_.state().clock.load(std::memory_order_relaxed) + 1;
  runtime_.state().clock.store(txid, std::memory_order_release);
  counts_.count_stored_in_place(in_place_.stored_bytes(this_access));
  allocations_.commit();
  clear();
  counts_.count_commit(txid);
  return commit_status::committed;
}

void transaction::doom() noexcept {
  if (doomed_by_ == nullptr) doomed_by_ = std::current_exception();
  STELE_ASSERT(doomed_by_ != nullptr);  // called in a handler
}

// Does what run_transaction does with the exception if it leaves the body. Throws it if it is
// neither a conflict nor a failure; the caller rolls back.
commit_status transaction::commit_doomed() {
  STELE_ASSERT(doomed_by_ != nullptr);
  try {
    std::rethrow_exception(doomed_by_);
  } catch (const conflict&) {
    return commit_status::retry;
  } catch (const failure& f) {
    return roll_back_with_error(f.why());
  }
}

error transaction::refused_change(const char* what) const {
  if (runtime_.is_of_parent()) return runtime_.unusable().error();
  return {errc::read_only, std::string(what) + " inside a read; change the pool in an update"};
}

commit_status transaction::roll_back_with_error(error why) {
  rollback();
  return fail_attempt(std::move(why));
}

// The medium has failed during the commit. The pool may keep the commit, so what it has changed
// stays until the pool is opened again; ordinary memory does not keep it.
commit_status transaction::end_in_doubt(std::uint64_t txid) {
  volatile_undo_.roll_back_to(0);  // its locks are held until release()
  if (has_overlay()) overlay_.raise_version(txid);
  allocations_.commit();
  snapshot_.release(txid);
  runtime_.state().committing[log_].value.store(pool_state::no_commit, std::memory_order_release);
  clear();
  return fail_in_doubt();
}

// Does not throw std::bad_alloc, which would tell the caller that the commit was rolled back.
commit_status transaction::fail_in_doubt() const noexcept {
  try {
    return fail_attempt(
        {errc::poisoned, runtime_.state().file.path() + ": " + runtime_.state().poison_reason() +
                             "; this commit may or may not be kept. Reopen the pool: recovery "
                             "decides from what reached the device"});
  } catch (const std::bad_alloc&) {
    return fail_attempt({errc::poisoned, "write failed"});  // short: std::string does not allocate
  }
}

commit_status transaction::fail_poisoned() {
  if (runtime_.is_of_parent()) return roll_back_with_error(runtime_.unusable().error());
  return roll_back_with_error(
      {errc::poisoned, runtime_.state().file.path() + ": " + runtime_.state().poison_reason() +
                           "; nothing of this transaction counts. Reopen the pool, or restore it "
                           "from a copy"});
}

std::uint64_t transaction::revalidate() {
  snapshot_.extend();
  return snapshot_.time();
}

// The commit has no record, and recovery does not know of it. Its TxID only orders it among
// transactions that lock the same lines.
commit_status transaction::commit_volatile() noexcept {
  STELE_ASSERT(writes_.empty() && volatile_undo_.locked);
  const std::uint64_t txid = runtime_.state().clock.fetch_add(1, std::memory_order_seq_cst) + 1;
  if (txid != snapshot_.time() + 1 && !snapshot_.valid()) return commit_status::retry;
  snapshot_.release(txid);
  clear();
  counts_.count_commit();
  return commit_status::committed;
}

void transaction::roll_back_volatile() noexcept {
  volatile_undo_.roll_back_to(0);
  STELE_ASSERT(volatile_undo_.entries.empty());
  snapshot_.age_locks(runtime_.state().clock.fetch_add(1, std::memory_order_seq_cst) + 1);
}

namespace {

class moment_of_parent final : public moment {
 public:
  explicit moment_of_parent(const runtime& r) noexcept : runtime_(r) {}
  std::uint64_t word(std::uint64_t) const override { refuse(); }
  void copy(std::uint64_t, std::byte*, std::size_t) const override { refuse(); }

 private:
  [[noreturn]] void refuse() const { throw failure(runtime_.unusable().error()); }
  const runtime& runtime_;
};

}  // namespace

void transaction::leave_to_parent() noexcept {
  moment_ = new (std::nothrow) moment_of_parent(runtime_);
  observers_.loads_now = nullptr;
  writes_.clear();
  snapshot_.begin_alone();
  store_target_ = store_target::read_only;
  access& a = this_access;
  in_place_undo::end(a);
  a.load_size = a.size;
  a.filter = filter_ = ~std::uint64_t{0};
}

void transaction::rollback() noexcept {
  if (runtime_.is_of_parent()) {  // locks, heap and log are the parent's
    volatile_undo_.roll_back_to(0);
    return clear();
  }
  if (store_target_ == store_target::home) in_place_.undo(this_access);
  if (!volatile_undo_.empty()) [[unlikely]]
    roll_back_volatile();
  if (observed()) observers_.stores->abort(*this);
  allocations_.rollback();
  snapshot_.release_unchanged();
  counts_.count_abort();
  doomed_by_ = nullptr;
  clear();
  STELE_ASSERT(is_new() && this_access.size == 0);
}

}  // namespace stele::detail
