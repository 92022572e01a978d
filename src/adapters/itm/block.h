// The atomic block of a thread: begin, commit, cancel and retry, on top of a Stele transaction.
//
// Blocks nest. A block that contains a __transaction_cancel has its own level: its changes can be
// undone alone, by stores of the old values (pool) and by the saved words (ordinary memory). Other
// blocks are part of the block around them.
//
// Invariants: from its begin to its end the outermost block has a running Stele transaction and is
// inside the serial lock. Before a block returns to its begin, all its changes are undone and its
// locks are released. Actions that must not happen twice (freeing memory, the program's commit
// actions) happen after the commit, outside the serial lock, when no older block can still access
// their memory.
#pragma once

#include <base/assert.h>

#include <adapters/itm/domain.h>
#include <adapters/itm/exceptions.h>
#include <adapters/itm/jump_buffer.h>
#include <adapters/itm/serial_lock.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <vector>

namespace stele::itm {

class block {
 public:
  using action = void (*)(void*);

  static block& of_this_thread();
  // Null if this thread has never run a block.
  static block* current() noexcept { return current_; }

  static const serial_lock::thread_state* this_thread_state() noexcept {
    return current_ != nullptr ? &current_->thread_ : nullptr;
  }

  // Whether a thread of this process has ended inside a block.
  static bool has_ended_inside() noexcept { return ended_inside_.load(std::memory_order_relaxed); }

  bool running() const noexcept { return depth_ != 0; }
  bool irrevocable() const noexcept { return irrevocable_; }
  std::uint32_t id() const noexcept { return id_; }
  unsigned thread_number() const noexcept { return thread_.number; }

  std::uint32_t begin(std::uint32_t properties, const jump_buffer& from);
  void commit();
  void commit_for_exception(void* exception);
  [[noreturn]] void abort(std::uint32_t reason);
  void go_irrevocable();

  // Called when an access met a conflict or an error. Restarts the block, or reports the error.
  [[noreturn]] void retry();
  void set_error(const failure& why) noexcept;
  void set_no_memory() noexcept;

  // Memory of the pool.
  void save_pool_undo(std::uintptr_t address, std::size_t size) {
    if (!levels_.empty()) [[unlikely]]
      save_pool_undo_now(address, size);
  }
  void* allocate(std::size_t size, std::size_t alignment);  // zeroed; throws failure, or restart
  void deallocate(void* object);

  // Ordinary memory. Nothing is saved for the stack frames of calls that the block itself made.
  bool own_frame(std::uintptr_t address) const noexcept {
    const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    return address - here < innermost_stack_ - here;
  }
  bool own_stack(std::uintptr_t address) const noexcept {
    const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    return address - here < from_.stack - here;
  }
  void announce_outside() {
    STELE_ASSERT(runs_attempt());
    if (!announced_) [[unlikely]]
      announce_outside_now();
    // Other threads' commits wait for this block, because it has announced its snapshot.
    STELE_ASSERT(thread_.snapshot.load(std::memory_order_relaxed) != 0);
  }
  void record_allocation(void* memory, action deallocator) {
    STELE_ASSERT(running());
    allocated_.push_back({memory, deallocator});
  }
  void free_after_commit(void* memory, action deallocator) {
    STELE_ASSERT(running());
    STELE_ASSERT(memory != nullptr);
    freed_.push_back({memory, deallocator});
  }

  void on_commit(action run, void* argument) { commit_actions_.push_back({argument, run}); }
  void on_undo(action run, void* argument) { undo_actions_.push_back({argument, run}); }
  exceptions& thrown() noexcept { return exceptions_; }
  detail::transaction& transaction() noexcept {
    STELE_ASSERT(detail::this_access.size != 0);
    STELE_ASSERT(detail::this_access.running != nullptr);
    return *detail::this_access.running;
  }

  block();
  ~block();
  block(const block&) = delete;
  block& operator=(const block&) = delete;

 private:
  struct deferred_action {
    void* argument;
    action run;
  };
  using deferred_actions = std::vector<deferred_action>;
  // The state when a block with its own level began.
  struct level {
    jump_buffer from;
    unsigned depth;
    std::size_t outside, pool, pool_allocated, pool_freed, allocated, freed, commit_actions,
        undo_actions;
    exceptions::mark thrown;
  };

  // For assertions. The invariant of a block between its begin and its end; nothing is left of an
  // attempt or a block; the levels lie within each other and within the block.
  bool runs_attempt() const noexcept;
  bool holds_nothing() const noexcept;
  bool levels_are_nested() const noexcept;

  std::uint32_t begin_outermost();
  void begin_attempt();
  bool begin_transaction();
  detail::commit_status commit_transaction();
  std::uint32_t code_path(std::uint32_t properties) const noexcept;
  std::uint32_t begin_nested(std::uint32_t properties, const jump_buffer& from);
  void commit_nested();
  void cancel_level();
  void commit_outermost();
  void finish_commit(bool wrote);
  void clear_attempt() noexcept;
  void leave_serial_lock() noexcept;
  void save_pool_undo_now(std::uintptr_t address, std::size_t size);
  void free_pool_now();
  void announce_outside_now();
  void set_last_attempt() noexcept;
  [[noreturn]] void fail(error why);
  error take_error() noexcept;
  void call_failure_handler(const error& why);
  static void run_in_reverse(deferred_actions& all, std::size_t from) noexcept;
  static void run_in_order(deferred_actions& all) noexcept;

  static constinit thread_local block* current_;
  static constinit thread_local bool own_has_ended_;
  static constinit std::atomic<bool> ended_inside_;

  serial_lock::thread_state& thread_;
  unsigned depth_ = 0;
  std::uint32_t id_ = 0;
  std::uint32_t properties_ = 0;
  unsigned attempts_ = 0;
  bool irrevocable_ = false;   // cannot be rolled back, and runs alone
  bool wants_serial_ = false;  // the next attempt must run alone
  bool wants_irrevocable_ = false;
  bool announced_ = false;  // has announced accesses to shared ordinary memory
  jump_buffer from_{};
  std::uintptr_t innermost_stack_ = 0;
  std::vector<level> levels_;
  std::vector<detail::undo_entry> pool_undo_;
  std::vector<void*> pool_allocated_, pool_freed_;  // used while there are levels
  deferred_actions allocated_, freed_, commit_actions_, undo_actions_;
  exceptions exceptions_;
  std::optional<error> error_;
};

// Runs `act`. If `act` meets a conflict or an error, the block restarts and this does not return.
// No exception leaves it: compiled blocks do not expect one here, and would stay open behind it.
template <class Act>
[[gnu::always_inline]] inline auto guarded(Act&& act) {
  try {
    return act();
  } catch (const conflict&) {
  } catch (const failure& f) {
    block::current()->set_error(f);
  } catch (const std::bad_alloc&) {
    block::current()->set_no_memory();
  }
  block::current()->retry();
}

}  // namespace stele::itm
