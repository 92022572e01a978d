// Begin, commit, cancel and starting over; see block.h.
#include <adapters/itm/abi.h>
#include <adapters/itm/block.h>
#include <tx/transaction_inl.h>

#include <base/check.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace stele::itm {

constinit thread_local block* block::current_ = nullptr;

namespace {

constexpr unsigned patience = 12;  // attempts beside others; then alone. Below what makes Stele line losers up itself

// Ids are drawn by the thousand, so that threads do not meet here at every begin.
std::uint32_t next_id() noexcept {
  constexpr std::uint32_t some = 1024;
  static std::atomic<std::uint32_t> drawn{some};  // what is below is never drawn: there is no_transaction_id
  static constinit thread_local std::uint32_t next = 0;
  if (next % some == 0) next = drawn.fetch_add(some, std::memory_order_relaxed);
  return next++;
}

}  // namespace

block& block::of_this_thread() {
  if (current_ != nullptr) [[likely]]
    return *current_;
  static thread_local block own;
  return own;
}

block::block() : member_(everybody.join()) { current_ = this; }

block::~block() {
  current_ = nullptr;
  everybody.quit(member_);
}

// Begin.

// Inside the crowd, with a transaction running; alone if that is wanted. Every store here waits behind the last commit's fence, and
// there is room for some fifty: the fewer, the sooner the block's loads begin.
inline void block::begin_attempt() {
  for (;;) {
    if (!member_.inside.load(std::memory_order_relaxed)) everybody.enter(member_);
    if (detail::begin_transaction(current_domain(), true, durability::durable) == detail::begun::refused) [[unlikely]] {
      step_out();
      ask(detail::last_error());
      continue;
    }
    if (!wants_alone_ || everybody.is_alone(member_) || everybody.become_alone(member_)) [[likely]]
      break;
    detail::abandon_transaction();
    step_out();
  }
  if (wants_alone_) transaction().revalidate();  // nothing has been read: the snapshot is that of being alone
}

inline std::uint32_t block::code_path(std::uint32_t properties) const noexcept {
  return (properties & abi::instrumented_code) != 0 ? abi::run_instrumented : abi::run_uninstrumented;
}

inline std::uint32_t block::begin_outermost() {
  begin_attempt();
  if (wants_irrevocable_) irrevocable_ = true, set_last_attempt();
  depth_ = 1;
  innermost_stack_ = from_.stack;
  exceptions_.begin();
  return code_path(properties_) | (irrevocable_ ? 0 : abi::save_live_variables);
}

std::uint32_t block::begin(std::uint32_t properties, const checkpoint& from) {
  if (depth_ != 0) return begin_nested(properties, from);
  keep(from_, from);
  properties_ = properties;
  if (attempts_ != 0) attempts_ = 0;
  wants_irrevocable_ = (properties & abi::does_go_irrevocable) != 0 || (properties & abi::instrumented_code) == 0;
  wants_alone_ = wants_irrevocable_;
  id_ = next_id();
  return begin_outermost();
}

std::uint32_t block::begin_nested(std::uint32_t properties, const checkpoint& from) {
  if ((properties & abi::instrumented_code) == 0) go_irrevocable();
  ++depth_;
  if ((properties & abi::has_no_abort) != 0) return code_path(properties);
  levels_.push_back({from, depth_, transaction().outside().kept.size(), pool_kept_.size(), pool_taken_.size(), pool_freed_.size(), taken_.size(),
                     freed_.size(), commit_actions_.size(), undo_actions_.size(), exceptions_.now()});
  innermost_stack_ = from.stack;
  return code_path(properties) | abi::save_live_variables;
}

// Commit.

void block::commit() {
  if (depth_ > 1) return commit_nested();
  commit_outermost();
}

void block::commit_nested() {
  if (!levels_.empty() && levels_.back().depth == depth_) {
    const level ended = levels_.back();
    levels_.pop_back();
    innermost_stack_ = levels_.empty() ? from_.stack : levels_.back().from.stack;
    const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    transaction().outside().forget(ended.outside, here, innermost_stack_);  // frames that end before the block around this does
    if (levels_.empty()) guarded([&] { free_pool_now(); });
  }
  --depth_;
}

// What levels have freed in the pool: from here on only all of it can be undone.
void block::free_pool_now() {
  for (void* object : std::exchange(pool_freed_, {})) detail::deallocate(object);
  pool_kept_.clear();
  pool_taken_.clear();
}

void block::commit_outermost() {
  auto& tx = transaction();
  const bool wrote = !tx.writes().empty() || tx.outside().locked;
  switch (detail::commit_transaction()) {
    case detail::attempt::retry: start_over();
    case detail::attempt::failed: fail(detail::last_error());
    case detail::attempt::committed: break;
  }
  settle_commit(wrote);
}

// Whatever a commit's duties do, they find no block running: they may run blocks of their own.
void block::settle_commit(bool wrote) {
  const std::uint64_t newest = current_domain().state().clock.load(std::memory_order_acquire);
  depth_ = 0;
  if (irrevocable_) irrevocable_ = false;
  if (touched_) touched_ = false;
  exceptions_.committed();
  step_out();
  if (wrote || !freed_.empty()) everybody.await_older(member_, newest);
  if (!taken_.empty()) taken_.clear();
  if (!undo_actions_.empty()) undo_actions_.clear();
  if (!freed_.empty()) run_all(freed_);
  if (!commit_actions_.empty()) run_all(commit_actions_);
}

// An exception leaves the block: it commits. If the exception is a failure of this library's, it is rolled back, as in
// pool::update; unless it cannot be any more.
void block::commit_for_exception(void* exception) {
  if (exceptions_.is_failure(exception) && !irrevocable_) {
    if (!levels_.empty() && levels_.back().depth == depth_) {
      cancel_level();
      return;
    }
    if (depth_ == 1) {
      undo_all();
      detail::abandon_transaction();
      exceptions_.committed();  // what goes on is not this block's any more
      step_out();
      run_back(undo_actions_, 0);
      run_back(taken_, 0);
      return;
    }
  }
  if (depth_ == 1) exceptions_.leaving(exception);
  commit();
}

// Cancel.

void block::abort(std::uint32_t reason) {
  base::check(!irrevocable_, "an atomic block is cancelled after it has done what cannot be undone");
  if ((reason & (abi::user_abort | abi::exception_block_abort)) == 0) start_over();
  const bool outermost = levels_.empty() || (reason & abi::outer_abort) != 0;
  if (!outermost) {
    const checkpoint to = levels_.back().from;
    const level ended = levels_.back();
    cancel_level();
    exceptions_.revert(ended.thrown);
    stele_itm_resume(abi::abort_block | abi::restore_live_variables, &to);
  }
  const checkpoint to = from_;
  undo_all();
  detail::abandon_transaction();
  exceptions_.revert_all();
  step_out();
  run_back(undo_actions_, 0);
  run_back(taken_, 0);
  stele_itm_resume(abi::abort_block | abi::restore_live_variables, &to);
}

// Undoes the innermost level and ends it; its block is not running any more.
void block::cancel_level() {
  const level ended = levels_.back();
  guarded([&] {
    for (; pool_kept_.size() > ended.pool; pool_kept_.pop_back()) {
      const detail::old_word& o = pool_kept_.back();
      detail::store_range(reinterpret_cast<void*>(o.where & ((std::uintptr_t{1} << 56) - 1)), &o.value, o.where >> 56);
    }
    for (; pool_taken_.size() > ended.pool_taken; pool_taken_.pop_back()) detail::deallocate(pool_taken_.back());
  });
  transaction().outside().undo(ended.outside);
  pool_freed_.resize(std::min(pool_freed_.size(), ended.pool_freed));
  freed_.resize(ended.freed);
  commit_actions_.resize(ended.commit_actions);
  run_back(undo_actions_, ended.undo_actions);
  run_back(taken_, ended.taken);
  levels_.pop_back();
  depth_ = ended.depth - 1;
  innermost_stack_ = levels_.empty() ? from_.stack : levels_.back().from.stack;
}

// Starting over.

void block::start_over() {
  if (error_) fail(*std::exchange(error_, {}));
  base::check(!irrevocable_, "an atomic block that cannot be rolled back has met a conflict");
  auto& tx = transaction();
  if (++attempts_ >= patience) wants_alone_ = true;
  const bool yields = !tx.wants_reclaim && !everybody.is_alone(member_) && (wants_alone_ || everybody.alone_wanted());
  undo_all();
  if (yields)
    detail::abandon_transaction();
  else
    detail::retry_transaction();
  exceptions_.revert_all();
  run_back(undo_actions_, 0);
  run_back(taken_, 0);
  if (yields) step_out();
  const std::uint32_t actions = begin_outermost();
  stele_itm_resume(actions | abi::restore_live_variables, &from_);
}

// The attempt has ended with an error that the program's handler may do something about. Only a commit that failed has rolled
// back already.
void block::fail(error why) {
  base::check(!irrevocable_, why.message.c_str());
  undo_all();
  if (detail::this_access.size != 0) detail::abandon_transaction();
  exceptions_.revert_all();
  run_back(undo_actions_, 0);
  run_back(taken_, 0);
  step_out();
  ask(why);
  const std::uint32_t actions = begin_outermost();
  stele_itm_resume(actions | abi::restore_live_variables, &from_);
}

// The program's handler may run blocks of its own, in this very object.
void block::ask(const error& why) {
  const checkpoint from = from_;
  const std::uint32_t properties = properties_, id = id_;
  const bool alone = wants_alone_, irrevocable = wants_irrevocable_;
  tell_failure(why);
  from_ = from;
  properties_ = properties, id_ = id;
  wants_alone_ = alone, wants_irrevocable_ = irrevocable;
}

// Everything but the transaction itself, whose roll-back follows.
void block::undo_all() noexcept {
  depth_ = 0;
  touched_ = false;
  levels_.clear();
  pool_kept_.clear();
  pool_taken_.clear();
  pool_freed_.clear();
  freed_.clear();
  commit_actions_.clear();
}

void block::step_out() noexcept {
  if (everybody.is_alone(member_)) everybody.end_alone();
  everybody.leave(member_);
}

void block::go_irrevocable() {
  if (irrevocable_) return;
  guarded([&] {
    wants_irrevocable_ = wants_alone_ = true;  // if this attempt cannot become it, the next one is from its begin
    if (!everybody.is_alone(member_) && !everybody.become_alone(member_)) throw detail::restart{};
    transaction().revalidate();
  });
  set_last_attempt();
  irrevocable_ = true;
}

// A full pool is an error at once: nothing can be tried again. Stele forgets that with the attempts.
void block::set_last_attempt() noexcept {
  transaction().reclaimed = true;
  if (transaction().attempts == 0) transaction().attempts = 1;
}

// Memory.

void block::touch_now() {
  touched_ = true;
  everybody.publish(member_);
  member_.seen.store(transaction().revalidate() + 1, std::memory_order_release);
}

void block::keep_pool_now(std::uintptr_t address, std::size_t size) {
  for (std::size_t done = 0; done < size;) {
    const std::uintptr_t at = address + done;
    const std::size_t part = std::min<std::size_t>(8 - at % 8, size - done);
    detail::old_word old{at | std::uintptr_t{part} << 56, 0};
    detail::load_range(reinterpret_cast<const void*>(at), &old.value, part);
    pool_kept_.push_back(old);
    done += part;
  }
}

void* block::allocate(std::size_t size, std::size_t alignment) {
  void* const object = detail::allocate(size, alignment);
  detail::fill_zero(object, size);
  if (!levels_.empty()) pool_taken_.push_back(object);
  return object;
}

void block::deallocate(void* object) {
  if (levels_.empty())
    detail::deallocate(object);
  else
    pool_freed_.push_back(object);
}

void block::run_back(duties& all, std::size_t from) noexcept {
  while (all.size() > from) {
    const duty last = all.back();
    all.pop_back();
    last.run(last.argument);
  }
}

void block::run_all(duties& all) noexcept {
  for (const duty& d : std::exchange(all, {})) d.run(d.argument);
}

}  // namespace stele::itm

using stele::itm::block;

extern "C" {

std::uint32_t stele_itm_begin(std::uint32_t properties, const stele::itm::checkpoint* from) { return block::of_this_thread().begin(properties, *from); }
void _ITM_commitTransaction() { block::known()->commit(); }
void _ITM_commitTransactionEH(void* exception) { block::known()->commit_for_exception(exception); }
void _ITM_abortTransaction(std::uint32_t reason) { block::known()->abort(reason); }
void _ITM_changeTransactionMode(int) { block::known()->go_irrevocable(); }

}
