// Begin, commit, cancel and retry; see block.h.
#include <adapters/itm/abi.h>
#include <adapters/itm/block.h>
#include <tx/attempt.h>
#include <tx/transaction_inl.h>

#include <base/check.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace stele::itm {

constinit thread_local block* block::current_ = nullptr;
constinit thread_local bool block::own_has_ended_ = false;
constinit std::atomic<bool> block::ended_inside_{false};

namespace {

// Concurrent attempts before a block runs alone; fewer than before Stele's fallback lock.
constexpr unsigned attempts_before_serial = 12;

// Ids are drawn in groups of 1024, so that threads do not contend at every begin.
std::uint32_t next_id() noexcept {
  constexpr std::uint32_t some = 1024;
  // Smaller ids are never drawn; one of them is no_transaction_id.
  static std::atomic<std::uint32_t> drawn{some};
  static constinit thread_local std::uint32_t next = 0;
  if (next % some == 0) next = drawn.fetch_add(some, std::memory_order_relaxed);
  if (next == 0) [[unlikely]]  // after 2^32 ids
    next = drawn.fetch_add(some, std::memory_order_relaxed);
  STELE_ASSERT(next > abi::no_transaction_id);
  return next++;
}

}  // namespace

block& block::of_this_thread() {
  if (current_ != nullptr) [[likely]]
    return *current_;
  // In a destructor at the thread's end, or at exit(). Never freed.
  if (own_has_ended_) return *new block;
  static thread_local block own;
  return own;
}

block::block() : thread_(the_serial_lock.register_thread()) {
  STELE_ASSERT_ALWAYS(current_ == nullptr);  // one for each thread
  current_ = this;
}

block::~block() {
  STELE_ASSERT_ALWAYS(current_ == this);
  current_ = nullptr;
  own_has_ended_ = true;
  if (running())  // stays in the serial lock
    ended_inside_.store(true, std::memory_order_relaxed);
  else
    the_serial_lock.unregister_thread(thread_);
}

bool block::runs_attempt() const noexcept {
  return depth_ != 0 && thread_.active.made() && detail::this_access.size != 0 &&
         (!irrevocable_ || the_serial_lock.is_serial(thread_));
}

bool block::holds_nothing() const noexcept {
  return depth_ == 0 && !irrevocable_ && !announced_ && levels_.empty() && pool_undo_.empty() &&
         pool_allocated_.empty() && pool_freed_.empty() && allocated_.empty() && freed_.empty() &&
         commit_actions_.empty() && undo_actions_.empty();
}

bool block::levels_are_nested() const noexcept {
  unsigned depth = 1;
  std::size_t pool = 0, allocated = 0, freed = 0, undo_actions = 0;
  for (const level& l : levels_) {
    if (l.depth <= depth || l.pool < pool || l.allocated < allocated || l.freed < freed ||
        l.undo_actions < undo_actions)
      return false;
    depth = l.depth, pool = l.pool, allocated = l.allocated, freed = l.freed;
    undo_actions = l.undo_actions;
  }
  return depth <= depth_ && pool <= pool_undo_.size() && allocated <= allocated_.size() &&
         freed <= freed_.size() && undo_actions <= undo_actions_.size();
}

// Begin.

// False: error_ says why.
inline bool block::begin_transaction() {
  try {
    if (detail::begin_transaction(current_domain(), true, durability::durable,
                                  detail::code_between::may_wait) != detail::begin_status::refused)
        [[likely]]
      return true;
    error_ = detail::last_error();
  } catch (const std::bad_alloc&) {
    set_no_memory();
  }
  return false;
}

// Ends inside the serial lock with a running transaction; alone if wanted. Every store here waits
// for the last commit's fence, and the store buffer holds about fifty: fewer stores let the block's
// loads begin sooner.
inline void block::begin_attempt() {
  for (;;) {
    if (!thread_.active.made()) the_serial_lock.enter(thread_);
    if (!begin_transaction()) [[unlikely]] {
      leave_serial_lock();
      call_failure_handler(take_error());
      continue;
    }
    if (!wants_serial_ || the_serial_lock.is_serial(thread_) ||
        the_serial_lock.acquire_serial(thread_)) [[likely]]
      break;
    detail::roll_back_transaction();
    leave_serial_lock();
  }
  STELE_ASSERT(thread_.active.made());
  STELE_ASSERT(!wants_irrevocable_ || wants_serial_);
  STELE_ASSERT(the_serial_lock.is_serial(thread_) || !wants_serial_);
  // Nothing has been read yet: takes the snapshot that is current while running alone.
  if (wants_serial_) transaction().revalidate();
}

inline std::uint32_t block::code_path(std::uint32_t properties) const noexcept {
  return (properties & abi::instrumented_code) != 0 ? abi::run_instrumented
                                                    : abi::run_uninstrumented;
}

inline std::uint32_t block::begin_outermost() {
  STELE_ASSERT(holds_nothing());
  begin_attempt();
  if (wants_irrevocable_) irrevocable_ = true, set_last_attempt();
  depth_ = 1;
  innermost_stack_ = from_.stack;
  exceptions_.begin();
  STELE_ASSERT(runs_attempt());
  return code_path(properties_) | (irrevocable_ ? 0 : abi::save_live_variables);
}

std::uint32_t block::begin(std::uint32_t properties, const jump_buffer& from) {
  if (depth_ != 0) return begin_nested(properties, from);
  copy_words(from_, from);
  properties_ = properties;
  if (attempts_ != 0) attempts_ = 0;
  wants_irrevocable_ =
      (properties & abi::does_go_irrevocable) != 0 || (properties & abi::instrumented_code) == 0;
  wants_serial_ = wants_irrevocable_;
  id_ = next_id();
  return begin_outermost();
}

std::uint32_t block::begin_nested(std::uint32_t properties, const jump_buffer& from) {
  STELE_ASSERT(runs_attempt());
  STELE_ASSERT(from.stack <= innermost_stack_);
  if ((properties & abi::instrumented_code) == 0) go_irrevocable();
  ++depth_;
  if ((properties & abi::has_no_abort) != 0) return code_path(properties);
  guarded([&] {
    levels_.push_back({from, depth_, transaction().volatile_undo().entries.size(),
                       pool_undo_.size(), pool_allocated_.size(), pool_freed_.size(),
                       allocated_.size(), freed_.size(), commit_actions_.size(),
                       undo_actions_.size(), exceptions_.current_mark()});
  });
  innermost_stack_ = from.stack;
  STELE_ASSERT_WHOLE(levels_are_nested());
  return code_path(properties) | abi::save_live_variables;
}

// Commit.

void block::commit() {
  if (depth_ > 1) return commit_nested();
  commit_outermost();
}

void block::commit_nested() {
  STELE_ASSERT_WHOLE(levels_are_nested());
  if (!levels_.empty() && levels_.back().depth == depth_) {
    const level ended = levels_.back();
    levels_.pop_back();
    innermost_stack_ = levels_.empty() ? from_.stack : levels_.back().from.stack;
    const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    // Drops the words of frames that end before the block around this one.
    STELE_ASSERT(here < innermost_stack_);
    STELE_ASSERT(ended.outside <= transaction().volatile_undo().entries.size());
    transaction().volatile_undo().discard(ended.outside, here, innermost_stack_);
    if (levels_.empty()) guarded([&] { free_pool_now(); });
  }
  --depth_;
  STELE_ASSERT(depth_ != 0);
  STELE_ASSERT(levels_.empty() || levels_.back().depth <= depth_);
}

// Frees the pool objects that the ended levels have freed. From here on only the whole block can be
// undone.
void block::free_pool_now() {
  STELE_ASSERT(levels_.empty());
  for (void* object : std::exchange(pool_freed_, {})) detail::deallocate(object);
  pool_undo_.clear();
  pool_allocated_.clear();
}

// Failed: error_ says why; the transaction may still run.
inline detail::commit_status block::commit_transaction() {
  try {
    const detail::commit_status done = detail::commit_transaction();
    if (done == detail::commit_status::failed) [[unlikely]]
      error_ = detail::last_error();
    return done;
  } catch (const std::bad_alloc&) {
    set_no_memory();
    return detail::commit_status::failed;
  }
}

void block::commit_outermost() {
  STELE_ASSERT(depth_ == 1);
  STELE_ASSERT(runs_attempt());
  STELE_ASSERT(levels_.empty());
  STELE_ASSERT(pool_undo_.empty() && pool_allocated_.empty() && pool_freed_.empty());
  auto& tx = transaction();
  const bool wrote = !tx.writes().empty() || tx.volatile_undo().locked;
  switch (commit_transaction()) {
    case detail::commit_status::retry:
      retry();
    case detail::commit_status::failed:
      fail(take_error());
    case detail::commit_status::committed:
      break;
  }
  finish_commit(wrote);
}

// A commit's deferred actions run outside of any block, so they may run blocks of their own.
void block::finish_commit(bool wrote) {
  STELE_ASSERT(detail::this_access.size == 0);  // the transaction has ended
  const std::uint64_t newest = current_domain().state().clock.load(std::memory_order_acquire);
  depth_ = 0;
  if (irrevocable_) irrevocable_ = false;
  if (announced_) announced_ = false;
  exceptions_.committed();
  leave_serial_lock();
  if (wrote || !freed_.empty()) the_serial_lock.wait_for_older(thread_, newest);
  if (!allocated_.empty()) allocated_.clear();
  if (!undo_actions_.empty()) undo_actions_.clear();
  if (!freed_.empty()) run_in_order(freed_);
  if (!commit_actions_.empty()) run_in_order(commit_actions_);
}

// An exception leaves the block, and the block commits. If the exception is a stele::failure, the
// block is rolled back, as in pool::update, unless it is irrevocable.
void block::commit_for_exception(void* exception) {
  STELE_ASSERT(exception != nullptr);
  STELE_ASSERT(depth_ != 0);
  if (exceptions_.is_failure(exception) && !irrevocable_) {
    if (!levels_.empty() && levels_.back().depth == depth_) {
      cancel_level();
      return;
    }
    if (depth_ == 1) {
      clear_attempt();
      detail::roll_back_transaction();
      exceptions_.committed();  // the exception is outside the block now
      leave_serial_lock();
      run_in_reverse(undo_actions_, 0);
      run_in_reverse(allocated_, 0);
      return;
    }
  }
  if (depth_ == 1) exceptions_.set_in_flight(exception);
  commit();
}

// Cancel.

void block::abort(std::uint32_t reason) {
  base::check(!irrevocable_,
              "an atomic block is cancelled after it has done what cannot be undone");
  if ((reason & (abi::user_abort | abi::exception_block_abort)) == 0) retry();
  const bool outermost = levels_.empty() || (reason & abi::outer_abort) != 0;
  // The block that is cancelled alone has its own level, or is the only one.
  STELE_ASSERT((reason & abi::outer_abort) != 0 ||
               (levels_.empty() ? depth_ == 1 : levels_.back().depth == depth_));
  if (!outermost) {
    const jump_buffer to = levels_.back().from;
    const level ended = levels_.back();
    cancel_level();
    exceptions_.roll_back_to(ended.thrown);
    stele_itm_resume(abi::abort_block | abi::restore_live_variables, &to);
  }
  const jump_buffer to = from_;
  clear_attempt();
  detail::roll_back_transaction();
  exceptions_.roll_back_all();
  leave_serial_lock();
  run_in_reverse(undo_actions_, 0);
  run_in_reverse(allocated_, 0);
  stele_itm_resume(abi::abort_block | abi::restore_live_variables, &to);
}

// Undoes and ends the innermost level and its block.
void block::cancel_level() {
  STELE_ASSERT(!levels_.empty());
  STELE_ASSERT(!irrevocable_);
  STELE_ASSERT_WHOLE(levels_are_nested());
  const level ended = levels_.back();
  guarded([&] {
    for (; pool_undo_.size() > ended.pool; pool_undo_.pop_back()) {
      const detail::undo_entry& o = pool_undo_.back();
      STELE_ASSERT((o.where >> 56) - 1 < sizeof o.value);
      detail::store_range(reinterpret_cast<void*>(o.where & ((std::uintptr_t{1} << 56) - 1)),
                          &o.value, o.where >> 56);
    }
    for (; pool_allocated_.size() > ended.pool_allocated; pool_allocated_.pop_back())
      detail::deallocate(pool_allocated_.back());
  });
  STELE_ASSERT(transaction().volatile_undo().entries.size() >= ended.outside);
  transaction().volatile_undo().roll_back_to(ended.outside);
  STELE_ASSERT(commit_actions_.size() >= ended.commit_actions);
  pool_freed_.resize(std::min(pool_freed_.size(), ended.pool_freed));
  freed_.resize(ended.freed);
  commit_actions_.resize(ended.commit_actions);
  run_in_reverse(undo_actions_, ended.undo_actions);
  run_in_reverse(allocated_, ended.allocated);
  levels_.pop_back();
  depth_ = ended.depth - 1;
  STELE_ASSERT(depth_ != 0);
  STELE_ASSERT(pool_undo_.size() == ended.pool && pool_allocated_.size() == ended.pool_allocated);
  innermost_stack_ = levels_.empty() ? from_.stack : levels_.back().from.stack;
}

// Retry.

void block::retry() {
  if (error_) fail(take_error());
  base::check(!irrevocable_, "an atomic block that cannot be rolled back has met a conflict");
  STELE_ASSERT(runs_attempt());
  auto& tx = transaction();
  if (++attempts_ >= attempts_before_serial) wants_serial_ = true;
  const bool yields = !tx.wants_reclaim && !the_serial_lock.is_serial(thread_) &&
                      (wants_serial_ || the_serial_lock.serial_wanted());
  clear_attempt();
  if (yields)
    detail::roll_back_transaction();
  else
    detail::retry_transaction();
  exceptions_.roll_back_all();
  run_in_reverse(undo_actions_, 0);
  run_in_reverse(allocated_, 0);
  // The roll-back has released every lock, so no thread waits for this one while it yields.
  STELE_ASSERT(detail::this_access.size == 0);
  STELE_ASSERT(!yields || !the_serial_lock.is_serial(thread_));
  if (yields) leave_serial_lock();
  const std::uint32_t actions = begin_outermost();
  stele_itm_resume(actions | abi::restore_live_variables, &from_);
}

error block::take_error() noexcept {
  STELE_ASSERT(error_.has_value());
  error why = std::move(*error_);
  error_.reset();
  return why;
}

void block::set_error(const failure& why) noexcept {
  try {
    error_ = why.why();
  } catch (const std::bad_alloc&) {
    set_no_memory();
  }
}

void block::set_no_memory() noexcept {
  error_ = error{errc::full, "out of memory"};  // short: std::string does not allocate
}

// The attempt has ended with an error for the program's handler. If a commit failed, the
// transaction is rolled back already.
void block::fail(error why) {
  base::check(!irrevocable_, why.message.c_str());
  clear_attempt();
  if (detail::this_access.size != 0) detail::roll_back_transaction();
  STELE_ASSERT(detail::this_access.size == 0);
  exceptions_.roll_back_all();
  run_in_reverse(undo_actions_, 0);
  run_in_reverse(allocated_, 0);
  leave_serial_lock();
  call_failure_handler(why);
  const std::uint32_t actions = begin_outermost();
  stele_itm_resume(actions | abi::restore_live_variables, &from_);
}

// The program's handler may run its own blocks, which use this same object.
void block::call_failure_handler(const error& why) {
  STELE_ASSERT(holds_nothing());
  STELE_ASSERT(!thread_.active.made());
  const jump_buffer from = from_;
  const std::uint32_t properties = properties_, id = id_;
  const bool alone = wants_serial_, irrevocable = wants_irrevocable_;
  report_failure(why);
  STELE_ASSERT(holds_nothing());  // what the handler has run has ended
  from_ = from;
  properties_ = properties, id_ = id;
  wants_serial_ = alone, wants_irrevocable_ = irrevocable;
}

// Clears everything except the transaction; the caller rolls that back.
void block::clear_attempt() noexcept {
  depth_ = 0;
  announced_ = false;
  levels_.clear();
  pool_undo_.clear();
  pool_allocated_.clear();
  pool_freed_.clear();
  freed_.clear();
  commit_actions_.clear();
}

void block::leave_serial_lock() noexcept {
  if (the_serial_lock.is_serial(thread_)) the_serial_lock.release_serial();
  the_serial_lock.leave(thread_);
  STELE_ASSERT(thread_.snapshot.load(std::memory_order_relaxed) == 0);
}

void block::go_irrevocable() {
  STELE_ASSERT(runs_attempt());
  if (irrevocable_) return;
  guarded([&] {
    // If this attempt cannot become irrevocable, the next one is from its begin.
    wants_irrevocable_ = wants_serial_ = true;
    if (!the_serial_lock.is_serial(thread_) && !the_serial_lock.acquire_serial(thread_))
      throw conflict{};
    transaction().revalidate();
  });
  STELE_ASSERT(the_serial_lock.is_serial(thread_));
  set_last_attempt();
  irrevocable_ = true;
}

// A full pool becomes an error at once, because the block cannot be retried.
void block::set_last_attempt() noexcept {
  STELE_ASSERT(wants_irrevocable_);
  detail::set_last_attempt();
}

// Memory.

void block::announce_outside_now() {
  announced_ = true;
  the_serial_lock.announce_outside_access(thread_);
  STELE_ASSERT(thread_.announced);
  thread_.snapshot.store(transaction().revalidate() + 1, std::memory_order_release);
}

void block::save_pool_undo_now(std::uintptr_t address, std::size_t size) {
  STELE_ASSERT(runs_attempt());
  STELE_ASSERT(address - detail::this_access.pool_base < detail::this_access.size);
  STELE_ASSERT(address >> 56 == 0);  // the top byte of an entry is its size
  for (std::size_t done = 0; done < size;) {
    const std::uintptr_t at = address + done;
    const std::size_t part = std::min<std::size_t>(8 - at % 8, size - done);
    detail::undo_entry old{at | std::uintptr_t{part} << 56, 0};
    detail::load_range(reinterpret_cast<const void*>(at), &old.value, part);
    pool_undo_.push_back(old);
    done += part;
  }
}

void* block::allocate(std::size_t size, std::size_t alignment) {
  STELE_ASSERT(runs_attempt());
  void* const object = detail::allocate(size, alignment);
  STELE_ASSERT(reinterpret_cast<std::uintptr_t>(object) - detail::this_access.pool_base <
               detail::this_access.size);
  detail::fill_zero(object, size);
  if (!levels_.empty()) pool_allocated_.push_back(object);
  return object;
}

void block::deallocate(void* object) {
  STELE_ASSERT(runs_attempt());
  STELE_ASSERT(object != nullptr);
  if (levels_.empty())
    detail::deallocate(object);
  else
    pool_freed_.push_back(object);
}

void block::run_in_reverse(deferred_actions& all, std::size_t from) noexcept {
  STELE_ASSERT(all.size() >= from);
  while (all.size() > from) {
    const deferred_action last = all.back();
    all.pop_back();
    last.run(last.argument);
  }
}

void block::run_in_order(deferred_actions& all) noexcept {
  for (const deferred_action& d : std::exchange(all, {})) d.run(d.argument);
}

}  // namespace stele::itm

using stele::itm::block;

extern "C" {

std::uint32_t stele_itm_begin(std::uint32_t properties, const stele::itm::jump_buffer* from) {
  // What jump_buffer_x86_64.S makes: the buffer below the return address, and the caller's stack as
  // it is at a call.
  STELE_ASSERT(from->stack - reinterpret_cast<std::uintptr_t>(from) ==
               sizeof(stele::itm::jump_buffer) + 2 * sizeof(std::uintptr_t));
  STELE_ASSERT(from->stack % 16 == 0);
  return block::of_this_thread().begin(properties, *from);
}
void _ITM_commitTransaction() {
  block::current()->commit();
}
void _ITM_commitTransactionEH(void* exception) {
  block::current()->commit_for_exception(exception);
}
void _ITM_abortTransaction(std::uint32_t reason) {
  block::current()->abort(reason);
}
void _ITM_changeTransactionMode(int) {
  block::current()->go_irrevocable();
}
}
